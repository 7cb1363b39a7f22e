//! Why a command runs or not, for people.

use fault::Fault;
use policy::explain::{Explanation, Side, explain};
use policy::inline_eval::Input;
use policy::{EffectivePolicy, Requested, Security, Terms};
use proto::v1 as pb;

use super::{Door, check_words, command};

/// A command whose judgement is to be spelled out.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The command.
    pub invocation: &'a pb::Invocation,
    /// Who would run it.
    pub agent: Option<&'a str>,
    /// Where it would run.
    pub workdir: &'a str,
    /// What the gateway's side would ask for.
    pub requested: Requested,
    /// Code for interpreters would need a person's yes.
    pub strict_inline_eval: bool,
}

impl Door {
    /// Judges a command without running it, and spells out why. Skills of the gateway are known only where it is
    /// connected.
    ///
    /// # Errors
    /// When the command or the directory is malformed or a file of the policy cannot be used.
    pub fn explain(&self, question: &Question<'_>) -> Result<Explanation, Fault> {
        let command = command::parse(Some(question.invocation))?;
        let rules = self.rules.for_agent(question.agent)?;
        let requested = question.requested;
        let effective = EffectivePolicy::combine_all(requested, rules.configured, &rules.host);
        if effective.security != Security::Deny {
            check_words(&command)?;
        }
        let cwd = self.workdir(question.workdir)?;
        let judgement = self.judge(
            &command,
            Input::Other,
            Some(&cwd),
            &rules.safe_bins,
            &rules.allowlist,
            Terms {
                policy: &effective,
                strict_inline_eval: question.strict_inline_eval || rules.strict_inline_eval,
            },
        );
        let mut explanation = explain(&judgement, &effective);
        let side = |side, security: Option<Security>, ask: Option<policy::Ask>| Side {
            side,
            security: security.map(Security::as_str),
            ask: ask.map(policy::Ask::as_str),
        };
        explanation.sides = vec![
            side("host", Some(rules.host.security), Some(rules.host.ask)),
            side("config", rules.configured.security, rules.configured.ask),
            side("request", Some(requested.security), Some(requested.ask)),
        ];
        if command.text_for_shell {
            let spans = policy::highlight::executable_spans(&command.text, &command.text);
            explanation.executable_spans = spans.into_iter().map(|span| [span.start, span.end]).collect();
        }
        explanation
            .notes
            .extend(rules.allowlist.problems().iter().map(|problem| format!("out of force: {problem}")));
        if effective.auto_allow_skills {
            explanation.notes.push("the gateway's skills may allow more; they are not known here".to_owned());
        }
        let here = |text: &mut String| *text = self.localised(text);
        explanation.hint.iter_mut().for_each(here);
        for segment in &mut explanation.segments {
            segment.add.iter_mut().chain(&mut segment.add_exact).for_each(here);
        }
        Ok(explanation)
    }
}
