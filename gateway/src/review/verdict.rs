//! What a reviewer answers, read strictly (policy spec §8.2): half an answer, or two, is none.

use std::fmt;

use serde::Deserialize;

use super::text::escaped;

/// Longest rationale, in characters.
pub(super) const RATIONALE_MAX: usize = 2000;

/// How dangerous a reviewer holds a command to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Risk {
    /// It reads, or changes what is easily put back.
    Low,
    /// It changes what belongs to the task.
    Medium,
    /// Anything else.
    High,
}

/// What a reviewer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It may run, this once.
    Allow,
    /// It may not; the agent hears why.
    Deny,
    /// A person decides.
    Ask,
}

/// An answer that says everything it has to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) decision: Decision,
    pub(super) risk: Risk,
    /// Fit to be shown.
    pub(super) rationale: String,
}

/// Why an answer is none. The words are stable; the answer itself is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadVerdict {
    /// It is not one JSON object with exactly the three members.
    #[error("its answer is not one JSON object with decision, risk and rationale, each once")]
    Shape,
    /// A word that is not known.
    #[error("its answer has an unknown decision or risk")]
    Word,
    /// Nobody reads that much.
    #[error("its rationale is longer than {RATIONALE_MAX} characters")]
    Long,
}

/// The members, each there once. Words are read as texts: a format that also takes other forms of them would take more
/// than the spec does.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    decision: String,
    risk: String,
    rationale: String,
}

/// Reads an answer.
///
/// # Errors
/// It is not exactly what was asked for. Then a person decides.
pub(super) fn parse_verdict(answer: &str) -> Result<Verdict, BadVerdict> {
    // A list of three texts would otherwise do as well.
    if !answer.trim_ascii_start().starts_with('{') {
        return Err(BadVerdict::Shape);
    }
    let wire: Wire = serde_json::from_str(answer).map_err(|_| BadVerdict::Shape)?;
    let decision = match wire.decision.as_str() {
        "allow" => Decision::Allow,
        "deny" => Decision::Deny,
        "ask" => Decision::Ask,
        _ => return Err(BadVerdict::Word),
    };
    let risk = match wire.risk.as_str() {
        "low" => Risk::Low,
        "medium" => Risk::Medium,
        "high" => Risk::High,
        _ => return Err(BadVerdict::Word),
    };
    if wire.rationale.chars().nth(RATIONALE_MAX).is_some() {
        return Err(BadVerdict::Long);
    }
    Ok(Verdict { decision, risk, rationale: escaped(&wire.rationale) })
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(decision: Decision, risk: Risk, rationale: &str) -> Result<Verdict, BadVerdict> {
        Ok(Verdict { decision, risk, rationale: rationale.to_owned() })
    }

    #[test]
    fn answers() {
        let shape = || Err(BadVerdict::Shape);
        let word = || Err(BadVerdict::Word);
        let table = [
            (
                r#"{"decision":"allow","risk":"low","rationale":"reads"}"#,
                verdict(Decision::Allow, Risk::Low, "reads"),
            ),
            (
                " {\"rationale\":\"\",\"risk\":\"medium\",\n\"decision\":\"deny\"}\n",
                verdict(Decision::Deny, Risk::Medium, ""),
            ),
            (
                r#"{"decision":"ask","risk":"high","rationale":"a\u001b[1m\nb"}"#,
                verdict(Decision::Ask, Risk::High, "a\\u{1b}[1m\\u{a}b"),
            ),
            // Not JSON, or not all of it.
            ("", shape()),
            ("allow", shape()),
            ("null", shape()),
            ("{}", shape()),
            (r#"{"decision":"allow","risk":"low","rationale":"re"#, shape()),
            (r#"{"decision":"allow","risk":"low","rationale":"reads","#, shape()),
            (r#"{"decision":"allow","risk":"low","rationale":"reads",}"#, shape()),
            // More than one, or something around it.
            (r#"Sure! {"decision":"allow","risk":"low","rationale":"x"}"#, shape()),
            (r#"{"decision":"allow","risk":"low","rationale":"x"} done"#, shape()),
            (
                r#"{"decision":"allow","risk":"low","rationale":"x"}{"decision":"deny","risk":"low","rationale":"x"}"#,
                shape(),
            ),
            ("```json\n{\"decision\":\"allow\",\"risk\":\"low\",\"rationale\":\"x\"}\n```", shape()),
            ("\u{feff}{\"decision\":\"allow\",\"risk\":\"low\",\"rationale\":\"x\"}", shape()),
            // Too many members, too few, or one twice.
            (r#"{"decision":"allow","risk":"low","rationale":"x","confidence":1}"#, shape()),
            (r#"{"decision":"allow","risk":"low"}"#, shape()),
            (r#"{"decision":"allow","rationale":"x"}"#, shape()),
            (r#"{"risk":"low","rationale":"x"}"#, shape()),
            (r#"{"decision":"deny","decision":"allow","risk":"low","rationale":"x"}"#, shape()),
            (r#"{"decision":"allow","risk":"high","risk":"low","rationale":"x"}"#, shape()),
            (r#"{"decision":"allow","risk":"low","rationale":"x","rationale":"x"}"#, shape()),
            (r#"{"decision":"allow","\u0064ecision":"allow","risk":"low","rationale":"x"}"#, shape()),
            (r#"{"Decision":"allow","risk":"low","rationale":"x"}"#, shape()),
            // Other types, other forms.
            (r#"["allow","low","x"]"#, shape()),
            (r#"{"decision":{"allow":null},"risk":"low","rationale":"x"}"#, shape()),
            (r#"{"decision":["allow"],"risk":"low","rationale":"x"}"#, shape()),
            (r#"{"decision":true,"risk":"low","rationale":"x"}"#, shape()),
            (r#"{"decision":"allow","risk":0,"rationale":"x"}"#, shape()),
            (r#"{"decision":"allow","risk":"low","rationale":null}"#, shape()),
            (r#"{"decision":"Allow","risk":"low","rationale":"x"}"#, word()),
            (r#"{"decision":"allow ","risk":"low","rationale":"x"}"#, word()),
            (r#"{"decision":"allow-always","risk":"low","rationale":"x"}"#, word()),
            (r#"{"decision":"allow","risk":"none","rationale":"x"}"#, word()),
            (r#"{"decision":"","risk":"low","rationale":"x"}"#, word()),
        ];
        for (answer, want) in table {
            assert_eq!(parse_verdict(answer), want, "{answer}");
        }
    }

    #[test]
    fn a_rationale_is_bounded_in_characters() {
        let answer =
            |length| format!(r#"{{"decision":"deny","risk":"low","rationale":"{}"}}"#, "ä".repeat(length));
        assert!(parse_verdict(&answer(RATIONALE_MAX)).is_ok());
        assert_eq!(parse_verdict(&answer(RATIONALE_MAX + 1)), Err(BadVerdict::Long));
    }

    proptest! {
        /// Cut anywhere, it is no answer.
        #[test]
        fn no_part_of_an_answer_is_one(cut in 0_usize..58) {
            let whole = r#"{"decision":"allow","risk":"low","rationale":"it reads a"}"#;
            prop_assert!(parse_verdict(whole).is_ok());
            prop_assert_eq!(parse_verdict(&whole[..cut.min(whole.len() - 1)]), Err(BadVerdict::Shape));
        }

        #[test]
        fn never_panics(answer in "[ -~\\PC]{0,80}") {
            let _ = parse_verdict(&answer);
        }
    }
}
