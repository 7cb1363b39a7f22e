//! The key with which a person signs decisions: whose it is, where it lies, and its public half for the owners of nodes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use config::{PrivateMode, read_private, write_private};
use fault::{ErrorCode, Fault};
use identity::{IdentityError, PrivateKey};
use serde_json::json;

use super::super::Common;
use super::super::client::OperatorFile;
use super::super::output::print_json;

/// Largest key file.
const FILE_MAX: u64 = 16 * 1024;

#[derive(Debug, Args)]
pub(in super::super) struct KeyArgs {
    /// The key of this file, made if it is not there [default: the operator's of `--identity`, else approver-key.pem of
    /// the state directory].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// Where a key lies.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// A file with nothing but the key.
    Pem(PathBuf),
    /// An operator's identity.
    Operator(PathBuf),
}

pub(super) fn run(common: &Common, args: &KeyArgs) -> Result<u8, Fault> {
    let source = Source::of(common, args.key.as_deref())?;
    if let Source::Pem(file) = &source
        && make(file)?
    {
        eprintln!("gateway: made the key {}", file.display());
    }
    let public = source.load()?.public().map_err(unusable(source.file()))?;
    if common.json {
        print_json(&json!({
            "key": public.to_string(),
            "fingerprint": public.fingerprint().to_hex(),
            "file": source.file(),
        }));
    } else {
        say_line!("{public}");
        eprintln!("gateway: fingerprint {}", public.fingerprint());
        eprintln!("gateway: for the owner of each node: node-host approvers add NAME {public}");
    }
    Ok(0)
}

/// The key to sign with. None is made: nobody would know it.
///
/// # Errors
/// There is none, or it cannot be used.
pub(super) fn existing(common: &Common, file: Option<&Path>) -> Result<PrivateKey, Fault> {
    Source::of(common, file)?.load()
}

impl Source {
    fn of(common: &Common, file: Option<&Path>) -> Result<Self, Fault> {
        Ok(match (file, &common.identity) {
            (Some(file), _) => Self::Pem(file.to_path_buf()),
            (None, Some(identity)) => Self::Operator(identity.clone()),
            (None, None) => Self::Pem(common.state()?.approver_key()),
        })
    }

    fn file(&self) -> &Path {
        match self {
            Self::Pem(file) | Self::Operator(file) => file,
        }
    }

    fn load(&self) -> Result<PrivateKey, Fault> {
        let file = match self {
            Self::Operator(file) => return OperatorFile::load(file)?.private_key(file),
            Self::Pem(file) => file,
        };
        let bytes = match read_private(file, FILE_MAX, PrivateMode::Strict) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => {
                let message = format!("there is no key to sign with: {}", file.display());
                return Err(Fault::new(ErrorCode::ApprovalSignatureRequired, message)
                    .hint("`gateway approvals key` makes one and says who has to know it"));
            }
            Err(error) => return Err(Fault::new(ErrorCode::StateDirUnusable, error.to_string())),
        };
        let pem = String::from_utf8_lossy(&bytes);
        PrivateKey::from_pem(&pem).map_err(unusable(file))
    }
}

fn unusable(file: &Path) -> impl Fn(IdentityError) -> Fault {
    move |error| Fault::new(ErrorCode::StoreUnreadable, format!("{}: {error}", file.display()))
}

/// Makes a key where there is no file. False: there is one.
fn make(file: &Path) -> Result<bool, Fault> {
    let failed = |error: &dyn std::fmt::Display| {
        Fault::new(ErrorCode::StateDirUnusable, format!("{} could not be made: {error}", file.display()))
    };
    if fs::symlink_metadata(file).is_ok() {
        return Ok(false);
    }
    let Some(name) = file.file_name() else { return Err(failed(&"it names no file")) };
    let key = PrivateKey::generate().map_err(|error| failed(&error))?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = file.with_file_name(beside);
    write_private(&beside, key.to_pem().as_bytes()).map_err(|error| failed(&error))?;
    // Two that make it at one time must not print two keys: a link replaces nothing.
    let linked = fs::hard_link(&beside, file);
    let _ = fs::remove_file(&beside);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(&error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn common(state: &Path, identity: Option<&Path>) -> Common {
        Common {
            state_dir: Some(state.to_path_buf()),
            identity: identity.map(Path::to_path_buf),
            json: false,
        }
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let here = common(dir.path(), None);
        let missing = existing(&here, None).unwrap_err();
        assert_eq!(missing.code, ErrorCode::ApprovalSignatureRequired);
        assert!(missing.hint.unwrap().contains("gateway approvals key"));

        let file = dir.path().join("approver-key.pem");
        assert!(make(&file).unwrap());
        let first = existing(&here, None).unwrap().public().unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!make(&file).unwrap());
        assert_eq!(existing(&here, None).unwrap().public().unwrap(), first);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");

        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(existing(&here, None).unwrap_err().code, ErrorCode::StateDirUnusable);
    }

    #[test]
    fn the_file_goes_before_the_identity_and_that_before_the_state_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (file, identity) = (dir.path().join("k"), dir.path().join("i"));
        let with = common(dir.path(), Some(&identity));
        assert_eq!(Source::of(&with, Some(&file)).unwrap(), Source::Pem(file));
        assert_eq!(Source::of(&with, None).unwrap(), Source::Operator(identity));
        let state = Source::of(&common(dir.path(), None), None).unwrap();
        assert_eq!(state, Source::Pem(dir.path().join("approver-key.pem")));
    }
}
