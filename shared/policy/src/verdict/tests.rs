use proptest::{prelude::*, sample::select};

use super::*;
use crate::{
    HostPolicy, Requested, allowlist::Allowlist, fake::Machine, inline_eval::Input, safe_bins::SafeBins,
    skills::Skills,
};

struct Setup {
    machine: Machine,
    allowlist: Allowlist,
    safe_bins: SafeBins,
    skills: Skills,
    policy: EffectivePolicy,
    strict: bool,
}

fn setup(allow: &[&str], security: Security, ask: Ask, ask_fallback: AskFallback) -> Setup {
    let entries: Vec<_> = allow
        .iter()
        .map(|pattern| crate::AllowEntry { pattern: (*pattern).to_owned(), ..Default::default() })
        .collect();
    let host = HostPolicy { security, ask, ask_fallback, ..HostPolicy::fail_closed() };
    Setup {
        machine: Machine::usual(),
        allowlist: Allowlist::compile(&entries, None, &[]),
        safe_bins: SafeBins::new(&Default::default()).0,
        skills: Skills::default(),
        policy: EffectivePolicy::combine(Requested { security: Security::Full, ask: Ask::Off }, &host),
        strict: false,
    }
}

fn listed(allow: &[&str]) -> Setup {
    setup(allow, Security::Allowlist, Ask::OnMiss, AskFallback::Deny)
}

impl Setup {
    fn judge(&self, text: &str) -> Judgement {
        let rules = Rules {
            allowlist: &self.allowlist,
            safe_bins: &self.safe_bins,
            skills: &self.skills,
            input: Input::Other,
        };
        let terms = Terms { policy: &self.policy, strict_inline_eval: self.strict };
        judge(Invocation::Shell(text), self.machine.lookup(), rules, terms)
    }

    /// `run`, or the reason.
    fn word(&self, text: &str) -> &'static str {
        match self.judge(text).verdict {
            Verdict::Run(_) => "run",
            Verdict::NeedsApproval(asked) => asked.reasons[0].as_str(),
            Verdict::Denied(denial) => denial.reason,
        }
    }

    fn alone(&self, text: &str) -> Verdict {
        self.judge(text).without_approver().verdict
    }
}

fn shell(text: &str) -> Verdict {
    Verdict::Run(Launch::Shell(text.to_owned()))
}

fn argv(words: &[&str]) -> Verdict {
    Verdict::Run(Launch::Argv(words.iter().map(|word| (*word).to_owned()).collect()))
}

#[test]
fn what_runs_is_the_plan_with_every_word_quoted_and_every_program_pinned() {
    let setup = listed(&["git", "ls", "nohup"]);
    let table = [
        ("git log -n 3", argv(&["/usr/bin/git", "log", "-n", "3"])),
        ("g\"i\"t 'a b' \"; x\" \\;", argv(&["/usr/bin/git", "a b", "; x", ";"])),
        ("nice timeout 9 git log", argv(&["/usr/bin/nice", "/usr/bin/timeout", "9", "/usr/bin/git", "log"])),
        ("git log | head -n 5", shell("'/usr/bin/git' 'log' | '/usr/bin/head' '-n' '5'")),
        ("git log |& head -n 5", shell("'/usr/bin/git' 'log' 2>&1 | '/usr/bin/head' '-n' '5'")),
        (
            "! git log && ls || cd sub\nls;",
            shell("! '/usr/bin/git' 'log' && '/usr/bin/ls' || 'cd' 'sub'; '/usr/bin/ls'"),
        ),
        ("cd /srv", shell("'cd' '/srv'")),
        ("git commit -m 'it'\\''s'", argv(&["/usr/bin/git", "commit", "-m", "it's"])),
        ("FOO='a b' ls", shell("FOO='a b' '/usr/bin/ls'")),
        ("bash -c 'git log; ls'", argv(&["/usr/bin/bash", "-c", "'/usr/bin/git' 'log'; '/usr/bin/ls'"])),
        ("command git log", shell("'command' '/usr/bin/git' 'log'")),
    ];
    for (text, want) in table {
        assert_eq!(setup.judge(text).verdict, want, "{text}");
    }
}

#[test]
fn one_command_that_nothing_allows_stops_all() {
    let setup = listed(&["git"]);
    let table = [
        ("git log; curl x", "allowlist-miss"),
        ("git log\ncurl x", "allowlist-miss"),
        ("cd sub && ./tool", "allowlist-miss"),
        ("git log \"$(id)\"", "unreadable"),
        ("git log > out", "unreadable"),
        ("git log <<X\nX", "heredoc"),
        ("git log *.rs", "execution-plan-miss"),
        ("PATH=/x; git log", "allowlist-miss"),
        ("LD_PRELOAD=./x.so git log", "allowlist-miss"),
        ("echo id | bash", "allowlist-miss"),
        ("nosuch", "allowlist-miss"),
        ("[ -v 'a[$(id)]' ]", "allowlist-miss"),
    ];
    for (text, want) in table {
        assert_eq!(setup.word(text), want, "{text}");
        assert!(matches!(setup.alone(text), Verdict::Denied(_)), "{text}");
    }
}

#[test]
fn the_star_satisfies_all_but_what_only_a_person_can() {
    let setup = listed(&["*"]);
    for text in
        ["curl x", "nosuch a", "PATH=/x; git log", "echo id | sh", "bash -c 'echo $HOME'", "export A=1"]
    {
        assert_eq!(setup.word(text), "run", "{text}");
    }
    for text in
        ["eval ls", ". ./x", "alias a=b", "LD_PRELOAD=x git log", "find . -exec ls ';'", "sudo git log"]
    {
        assert_eq!(setup.word(text), "allowlist-miss", "{text}");
    }
    assert_eq!(setup.word("echo $HOME"), "unreadable");
    assert_eq!(setup.word("ls *"), "execution-plan-miss");
}

#[test]
fn nobody_to_ask_means_the_fallback() {
    let always = |fallback| setup(&["git"], Security::Full, Ask::Always, fallback);
    let pinned = argv(&["/usr/bin/git", "log"]);
    assert!(matches!(always(AskFallback::Deny).alone("git log"), Verdict::Denied(_)));
    assert_eq!(always(AskFallback::Full).alone("curl x > y"), Verdict::Run(Launch::AsSent));
    assert_eq!(always(AskFallback::Allowlist).alone("git log"), pinned);
    assert!(matches!(always(AskFallback::Allowlist).alone("curl x"), Verdict::Denied(_)));
    let listed = setup(&["git"], Security::Allowlist, Ask::Always, AskFallback::Full);
    assert_eq!(listed.word("git log"), "ask-always");
    assert_eq!(listed.alone("git log"), pinned);
    assert!(matches!(listed.alone("curl x"), Verdict::Denied(_)));
}

#[test]
fn strict_inline_eval_asks_whatever_the_policy() {
    let mut setup = setup(&["python3"], Security::Full, Ask::Off, AskFallback::Full);
    setup.strict = true;
    for text in ["python3 -c x", "git log; env A=1 python3 -Ic x", "x=$(python3 -c x)", "ls > out"] {
        assert_eq!(setup.word(text), "strict-inline-eval", "{text}");
        let Verdict::Denied(denial) = setup.alone(text) else { panic!("{text}") };
        assert_eq!(denial.rule_id, "policy.strict-inline-eval");
    }
    assert_eq!(setup.word("python3 tool.py"), "run");
}

#[test]
fn every_denial_has_its_code_a_rule_and_a_hint() {
    for &security in Security::ALL {
        for &ask in Ask::ALL {
            for text in ["curl x", "git log *", "git log > x", "git log"] {
                let setup = setup(&["git"], security, ask, AskFallback::Deny);
                if let Verdict::Denied(denial) = setup.alone(text) {
                    let prefix = match denial.kind {
                        DenialKind::Disabled => "SYSTEM_RUN_DISABLED: ",
                        DenialKind::Denied => "SYSTEM_RUN_DENIED: ",
                    };
                    assert!(denial.message.starts_with(prefix), "{denial:?}");
                    assert!(!denial.hint.is_empty() && denial.rule_id.starts_with("policy."), "{denial:?}");
                }
            }
        }
    }
    let Verdict::Denied(denial) = listed(&["git"]).alone("git log; curl x") else { panic!() };
    assert_eq!(
        denial.message,
        "SYSTEM_RUN_DENIED: approval required (no entry allows `curl`), and nobody can be asked"
    );
    assert_eq!(
        denial.hint,
        "to allow it with any arguments: `node-host policy allow /usr/bin/curl`; `node-host policy explain -- \
         COMMAND` on that machine says what each part needs"
    );
}

proptest! {
    /// No rules, no programs: whatever the text, nothing but a builtin or a filter of standard input runs.
    #[test]
    fn without_entries_nothing_runs(
        words in prop::collection::vec(select(&["git", "head", "cd", "|", "&&", ";", "-n", "1", "bash", "-c", "'", "$", "x"][..]), 0..12)
    ) {
        let text = words.join(" ");
        let judgement = listed(&[]).judge(&text);
        if let Verdict::Run(_) = judgement.verdict {
            let harmless = |segment: &Segment| {
                matches!(segment.decided, Ok(Grant::Builtin | Grant::SafeBin | Grant::Payload))
            };
            prop_assert!(judgement.plan.unwrap().each().all(harmless), "{}", text);
        }
    }
}
