use std::collections::BTreeMap;

use super::*;
use crate::{
    AllowEntry,
    allowlist::Allowlist,
    analyse::{Rules, analyse},
    fake::{Machine, words},
    inline_eval::Input,
    safe_bins::{SafeBins, SafeBinsConfig},
    skills::Skills,
};

fn plan(invocation: Invocation<'_>) -> Plan {
    let machine = Machine::usual();
    let (safe_bins, _) = SafeBins::new(&SafeBinsConfig::default());
    let star = AllowEntry { pattern: "*".to_owned(), ..AllowEntry::default() };
    let allowlist = Allowlist::compile(&[star], None, &[]);
    let rules = Rules {
        allowlist: &allowlist,
        safe_bins: &safe_bins,
        skills: &Skills::default(),
        input: Input::Other,
    };
    analyse(invocation, machine.lookup(), rules).unwrap()
}

/// `1.0=/proc/self/fd/9 1.1=ld.so,/x`: segment, word, and what stands there instead.
fn given(text: &str) -> BTreeMap<(usize, usize), Vec<String>> {
    let word = |entry: &str| {
        let (place, words) = entry.split_once('=').unwrap();
        let (segment, word) = place.split_once('.').unwrap();
        let words = words.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        ((segment.parse().unwrap(), word.parse().unwrap()), words)
    };
    text.split(' ').filter(|entry| !entry.is_empty()).map(word).collect()
}

#[test]
fn bound_words_stand_in_the_place_of_others() {
    let argv = |text: &str| Launch::Argv(words(text));
    let shell = |text: &str| Launch::Shell(text.to_owned());
    let table = [
        ("git log", "", argv("/usr/bin/git log")),
        ("git log", "0.0=/proc/self/fd/9", argv("/proc/self/fd/9 log")),
        ("git log", "0.0=ld.so,--argv0,git,/f", argv("ld.so --argv0 git /f log")),
        ("git log", "0.1=a,b", argv("/usr/bin/git a b")),
        // Nothing is no word, and other segments and words are not there.
        ("git log", "0.0= 1.0=x 0.9=x", argv("/usr/bin/git log")),
        ("nice git log", "0.1=/f", argv("/usr/bin/nice /f log")),
        ("builtin git log", "0.0=x", shell("'/usr/bin/git' 'log'")),
        ("A=1 git log", "0.0=/f,it's", shell("A='1' '/f' 'it'\\''s' 'log'")),
        ("git log | ls; rg x", "1.0=/f 2.1=/g", shell("'/usr/bin/git' 'log' | '/f'; '/usr/bin/rg' '/g'")),
        (
            "bash -c 'git log; ls'; rg x",
            "1.0=/f,v 2.0=/g 3.0=/h 0.0=/b",
            shell("'/b' '-c' ''\\''/f'\\'' '\\''v'\\'' '\\''log'\\''; '\\''/g'\\'''; '/h' 'x'"),
        ),
        // The text of a shell is not replaced as a whole.
        (
            "bash -c 'git log'",
            "0.2=x 1.0=/f",
            Launch::Argv(["/usr/bin/bash", "-c", "'/f' 'log'"].map(str::to_owned).into()),
        ),
    ];
    for (text, words, launch) in table {
        let plan = plan(Invocation::Shell(text));
        assert_eq!(plan.launch_bound(&given(words)), Ok(launch), "{text} with {words}");
    }
}

#[test]
fn a_direct_argv_stays_one() {
    let sent = words("nosuch 'a b'");
    let plan = plan(Invocation::Argv(&sent));
    assert_eq!(plan.launch_bound(&given("0.0=/f")), Ok(Launch::Argv(words("/f 'a b'"))));
    assert_eq!(plan.launch(), Ok(Launch::Argv(sent)));
}

#[test]
fn what_expands_is_not_launched() {
    assert_eq!(plan(Invocation::Shell("ls *")).launch_bound(&given("0.1=x")), Err(Expansion::Glob));
}
