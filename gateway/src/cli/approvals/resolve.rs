//! `gateway approvals resolve`: a person's answer, about exactly what they saw.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fault::{ErrorCode, Fault};
use identity::PrivateKey;
use proto::v1::{self as pb, lasting::Until};
use serde_json::json;

use super::super::{Common, parse_duration};
use super::card::{PLAN_DIGITS, is_sealed};
use super::key;
use super::record::{self, cut, hex, lasting_words, one_line, slug};

/// Command in the answer, in characters.
const COMMAND_MAX: usize = 120;

#[derive(Debug, Args)]
pub(in super::super) struct ResolveArgs {
    /// The request: its id, or a unique beginning of it.
    id: String,
    /// allow-once, allow-always or deny; also allow, once, always, reject, block.
    decision: String,
    /// What allow-always covers [default: exact].
    #[arg(long, value_enum, value_name = "SCOPE")]
    scope: Option<ScopeWord>,
    /// Allow always for this long only.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, conflicts_with = "session")]
    time: Option<Duration>,
    /// Allow always for the session of the request only.
    #[arg(long)]
    session: bool,
    /// Answer only if the request is about this plan: the beginning of its digest, as the card shows it.
    #[arg(long, value_name = "DIGEST")]
    plan: Option<String>,
    /// Sign with this key [default: the operator's of `--identity`, else approver-key.pem of the state directory].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScopeWord {
    /// These programs with these arguments, in this directory.
    Exact,
    /// These programs with these arguments.
    Args,
    /// These programs.
    Program,
}

impl From<ScopeWord> for pb::Scope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::Exact => Self::Exact,
            ScopeWord::Args => Self::ProgramArgs,
            ScopeWord::Program => Self::Program,
        }
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    id: String,
    decision: pb::Decision,
    lasting: Option<pb::Lasting>,
}

pub(super) async fn run(common: &Common, args: ResolveArgs) -> Result<u8, Fault> {
    let answer = args.answer()?;
    let mut approvals = common.connect().await?.approvals();
    let found = approvals
        .get(pb::ApprovalRef { id: answer.id.clone() })
        .await
        .map_err(|status| Fault::from_status(&status))?
        .into_inner();
    let plan = found.plan.clone().unwrap_or_default();
    check(&found, &plan, &answer, args.plan.as_deref())?;
    let mut request = pb::ResolveRequest {
        // Not what was typed: that could mean another one meanwhile.
        id: found.approval_id.clone(),
        decision: answer.decision.into(),
        lasting: answer.lasting,
        plan_digest: plan.digest.clone(),
        ..pb::ResolveRequest::default()
    };
    // A no needs no signature: nothing runs.
    let signs = answer.decision != pb::Decision::Deny && (plan.signature_required || args.key.is_some());
    if signs {
        sign(&mut request, &key::existing(common, args.key.as_deref())?)?;
    }
    let decided =
        approvals.resolve(request).await.map_err(|status| Fault::from_status(&status))?.into_inner();
    if common.json {
        let rules = rules(&plan, answer.lasting.as_ref());
        let mut line = record::json(&decided);
        line["signed"] = signs.into();
        line["rules"] = json!(rules);
        super::super::output::print_json(&line);
    } else {
        say(&decided, &plan, &answer, signs);
    }
    Ok(0)
}

impl ResolveArgs {
    fn answer(&self) -> Result<Answer, Fault> {
        let (id, decision) = match (decision(&self.id), decision(&self.decision)) {
            (_, Some(decision)) => (&self.id, decision),
            (Some(decision), None) => (&self.decision, decision),
            (None, None) => {
                let message = format!("neither `{}` nor `{}` is a decision", self.id, self.decision);
                return Err(Fault::new(ErrorCode::InvalidRequest, message)
                    .hint("gateway approvals resolve ID allow-once|allow-always|deny"));
            }
        };
        let limits = self.scope.is_some() || self.time.is_some() || self.session;
        let lasting = match decision {
            pb::Decision::AllowAlways => Some(self.lasting()?),
            pb::Decision::AllowOnce | pb::Decision::Deny | pb::Decision::Unspecified if limits => {
                return Err(Fault::new(
                    ErrorCode::InvalidRequest,
                    "`--scope`, `--for` and `--session` belong to allow-always",
                ));
            }
            pb::Decision::AllowOnce | pb::Decision::Deny | pb::Decision::Unspecified => None,
        };
        Ok(Answer { id: id.clone(), decision, lasting })
    }

    /// Always said in full: what is signed must not depend on what a gateway takes for granted.
    fn lasting(&self) -> Result<pb::Lasting, Fault> {
        let until = match (self.time, self.session) {
            (Some(time), _) => Until::ForMs(
                u64::try_from(time.as_millis())
                    .map_err(|_| Fault::new(ErrorCode::InvalidRequest, "`--for` is out of range"))?,
            ),
            (None, true) => Until::Session(true),
            (None, false) => Until::Forever(true),
        };
        let scope = pb::Scope::from(self.scope.unwrap_or(ScopeWord::Exact));
        Ok(pb::Lasting { scope: scope.into(), until: Some(until) })
    }
}

/// A decision, or another word for one (runtime spec §9.8).
fn decision(word: &str) -> Option<pb::Decision> {
    match word.to_ascii_lowercase().as_str() {
        "allow-once" | "allowonce" | "allow" | "once" => Some(pb::Decision::AllowOnce),
        "allow-always" | "allowalways" | "always" => Some(pb::Decision::AllowAlways),
        "deny" | "reject" | "block" => Some(pb::Decision::Deny),
        _ => None,
    }
}

/// Whether the request is one that may be answered so: the gateway is not believed.
fn check(
    found: &pb::Approval,
    plan: &pb::Plan,
    answer: &Answer,
    wanted_plan: Option<&str>,
) -> Result<(), Fault> {
    let mismatch = |what: &str| {
        Fault::new(ErrorCode::ApprovalRequestMismatch, what)
            .hint("nothing was decided; look at it: `gateway approvals show`")
    };
    // Checked also for a no: it would be about something else.
    if let Some(wanted) = wanted_plan {
        let wanted = wanted.to_ascii_lowercase();
        if wanted.len() < PLAN_DIGITS {
            return Err(Fault::new(
                ErrorCode::InvalidRequest,
                format!("`--plan` takes at least {PLAN_DIGITS} digits of the plan's digest"),
            ));
        }
        if !hex(&plan.digest).starts_with(&wanted) {
            return Err(mismatch("the request is about another plan than the one named with `--plan`"));
        }
    }
    if answer.decision == pb::Decision::Deny {
        return Ok(());
    }
    let id = found.approval_id.to_lowercase();
    if !id.starts_with(&answer.id.to_lowercase()) {
        return Err(mismatch("the gateway answered with another request than the one asked for"));
    }
    if !is_sealed(plan) {
        return Err(mismatch("the plan that the gateway shows is not the one that it asks about"));
    }
    if approval::shown(&plan.command_text).is_none() {
        return Err(Fault::new(
            ErrorCode::CommandDisplayLimit,
            "the command is longer than can be shown, so it cannot be allowed",
        ));
    }
    Ok(())
}

fn sign(request: &mut pb::ResolveRequest, key: &PrivateKey) -> Result<(), Fault> {
    let internal = |error: identity::IdentityError| Fault::new(ErrorCode::Internal, error.to_string());
    let statement =
        approval::permit_statement(&request.plan_digest, request.decision(), request.lasting.as_ref());
    request.signature = key.sign(&statement).map_err(internal)?.into();
    request.key = key.public().map_err(internal)?.as_bytes().to_vec().into();
    Ok(())
}

/// The rules of the scope that was chosen, in words.
fn rules(plan: &pb::Plan, lasting: Option<&pb::Lasting>) -> Vec<String> {
    let chosen = |scope: &&pb::AlwaysScope| lasting.is_some_and(|lasting| lasting.scope == scope.scope);
    plan.always.iter().filter(chosen).flat_map(|scope| &scope.rules).map(|rule| rule.text.clone()).collect()
}

fn say(decided: &pb::Approval, plan: &pb::Plan, answer: &Answer, signed: bool) {
    let what = match answer.decision {
        pb::Decision::AllowOnce => "allowed once",
        pb::Decision::AllowAlways => "allowed always",
        pb::Decision::Deny => "denied",
        pb::Decision::Unspecified => "not decided",
    };
    let signed = if signed { ", signed" } else { "" };
    let node = one_line(&decided.node_name);
    say_line!("{}: {what}{signed}: {} on {node}", slug(decided), cut(&plan.command_text, COMMAND_MAX));
    let Some(lasting) = &answer.lasting else { return };
    let forever = matches!(lasting.until, Some(Until::Forever(_)));
    say_line!("{} ({}):", if forever { "will be stored" } else { "will hold" }, lasting_words(lasting));
    for rule in rules(plan, Some(lasting)) {
        say_line!("  {}", one_line(&rule));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ResolveArgs,
    }

    fn parse(line: &str) -> Result<Answer, Option<ErrorCode>> {
        let words = std::iter::once("resolve").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|_| None)?;
        line.args.answer().map_err(|fault| Some(fault.code))
    }

    #[test]
    fn forms_of_an_answer() {
        let lasting = |scope: pb::Scope, until| Some(pb::Lasting { scope: scope.into(), until: Some(until) });
        let exact = lasting(pb::Scope::Exact, Until::Forever(true));
        let (once, always, deny) = (pb::Decision::AllowOnce, pb::Decision::AllowAlways, pb::Decision::Deny);
        let table = [
            ("ab allow-once", "ab", once, None),
            ("ab allow", "ab", once, None),
            ("ab once", "ab", once, None),
            ("ab allowonce", "ab", once, None),
            ("ab Allow-Once", "ab", once, None),
            ("allow-once ab", "ab", once, None),
            ("ab allow-always", "ab", always, exact),
            ("always ab", "ab", always, exact),
            ("ab deny", "ab", deny, None),
            ("ab reject", "ab", deny, None),
            ("block ab", "ab", deny, None),
            // An id that is a word of a decision: the usual order holds.
            ("allow deny", "allow", deny, None),
            ("ab always --scope args", "ab", always, lasting(pb::Scope::ProgramArgs, Until::Forever(true))),
            (
                "ab always --scope program --for 1h",
                "ab",
                always,
                lasting(pb::Scope::Program, Until::ForMs(3_600_000)),
            ),
            ("ab always --session", "ab", always, lasting(pb::Scope::Exact, Until::Session(true))),
        ];
        for (line, id, decision, lasting) in table {
            assert_eq!(parse(line), Ok(Answer { id: id.to_owned(), decision, lasting }), "{line}");
        }
        let invalid = Some(ErrorCode::InvalidRequest);
        let bad = [
            ("ab maybe", invalid),
            ("ab once --scope exact", invalid),
            ("ab deny --for 1h", invalid),
            ("ab once --session", invalid),
            ("ab always --for 1h --session", None),
            ("ab always --for 0", None),
            ("ab always --scope all", None),
            ("ab", None),
            ("ab once more", None),
        ];
        for (line, want) in bad {
            assert_eq!(parse(line), Err(want), "{line}");
        }
    }

    #[test]
    fn a_plan_that_is_not_what_is_asked_about_is_refused() {
        let plan = approval::seal(pb::Plan { command_text: "ls".to_owned(), ..pb::Plan::default() });
        let other = pb::Plan { command_text: "rm".to_owned(), ..plan.clone() };
        let long = approval::seal(pb::Plan { command_text: "x".repeat(20_000), ..pb::Plan::default() });
        let digest = hex(&plan.digest);
        let (once, deny) = (pb::Decision::AllowOnce, pb::Decision::Deny);
        let mismatch = Err(ErrorCode::ApprovalRequestMismatch);
        let table = [
            ("AB", &plan, once, None, Ok(())),
            ("abc", &plan, once, None, mismatch),
            ("ab", &other, once, None, mismatch),
            ("ab", &other, deny, None, Ok(())),
            ("ab", &long, once, None, Err(ErrorCode::CommandDisplayLimit)),
            ("ab", &long, deny, None, Ok(())),
            ("ab", &plan, once, Some(digest.to_uppercase()), Ok(())),
            ("ab", &plan, once, digest.get(..16).map(str::to_owned), Ok(())),
            ("ab", &plan, once, digest.get(..15).map(str::to_owned), Err(ErrorCode::InvalidRequest)),
            ("ab", &plan, once, Some("0".repeat(16)), mismatch),
            ("ab", &plan, deny, Some("0".repeat(16)), mismatch),
        ];
        for (id, plan, decision, wanted, want) in table {
            let found = pb::Approval { approval_id: "ab".to_owned(), ..pb::Approval::default() };
            let answer = Answer { id: id.to_owned(), decision, lasting: None };
            let checked = check(&found, plan, &answer, wanted.as_deref()).map_err(|fault| fault.code);
            assert_eq!(checked, want, "{id} {decision:?} {wanted:?}");
        }
    }

    #[test]
    fn what_is_signed_is_the_whole_decision() {
        let key = PrivateKey::generate().unwrap();
        let plan = approval::seal(pb::Plan::default());
        let scope =
            |scope: pb::Scope| Some(pb::Lasting { scope: scope.into(), until: Some(Until::ForMs(1)) });
        let (lasting, wider) = (scope(pb::Scope::Exact), scope(pb::Scope::Program));
        let mut request = pb::ResolveRequest {
            decision: pb::Decision::AllowAlways.into(),
            lasting,
            plan_digest: plan.digest.clone(),
            ..pb::ResolveRequest::default()
        };
        sign(&mut request, &key).unwrap();
        let public = key.public().unwrap();
        assert_eq!(request.key.as_ref(), public.as_bytes());
        let table = [
            (plan.digest.as_ref(), pb::Decision::AllowAlways, lasting, true),
            (&[0; 32], pb::Decision::AllowAlways, lasting, false),
            (plan.digest.as_ref(), pb::Decision::AllowOnce, None, false),
            (plan.digest.as_ref(), pb::Decision::AllowAlways, wider, false),
        ];
        for (digest, decision, lasting, good) in table {
            let statement = approval::permit_statement(digest, decision, lasting.as_ref());
            assert_eq!(public.verify(&statement, &request.signature), good, "{decision:?} {lasting:?}");
        }
    }
}
