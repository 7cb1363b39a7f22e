//! `gateway audit`: what the gateway wrote down. It reads files of this machine; no gateway need run.

use fault::{ErrorCode, Fault};
use node_host::cli::audit::AuditCommand;

use super::Common;

pub(super) fn run(common: &Common, command: &AuditCommand) -> Result<u8, Fault> {
    if common.identity.is_some() {
        return Err(Fault::new(
            ErrorCode::InvalidRequest,
            "the audit log is read on the gateway's machine only",
        )
        .hint("run it there, without `--identity`"));
    }
    let text = command.text(&common.state()?.gateway_audit(), common.json)?;
    if !text.is_empty() {
        say_line!("{}", text.trim_end());
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_remote_operator_is_not_shown_the_log_of_another_machine() {
        let dir = tempfile::tempdir().unwrap();
        let identity = Some(PathBuf::from("operator.json"));
        let common = Common { state_dir: Some(dir.path().to_path_buf()), identity, json: true };
        assert_eq!(run(&common, &AuditCommand::Verify).unwrap_err().code, ErrorCode::InvalidRequest);
    }
}
