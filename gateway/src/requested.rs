//! What the gateway's side asks a node to hold a command to (`policy.md` §0, §1.7): the configuration, and the stricter
//! word where a call says one. The node combines it with its own.

use config::ExecConfig;
use fault::{ErrorCode, Fault};
use policy::{Ask, Requested, Security};
use proto::v1 as pb;

/// The configured policy, where none is: a node that allows everything is asked for everything (§1.6).
pub(crate) fn configured(exec: &ExecConfig) -> Requested {
    Requested { security: exec.security.unwrap_or(Security::Full), ask: exec.ask.unwrap_or(Ask::Off) }
}

/// The policy for one call. A call can only tighten, and a word that this version does not know is refused: it may be
/// a stricter one.
pub(crate) fn requested(exec: &ExecConfig, call: &pb::ExecRequest) -> Result<Requested, Fault> {
    let configured = configured(exec);
    let security = match pb::Security::try_from(call.security) {
        Ok(pb::Security::Unspecified) => configured.security,
        Ok(pb::Security::Deny) => configured.security.stricter(Security::Deny),
        Ok(pb::Security::Allowlist) => configured.security.stricter(Security::Allowlist),
        Ok(pb::Security::Full) => configured.security.stricter(Security::Full),
        Err(_) => return Err(unknown("security")),
    };
    let ask = match pb::Ask::try_from(call.ask) {
        Ok(pb::Ask::Unspecified) => configured.ask,
        Ok(pb::Ask::Off) => configured.ask.stricter(Ask::Off),
        Ok(pb::Ask::OnMiss) => configured.ask.stricter(Ask::OnMiss),
        Ok(pb::Ask::Always) => configured.ask.stricter(Ask::Always),
        Err(_) => return Err(unknown("ask")),
    };
    Ok(Requested { security, ask })
}

fn unknown(field: &str) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, format!("the request's `{field}` is none that this version knows"))
}

#[cfg(test)]
mod tests {
    use config::Config;
    use node_host::enforce::{ask_to_wire, security_to_wire};

    use super::*;

    fn exec(text: &str, agent: Option<&str>) -> ExecConfig {
        Config::parse(text).unwrap().exec(agent)
    }

    #[test]
    fn a_call_only_tightens_what_is_configured() {
        let allowlist = "{tools:{exec:{mode:'ask'}}}";
        let agents =
            "{tools:{exec:{security:'allowlist'}},agents:{entries:{a:{tools:{exec:{ask:'always'}}}}}}";
        let table = [
            ("{}", None, None, None, (Security::Full, Ask::Off)),
            ("{}", None, Some(Security::Deny), Some(Ask::Always), (Security::Deny, Ask::Always)),
            (allowlist, None, None, None, (Security::Allowlist, Ask::OnMiss)),
            (allowlist, None, Some(Security::Full), Some(Ask::Off), (Security::Allowlist, Ask::OnMiss)),
            (allowlist, None, Some(Security::Deny), None, (Security::Deny, Ask::OnMiss)),
            (agents, None, None, None, (Security::Allowlist, Ask::Off)),
            (agents, Some("a"), None, Some(Ask::Off), (Security::Allowlist, Ask::Always)),
        ];
        for (text, agent, security, ask, want) in table {
            let call = pb::ExecRequest {
                security: security.map_or(pb::Security::Unspecified, security_to_wire).into(),
                ask: ask.map_or(pb::Ask::Unspecified, ask_to_wire).into(),
                ..pb::ExecRequest::default()
            };
            let found = requested(&exec(text, agent), &call).unwrap();
            assert_eq!((found.security, found.ask), want, "{text} {agent:?} {security:?} {ask:?}");
        }
    }

    #[test]
    fn unknown_words_are_refused() {
        let calls = [
            pb::ExecRequest { security: 99, ..pb::ExecRequest::default() },
            pb::ExecRequest { ask: -1, ..pb::ExecRequest::default() },
        ];
        for call in calls {
            let fault = requested(&exec("{}", None), &call).unwrap_err();
            assert_eq!(fault.code, ErrorCode::InvalidRequest);
        }
    }
}
