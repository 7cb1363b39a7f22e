//! From a person's yes to a permit: the plan is the one that was asked about, the decision is one that counts here, and
//! nothing changed since (policy spec §7.6, §7.9, §1.10).

use std::time::{Duration, Instant};

use fault::{ErrorCode, Fault};
use policy::bind::{Keepable, Width};
use proto::v1 as pb;
use proto::v1::lasting::Until as WireUntil;

use super::binding::{Binding, rule_text};
use super::grants::{FOR_MAX, Until};
use super::open_plans::{Digest, Open};
use super::permit::shortened;
use super::{Asked, Considered, Door, Kept, Permit, invalid};
use crate::facts;

impl Door {
    /// Ties the command to what it would run and keeps the plan until it is decided.
    ///
    /// # Errors
    /// It cannot be tied, or too many wait.
    pub(super) fn ask(&self, asked: &Asked, considered: &Considered) -> Result<pb::Plan, Fault> {
        let Binding { plan, keepable, .. } = self.bind(asked, considered)?;
        let plan = approval::seal(pb::Plan {
            nonce: nonce()?.to_vec().into(),
            signature_required: self.requires_signature()?,
            ..plan
        });
        let digest = digest(&plan.digest)?;
        let snapshot = considered.snapshot();
        self.plans.add(digest, Open { plan: plan.clone(), snapshot, keepable }, Instant::now())?;
        tracing::info!(run = %asked.run_id, plan = %hex(&plan.digest), "a person is asked");
        self.note("approval.requested", || {
            serde_json::json!({
                "plan": hex(&plan.digest), "runId": plan.run_id, "command": shortened(&plan.command_text), "cwd": plan.workdir,
                "agentId": plan.agent_id, "reasons": plan.reasons,
            })
        });
        Ok(plan)
    }

    /// Uses a decision: once, for the run that it is about, if nothing changed.
    ///
    /// # Errors
    /// The decision does not count, was used, came too late, is about something else, or what it is about changed.
    pub(super) fn redeem(
        &self,
        asked: Asked,
        considered: &Considered,
        decision: &pb::Permit,
    ) -> Result<Permit, Fault> {
        let plan_digest = digest(&decision.plan_digest)?;
        match decision.decision() {
            pb::Decision::AllowOnce if decision.lasting.is_none() => {}
            pb::Decision::AllowAlways if decision.lasting.is_some() => {}
            pb::Decision::AllowOnce | pb::Decision::AllowAlways => {
                return Err(invalid("allow-always says for what and how long, allow-once does not"));
            }
            pb::Decision::Deny => {
                return Err(Fault::new(ErrorCode::SystemRunDenied, "SYSTEM_RUN_DENIED: user-denied"));
            }
            pb::Decision::Unspecified => return Err(invalid("the permit holds no known decision")),
        }
        let approver = self.approver(decision, &plan_digest)?;
        // From here on the decision is used, whatever comes of it.
        let open = self.plans.take(&plan_digest, Instant::now())?;
        if open.plan.expires_unix_ms <= facts::clock_unix_ms() {
            return Err(Fault::new(ErrorCode::ApprovalExpired, "the approval's time was over")
                .hint("ask again: run the command once more"));
        }
        let approved = &open.plan;
        // What the caller says is compared first: whoever asks for something else should hear that.
        let now = self.identity_of(&asked, considered);
        if let Some(mismatch) = approval::mismatch(approved, &now) {
            let code = if mismatch.env {
                ErrorCode::ApprovalEnvMismatch
            } else {
                ErrorCode::ApprovalRequestMismatch
            };
            return Err(
                Fault::new(code, mismatch.to_string()).hint("an approval is about one request; ask again")
            );
        }
        if !open.snapshot.holds_in(&considered.snapshot()) {
            return Err(changed("exec approval policy changed; request approval again"));
        }
        let Binding { plan, argv, bound, .. } =
            self.bind(&asked, considered).map_err(|fault| changed(&fault.message))?;
        if let Some(drift) = approval::drift(approved, &plan) {
            return Err(changed(&drift.to_string()));
        }
        let kept = self.keep(&asked, &open, decision.lasting.as_ref());
        self.note("approval.decided", || {
            serde_json::json!({
                "plan": hex(&decision.plan_digest), "runId": approved.run_id, "approvalId": decision.approval_id,
                "decision": decision.decision().as_str_name().trim_start_matches("DECISION_").to_lowercase().replace('_', "-"), "decidedBy": approver.as_ref().unwrap_or(&decision.decided_by),
                "signed": approver.is_some(), "stored": kept.stored, "notStored": kept.not_stored,
            })
        });
        let permit = self.permit(asked, considered, argv, Some(Box::new(bound)), kept)?;
        Ok(permit.by_approval(&decision.approval_id))
    }

    /// The fields of a plan that are the caller's.
    fn identity_of(&self, asked: &Asked, considered: &Considered) -> pb::Plan {
        let mut env_names: Vec<_> = asked.overrides.iter().map(|(name, _)| name.clone()).collect();
        env_names.sort_unstable();
        pb::Plan {
            workdir: considered.cwd.display().to_string(),
            command_text: asked.command.text.clone(),
            agent_id: asked.agent.clone().unwrap_or_default(),
            session_key: asked.session_key.clone(),
            node_id: self.node_id.clone(),
            run_id: asked.run_id.to_string(),
            env_names,
            env_hash: policy::allowlist::env_hash(&asked.overrides).unwrap_or_default(),
            input_digest: asked.input_digest.to_vec().into(),
            stdin_open: asked.takes_input(),
            terminal: asked.is_terminal(),
            ..pb::Plan::default()
        }
    }

    /// Who signed, where the decision is signed or must be.
    fn approver(&self, decision: &pb::Permit, plan_digest: &Digest) -> Result<Option<String>, Fault> {
        let was_required = self.plans.look(plan_digest, |open| open.plan.signature_required).unwrap_or(false);
        if !was_required && !self.requires_signature()? {
            return Ok(None);
        }
        if decision.signature.is_empty() {
            return Err(Fault::new(
                ErrorCode::ApprovalSignatureRequired,
                "this node takes only decisions that an enrolled approver signed",
            )
            .hint("`gateway approvals key` shows your key; the node's owner adds it: `node-host approvers add NAME KEY`"));
        }
        let statement =
            approval::permit_statement(plan_digest, decision.decision(), decision.lasting.as_ref());
        let approvers = self.approvers.load()?;
        let signer = approvers.iter().find(|approver| approver.key.as_bytes() == decision.key.as_ref());
        match signer {
            Some(approver) if approver.key.verify(&statement, &decision.signature) => {
                Ok(Some(approver.name.clone()))
            }
            Some(_) | None => Err(Fault::new(
                ErrorCode::ApprovalSignatureInvalid,
                "no approver of this node signed this decision about this plan",
            )
            .hint("`node-host approvers list` on that machine shows whose signatures count")),
        }
    }

    fn requires_signature(&self) -> Result<bool, Fault> {
        self.rules.requires_signature()
    }

    /// Keeps what an allow-always says. What cannot be kept makes no difference to the run: the answer says so.
    fn keep(&self, asked: &Asked, open: &Open, lasting: Option<&pb::Lasting>) -> Kept {
        let Some(lasting) = lasting else { return Kept::default() };
        match self.try_keep(asked, open, lasting) {
            Ok(stored) => Kept { stored, not_stored: String::new() },
            Err(not_stored) => {
                tracing::warn!(run = %asked.run_id, not_stored, "an allow-always was not kept");
                Kept { stored: Vec::new(), not_stored }
            }
        }
    }

    fn try_keep(&self, asked: &Asked, open: &Open, lasting: &pb::Lasting) -> Result<Vec<String>, String> {
        let width = match lasting.scope() {
            pb::Scope::Exact => Width::Exact,
            pb::Scope::ProgramArgs => Width::ProgramArgs,
            pb::Scope::Program => Width::Program,
            pb::Scope::Unspecified => return Err("the decision names no known scope".to_owned()),
        };
        let Some(Keepable { entries, not_durable, .. }) =
            open.keepable.iter().find(|kept| kept.width == width)
        else {
            return Err(if open.plan.always_unavailable.is_empty() {
                "this scope was not offered".to_owned()
            } else {
                open.plan.always_unavailable.clone()
            });
        };
        let agent = asked.agent.as_deref();
        let texts = || entries.iter().map(|entry| rule_text(width, entry));
        match lasting.until {
            Some(WireUntil::Forever(true)) => {
                if let Some(reason) = not_durable {
                    return Err(reason.clone());
                }
                self.approvals().keep(agent, entries).map_err(|fault| {
                    format!("exec-approvals.json could not be changed: {}", fault.message)
                })?;
                Ok(texts().collect())
            }
            Some(WireUntil::ForMs(ms)) if ms > 0 => {
                let time = Duration::from_millis(ms).min(FOR_MAX);
                self.grants.add(agent, Until::Moment(Instant::now() + time), entries.clone());
                Ok(texts().map(|text| format!("{text}, for {} s", time.as_secs())).collect())
            }
            Some(WireUntil::Session(true)) if !asked.session_key.is_empty() => {
                self.grants.add(agent, Until::Session(asked.session_key.clone()), entries.clone());
                Ok(texts().map(|text| format!("{text}, for this session")).collect())
            }
            Some(WireUntil::Session(true)) => Err("the run names no session".to_owned()),
            Some(WireUntil::Forever(_) | WireUntil::ForMs(_) | WireUntil::Session(_)) | None => {
                Err("the decision does not say for how long".to_owned())
            }
        }
    }
}

fn changed(what: &str) -> Fault {
    let message = what.strip_prefix("SYSTEM_RUN_DENIED: ").unwrap_or(what);
    Fault::new(ErrorCode::SystemRunDenied, format!("SYSTEM_RUN_DENIED: {message}"))
        .hint("nothing ran; ask again to decide about what is there now")
}

fn digest(bytes: &[u8]) -> Result<Digest, Fault> {
    Digest::try_from(bytes).map_err(|_| invalid("a plan's digest has 32 bytes"))
}

fn nonce() -> Result<[u8; 16], Fault> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Fault::new(ErrorCode::Internal, format!("no random numbers: {error}")))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
