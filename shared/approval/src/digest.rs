//! The digest of a plan, and the statement that an approver signs about it.
//!
//! Both are over a canonical form: every field, in a fixed order, each with its length before it. A field that is added
//! to a message does not compile here until somebody decides how it is covered.

#[cfg(test)]
mod tests;

use proto::v1 as pb;
use sha2::{Digest as _, Sha256};

/// Bytes of a digest.
pub const HASH_BYTES: usize = 32;
/// What the canonical form of a plan begins with. A change of the form is a new name.
const PLAN: &[u8] = b"farrun plan v1";
/// What a statement begins with.
const PERMIT: &[u8] = b"farrun permit v1";

/// A canonical form that is being written.
struct Form(Vec<u8>);

impl Form {
    fn new(name: &[u8]) -> Self {
        let mut form = Self(Vec::with_capacity(1024));
        form.bytes(name);
        form
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn signed(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// An enum keeps its number, known here or not.
    fn word(&mut self, word: i32) {
        self.signed(word.into());
    }

    fn flag(&mut self, flag: bool) {
        self.number(flag.into());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn each<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for item in items {
            write(self, item);
        }
    }
}

/// The SHA-256 digest of a plan: of every field but `digest` itself.
#[must_use]
pub fn plan_digest(plan: &pb::Plan) -> [u8; HASH_BYTES] {
    let pb::Plan {
        argv,
        workdir,
        command_text,
        agent_id,
        session_key,
        security,
        ask,
        digest: _,
        needs_approval,
        node_id,
        run_id,
        segments,
        workdir_device,
        workdir_inode,
        env_names,
        env_hash,
        policy_revision,
        created_unix_ms,
        expires_unix_ms,
        nonce,
        reasons,
        why,
        asked_by,
        always,
        always_unavailable,
        input_digest,
        stdin_open,
        terminal,
        signature_required,
        shell,
    } = plan;
    let mut form = Form::new(PLAN);
    form.each(argv, |form, word| form.text(word));
    form.text(workdir);
    form.text(command_text);
    form.text(agent_id);
    form.text(session_key);
    form.word(*security);
    form.word(*ask);
    form.flag(*needs_approval);
    form.text(node_id);
    form.text(run_id);
    form.each(segments, segment);
    form.number(*workdir_device);
    form.number(*workdir_inode);
    form.each(env_names, |form, name| form.text(name));
    form.text(env_hash);
    form.text(policy_revision);
    form.signed(*created_unix_ms);
    form.signed(*expires_unix_ms);
    form.bytes(nonce);
    form.each(reasons, |form, reason| form.text(reason));
    form.text(why);
    form.text(asked_by);
    form.each(always, scope);
    form.text(always_unavailable);
    form.bytes(input_digest);
    form.flag(*stdin_open);
    form.flag(*terminal);
    form.flag(*signature_required);
    form.each(shell.as_slice(), bound_file);
    Sha256::digest(&form.0).into()
}

fn segment(form: &mut Form, segment: &pb::PlanSegment) {
    let pb::PlanSegment { argv, join, nested, files } = segment;
    form.each(argv, |form, word| form.text(word));
    form.text(join);
    form.flag(*nested);
    form.each(files, bound_file);
}

fn bound_file(form: &mut Form, file: &pb::BoundFile) {
    let pb::BoundFile { role, word, path, real_path, device, inode, sha256 } = file;
    form.word(*role);
    form.number((*word).into());
    form.text(path);
    form.text(real_path);
    form.number(*device);
    form.number(*inode);
    form.bytes(sha256);
}

fn scope(form: &mut Form, scope: &pb::AlwaysScope) {
    let pb::AlwaysScope { scope, rules, not_durable } = scope;
    form.word(*scope);
    form.each(rules, |form, rule| {
        let pb::ScopeRule { pattern, arg_pattern, text } = rule;
        form.text(pattern);
        form.text(arg_pattern);
        form.text(text);
    });
    form.text(not_durable);
}

/// The plan with its digest filled in.
#[must_use]
pub fn seal(mut plan: pb::Plan) -> pb::Plan {
    plan.digest = plan_digest(&plan).to_vec().into();
    plan
}

/// What an approver signs: the plan's digest, the decision, and what an allow-always covers. Who relays a decision can
/// change none of them; the plan itself says when it ends and carries a nonce of the node.
#[must_use]
pub fn permit_statement(
    plan_digest: &[u8],
    decision: pb::Decision,
    lasting: Option<&pb::Lasting>,
) -> Vec<u8> {
    let mut form = Form::new(PERMIT);
    form.bytes(plan_digest);
    form.word(decision.into());
    match lasting {
        None => form.flag(false),
        Some(pb::Lasting { scope, until }) => {
            form.flag(true);
            form.word(*scope);
            match until {
                None => form.number(0),
                Some(pb::lasting::Until::Forever(flag)) => {
                    form.number(1);
                    form.flag(*flag);
                }
                Some(pb::lasting::Until::ForMs(ms)) => {
                    form.number(2);
                    form.number(*ms);
                }
                Some(pb::lasting::Until::Session(flag)) => {
                    form.number(3);
                    form.flag(*flag);
                }
            }
        }
    }
    form.0
}
