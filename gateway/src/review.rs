//! The automatic reviewer of `mode=auto` (policy spec §8.2, runtime spec §9.9): it sees a command before a person does.
//!
//! It can let a command run once, send it back to the agent, or leave it to a person. Whatever goes wrong leaves it to a
//! person. A yes here is a decision like any other: the node checks it against the plan that it made itself.

mod addressed;
mod denials;
mod endpoint;
mod program;
mod prompt;
mod scope;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod verdict;

use config::{ExecConfig, ReviewerConfig};
use parking_lot::Mutex;
use policy::AutoReview;
use proto::v1 as pb;
use tokio::sync::Semaphore;

use denials::{Denial, Denials};
use prompt::Input;
use verdict::{BadVerdict, Decision, Verdict};

use crate::http;

pub(crate) use verdict::Risk;

/// Longest answer of a reviewer, in bytes.
const ANSWER_MAX: usize = 64 * 1024;
/// Reviews at the same time. Others wait, and their wait is part of their time.
const REVIEWS_MAX: usize = 16;

/// What came of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Review {
    /// Nobody reviews this caller's commands.
    Off,
    /// It may run, this once.
    Allow {
        /// Low or medium.
        risk: Risk,
        /// Fit to be shown.
        rationale: String,
    },
    /// It may not; the agent hears why.
    Deny {
        /// Any.
        risk: Risk,
        /// Fit to be shown.
        rationale: String,
    },
    /// A person decides.
    Person {
        /// Why, fit to be shown.
        why: String,
    },
}

/// Why a reviewer gave no answer. The command is in none of these.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("no reviewer is configured")]
    NoReviewer,
    #[error("the reviewer did not answer in time")]
    Late,
    #[error("the variable that tools.exec.reviewer.apiKeyEnv names holds no key")]
    Key,
    #[error("the reviewer's address cannot be used")]
    Address,
    #[error("the system has no certificates to check the reviewer's with")]
    NoRoots,
    #[error("the reviewer cannot be reached: {0}")]
    Unreachable(std::io::Error),
    #[error("the exchange with the reviewer broke off: {0}")]
    Broken(hyper::Error),
    #[error("the reviewer answered with HTTP status {0}")]
    Status(u16),
    #[error("the reviewer's answer is longer than {ANSWER_MAX} bytes")]
    TooLong,
    #[error("the reviewer's answer was cut off")]
    CutOff,
    #[error("the reviewer's answer is no chat completion")]
    NoCompletion,
    #[error("the reviewer's program cannot be started: {0}")]
    NotStarted(std::io::Error),
    #[error("the reviewer's program ended with {0}")]
    Ended(String),
    #[error("the reviewer's program gave no answer")]
    NoAnswer,
    #[error("the reviewer cannot be understood: {0}")]
    Bad(#[from] BadVerdict),
}

/// Asks reviewers, and counts what they deny.
#[derive(Debug)]
pub(crate) struct Reviewer {
    denials: Mutex<Denials>,
    reviews: Semaphore,
}

impl Default for Reviewer {
    fn default() -> Self {
        Self { denials: Mutex::default(), reviews: Semaphore::new(REVIEWS_MAX) }
    }
}

impl Reviewer {
    /// Reviews a plan. Takes at most the configured time, and a little for what surrounds it.
    pub(crate) async fn review(&self, exec: &ExecConfig, plan: &pb::Plan, session: &str) -> Review {
        if exec.auto_review == AutoReview::Off {
            return Review::Off;
        }
        if let Some(why) = scope::needs_person(plan) {
            return Review::Person { why: why.to_owned() };
        }
        let Some(input) = Input::of(plan) else {
            return Review::Person { why: "it is too long to be reviewed".to_owned() };
        };
        if scope::texts(plan).any(|text| addressed::speaks_to_reviewer(&text)) {
            let rationale = "the command holds text for its reviewer; leave that out".to_owned();
            return self.settle(session, Verdict { decision: Decision::Deny, risk: Risk::High, rationale });
        }
        let config = exec.reviewer.clone().unwrap_or_default();
        let asked = tokio::time::timeout(config.timeout, self.ask(&config, &input));
        match asked.await.unwrap_or(Err(Failure::Late)) {
            Ok(verdict) => self.settle(session, verdict),
            Err(failure) => Review::Person { why: failure.to_string() },
        }
    }

    /// A person answered about a command of this session. Their yes ends its row of denials.
    pub(crate) fn answered_by_person(&self, session: &str, allowed: bool) {
        if allowed {
            self.denials.lock().allowed(session);
        }
    }

    async fn ask(&self, config: &ReviewerConfig, input: &Input) -> Result<Verdict, Failure> {
        let _one = self.reviews.acquire().await.map_err(|_| Failure::NoReviewer)?;
        let key = match &config.api_key_env {
            Some(name) => Some((name.as_str(), key(name)?)),
            None => None,
        };
        let key = key.as_ref().map(|(name, key)| (*name, key.as_str()));
        let answer = if !config.command.is_empty() {
            program::ask(&config.command, key, &input.for_program(config)).await?
        } else if let (Some(url), Some(model)) = (&config.base_url, &config.model) {
            let tls = if url.tls { Some(http::system_tls().await?) } else { None };
            let body = input.for_endpoint(config, model);
            // Large, and not always needed.
            Box::pin(endpoint::complete(url, tls, key.map(|(_, key)| key), body)).await?
        } else {
            return Err(Failure::NoReviewer);
        };
        Ok(verdict::parse_verdict(&answer)?)
    }

    /// What a verdict leads to.
    fn settle(&self, session: &str, verdict: Verdict) -> Review {
        let Verdict { decision, risk, rationale } = verdict;
        match decision {
            Decision::Allow if risk <= Risk::Medium => {
                self.denials.lock().allowed(session);
                Review::Allow { risk, rationale }
            }
            Decision::Allow => {
                Review::Person { why: format!("the reviewer would allow it, at {risk} risk: {rationale}") }
            }
            Decision::Ask => Review::Person { why: format!("the reviewer is not sure: {rationale}") },
            Decision::Deny => match self.denials.lock().denied(session) {
                Denial::ToAgent => Review::Deny { risk, rationale },
                Denial::ToPerson => Review::Person {
                    why: format!("the reviewer denied three commands in a row: {rationale}"),
                },
            },
        }
    }
}

/// The key for an endpoint or a program.
fn key(name: &str) -> Result<String, Failure> {
    match std::env::var(name) {
        Ok(key) if !key.trim().is_empty() => Ok(key.trim().to_owned()),
        Ok(_) | Err(_) => Err(Failure::Key),
    }
}
