//! The tables of §2.1, §2.2, §2.5 and §13, entries out of force, examples.

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;
use crate::AllowAlways;

const HOME: &str = "/home/u";

/// A program as it was found.
#[derive(Clone, Copy)]
struct Found {
    word: &'static str,
    path: Option<&'static str>,
    real: Option<&'static str>,
}

/// Found on PATH, no link.
const RG: Found = Found { word: "rg", path: Some("/usr/bin/rg"), real: Some("/usr/bin/rg") };
const LOCAL: Found = Found { word: "./rg", path: Some("/srv/app/rg"), real: Some("/srv/app/rg") };
const OPT: Found = Found { word: "/opt/a/b/rg", path: Some("/opt/a/b/rg"), real: Some("/opt/a/b/rg") };
const SCRIPT: Found = Found {
    word: "scripts/run.sh",
    path: Some("/srv/app/scripts/run.sh"),
    real: Some("/srv/app/scripts/run.sh"),
};
const LINK: Found = Found { word: "link", path: Some("/usr/bin/link"), real: Some("/opt/t/target") };
const MISSING: Found = Found { word: "nosuch", path: None, real: None };
const HOME_TOOL: Found = Found { word: "t", path: Some("/home/u/bin/t"), real: Some("/home/u/bin/t") };

fn entry(pattern: &str) -> AllowEntry {
    AllowEntry { pattern: pattern.to_owned(), ..AllowEntry::default() }
}

fn with_args(pattern: &str, arg_pattern: &str) -> AllowEntry {
    AllowEntry { arg_pattern: Some(arg_pattern.to_owned()), ..entry(pattern) }
}

fn always(entry: AllowEntry) -> AllowEntry {
    AllowEntry { source: Some(AllowAlways), ..entry }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn compile(entries: &[AllowEntry]) -> Allowlist {
    let merged = [("/bin".into(), "/usr/bin".into()), ("/lib/".into(), "/usr/lib/".into())];
    Allowlist::compile(entries, Some(Path::new(HOME)), &merged)
}

fn find(list: &Allowlist, found: Found, cwd: Option<&str>, args: &[&str]) -> Option<Matched> {
    let args = strings(args);
    let Found { word, path, real } = found;
    list.find(&Target { word, path: path.map(Path::new), real: real.map(Path::new), args: &args, cwd })
}

fn allows(entries: &[AllowEntry], found: Found, args: &[&str]) -> bool {
    find(&compile(entries), found, Some("/srv/app"), args).is_some()
}

fn fault(entry: &AllowEntry) -> Option<EntryFault> {
    let list = compile(std::slice::from_ref(entry));
    list.problems().first().map(|problem| problem.fault.clone())
}

#[test]
fn patterns_are_compared_with_names_or_real_paths() {
    let table = [
        // §2.1, the forms.
        ("*", RG, true),
        ("*", MISSING, true),
        (" * ", MISSING, true),
        // §2.1, the consequences.
        ("rg", RG, true),
        ("rg", LOCAL, false),
        ("rg", OPT, false),
        ("r*", RG, true),
        ("?g", RG, true),
        ("RG", RG, false),
        (" rg ", RG, true),
        ("/usr/bin/link", LINK, false),
        ("/opt/t/target", LINK, true),
        ("link", LINK, true),
        ("target", LINK, false),
        ("/opt/*/rg", OPT, false),
        ("/opt/**/rg", OPT, true),
        ("./scripts/run.sh", SCRIPT, false),
        ("/srv/app/scripts/run.sh", SCRIPT, true),
        ("r[g]", RG, false),
        ("{rg,ls}", RG, false),
        ("nosuch", MISSING, false),
        ("**", RG, true),
        ("**", OPT, true),
        ("/**", OPT, true),
        ("**", MISSING, false),
        ("/**", MISSING, false),
        // §2.2.
        ("g", RG, false),
        ("r", RG, false),
        ("r?", RG, true),
        ("rg?", RG, false),
        ("***", RG, true),
        ("/usr/bin/*", RG, true),
        ("/usr/*", RG, false),
        ("/usr?bin/rg", RG, false),
        ("/usr*bin/rg", RG, false),
        ("/usr**bin/rg", RG, true),
        ("*/bin/rg", RG, false),
        ("*/usr/bin/rg", RG, true),
        ("**/rg", OPT, true),
        ("**g", RG, true),
        ("/usr/bin/r.", RG, false),
        (r"\usr\\bin\rg", RG, true),
        ("~/bin/t", HOME_TOOL, true),
        ("~/bin/*", HOME_TOOL, true),
        (r"~\bin\t", HOME_TOOL, true),
        ("~/**", RG, false),
        ("~u/bin/t", HOME_TOOL, false),
        // Merged directories: the pattern may name the link.
        ("/bin/rg", RG, true),
        ("/bin/*", RG, true),
        ("/bin*/rg", RG, false),
        ("/binx/rg", RG, false),
    ];
    for (pattern, found, want) in table {
        let list = compile(&[entry(pattern)]);
        let hit = find(&list, found, None, &["x"]);
        let star = pattern.trim() == "*";
        assert_eq!(
            hit,
            want.then_some(Matched { index: 0, star, by_args: false }),
            "{pattern} {}",
            found.word
        );
        assert_eq!(list.star(), hit.filter(|_| star), "{pattern}");
    }
}

#[test]
fn a_path_that_is_no_real_path_matches_no_path() {
    for real in ["rg", "/opt/../usr/bin/rg", "/usr/./bin/rg", "/usr//bin/rg", "/usr/bin/rg/", ""] {
        let found = Found { word: "/x", path: Some("/x"), real: Some(real) };
        assert!(!allows(&[entry("/**"), entry("/usr/bin/*"), entry("/usr/bin/rg")], found, &[]), "{real}");
    }
    let wild_home = Allowlist::compile(&[entry("~/t")], Some(Path::new("/home/*")), &[]);
    assert_eq!(find(&wild_home, Found { real: Some("/home/u/t"), ..HOME_TOOL }, None, &[]), None);
}

#[test]
fn arguments_are_searched_as_one_text() {
    let nul = |texts: &[&str]| texts.iter().flat_map(|text| [*text, "\0"]).collect::<String>();
    let table: [(&str, &[&str], bool); 20] = [
        ("^log$", &["log"], true),
        ("^log$", &["log", "-n"], false),
        ("^log -n 3$", &["log", "-n", "3"], true),
        // One space joins, so these two are the same.
        ("^a b$", &["a", "b"], true),
        ("^a b$", &["a b"], true),
        ("^$", &[], true),
        ("^$", &[""], true),
        (r"^safe\.py$", &["safe.py", "--more"], false),
        (r"safe\.py", &["-c", "open('safe.py')"], true),
        ("", &["anything"], true),
        // The form with NUL keeps arguments apart.
        (&nul(&["^a", "b"]), &["a", "b"], true),
        (&nul(&["^a", "b"]), &["a b"], false),
        (r"^a\0b\0$", &["a", "b"], true),
        (r"^a b\x00$", &["a", "b"], false),
        (r"^a b\x00$", &["a b"], true),
        (r"^\0\0$", &[], true),
        (r"^\0\0$", &["", ""], true),
        (r"^\0$", &[""], true),
        (r"^\0$", &[], false),
        ("^..$", &["😀"], true),
    ];
    for (pattern, args, want) in table {
        let by_args = !pattern.is_empty();
        let hit = find(&compile(&[with_args("rg", pattern)]), RG, None, args);
        assert_eq!(hit, want.then_some(Matched { index: 0, star: false, by_args }), "{pattern:?} {args:?}");
        let wild = find(&compile(&[with_args("/usr/bin/?g", pattern)]), RG, None, args);
        assert_eq!(wild, hit, "{pattern:?} {args:?}");
    }
}

#[test]
fn arguments_come_before_programs_and_earlier_before_later() {
    let list = compile(&[
        entry("*"),
        entry("rg"),
        with_args("/usr/bin/*", "^never$"),
        with_args("rg", "^a"),
        with_args("/usr/bin/rg", "^a"),
        with_args("r*", "b$"),
        entry("/usr/bin/rg"),
    ]);
    let index =
        |found, args: &[&str]| find(&list, found, None, args).map(|hit| (hit.index, hit.star, hit.by_args));
    assert_eq!(index(RG, &["a"]), Some((3, false, true)));
    assert_eq!(index(RG, &["xb"]), Some((5, false, true)));
    assert_eq!(index(RG, &["a b"]), Some((3, false, true)));
    assert_eq!(index(RG, &["never"]), Some((2, false, true)));
    assert_eq!(index(RG, &["x"]), Some((0, true, false)));
    assert_eq!(index(LOCAL, &["a"]), Some((0, true, false)));
    let list = compile(&[entry("r*"), entry("rg"), entry("*")]);
    assert_eq!(find(&list, RG, None, &[]), Some(Matched { index: 0, star: false, by_args: false }));
    assert_eq!(list.star(), Some(Matched { index: 2, star: true, by_args: false }));
}

#[test]
fn a_binding_is_one_argv_in_one_directory() {
    let bound = |cwd: &str, args: &[&str]| cwd_argv_hash(cwd, &strings(args));
    let list = compile(&[
        always(with_args("/usr/bin/rg", &bound("/srv/a", &["x", "y"]))),
        with_args("r*", &bound("/srv/b", &[])),
        always(with_args("/bin/*", &bound("/srv/c", &["z"]))),
    ]);
    assert_eq!(list.problems(), []);
    let table: [(Option<&str>, &[&str], Option<usize>); 9] = [
        (Some("/srv/a"), &["x", "y"], Some(0)),
        (Some("/srv/./b/../a"), &["x", "y"], Some(0)),
        (Some("/srv/a/"), &["x", "y"], None),
        (Some("/srv/b"), &["x", "y"], None),
        (Some("/srv/a"), &["x y"], None),
        (Some("/srv/a"), &["x"], None),
        (Some("/srv/b"), &[], Some(1)),
        (Some("/srv/c"), &["z"], Some(2)),
        (None, &["x", "y"], None),
    ];
    for (cwd, args, want) in table {
        let want = want.map(|index| Matched { index, star: false, by_args: true });
        assert_eq!(find(&list, RG, cwd, args), want, "{cwd:?} {args:?}");
        assert_eq!(find(&list, OPT, cwd, args), None, "{cwd:?} {args:?}");
    }
}

#[test]
fn golden_vectors() {
    let log = strings(&["log", "-n", "3"]);
    let table = [
        ("/srv/app", log.clone(), "6745e3adf787f7a929205979b95cb814ec357941279d0b80b100b697a9bcef33"),
        ("/srv/app", vec![], "f08be75af18c7ca28e17429c70a8f25441ea8d5aac38fc83822a78a6631752ad"),
        ("/srv/app/", log.clone(), "642d7318cd31f79f021fd1b4d75ec49e91f6dda00efdb6755f11e28180075ce6"),
        ("/srv/app", strings(&["é"]), "4b0acb99628b20b39fa9639768afda52ebc4c15908b24bb3b843fd23216f14a4"),
        ("/srv/./app/../app", log, "6745e3adf787f7a929205979b95cb814ec357941279d0b80b100b697a9bcef33"),
    ];
    for (cwd, args, digits) in table {
        assert_eq!(cwd_argv_hash(cwd, &args), format!("sha256:cwd-argv:v1:{digits}"), "{cwd} {args:?}");
    }
    assert_eq!(node_command_marker("git log -n 3"), "=node-command:818f5bc972804beb");
    let variables = [("LANG".to_owned(), "C".to_owned()), ("CI".to_owned(), "1".to_owned())];
    let want = "2d2d9066b1a1c222490fc746da5b3c86476d96f6f4bec57cbdc01f6eca026418";
    assert_eq!(env_hash(&variables).as_deref(), Some(want));
    assert_eq!(env_hash(&[]), None);
}

#[test]
fn directories_are_normalised_without_a_look() {
    let groups: [&[&str]; 5] = [
        &["/a/b", "//a///b", "/a/./b", "/a/c/../b", "/../a/b", "/a/b/."],
        &["/a/b/", "/a//b//", "/a/c/../b/"],
        &["/", "//", "/..", "/a/.."],
        &["a", "./a", "b/../a"],
        &["../a", "b/../../a"],
    ];
    let hash = |cwd: &str| cwd_argv_hash(cwd, &[]);
    for group in groups {
        for cwd in group {
            assert_eq!(hash(cwd), hash(group[0]), "{cwd}");
        }
    }
    let distinct: std::collections::BTreeSet<_> = groups.iter().map(|group| hash(group[0])).collect();
    assert_eq!(distinct.len(), groups.len());
}

#[test]
fn the_hash_of_a_whole_text_is_inactive() {
    let marker = node_command_marker("git log | head");
    for pattern in [marker.clone(), marker.replace("node-command", "command"), "=command:0".to_owned()] {
        assert_eq!(fault(&always(entry(&pattern))), Some(EntryFault::CommandText), "{pattern}");
    }
}

#[test]
fn entries_out_of_force_match_nothing_and_are_named() {
    let binding = cwd_argv_hash("/srv/app", &strings(&["x"]));
    let expression = |fault, at| EntryFault::ArgPattern { error: ArgPatternError { fault, at } };
    let table = [
        (with_args("*", "^a$"), EntryFault::DeadStar),
        (always(entry("*")), EntryFault::DeadStar),
        (always(with_args("*", &binding)), EntryFault::DeadStar),
        (always(entry("rg")), EntryFault::Unbound),
        (always(with_args("rg", "")), EntryFault::Unbound),
        (always(with_args("rg", "^x$")), EntryFault::Unbound),
        (always(with_args("rg", "sha256:argv:00")), EntryFault::LegacyBinding),
        (with_args("rg", "sha256:argv:00"), EntryFault::LegacyBinding),
        (with_args("rg", &binding.replace("v1", "v2")), EntryFault::UnknownBinding),
        (
            with_args("rg", &binding.to_uppercase().replace("SHA256:CWD-ARGV:V", "sha256:cwd-argv:v")),
            EntryFault::UnknownBinding,
        ),
        (with_args("rg", &binding[..80]), EntryFault::UnknownBinding),
        (with_args("rg", "("), expression(ArgPatternFault::UnclosedGroup, 1)),
        (with_args("rg", "x(?=y)"), expression(ArgPatternFault::Lookaround, 1)),
        (with_args("rg", "(?:.{1000}){1000}"), expression(ArgPatternFault::TooLarge, 0)),
        (entry("./rg"), EntryFault::NeverMatches),
        (entry("bin/rg"), EntryFault::NeverMatches),
        (entry("?/usr/bin/rg"), EntryFault::NeverMatches),
        (entry("/usr/../usr/bin/rg"), EntryFault::NeverMatches),
        (entry("/usr//bin/rg"), EntryFault::NeverMatches),
        (entry("/usr/bin/"), EntryFault::NeverMatches),
        (entry("/"), EntryFault::NeverMatches),
        (entry("~other/rg"), EntryFault::NeverMatches),
        (entry(r"C:\rg"), EntryFault::NeverMatches),
        (entry(" "), EntryFault::Blank),
        (entry(&"x".repeat(MAX_PATTERN_CHARS + 1)), EntryFault::TooLong),
    ];
    for (bad, want) in table {
        assert_eq!(fault(&bad), Some(want.clone()), "{bad:?}");
        assert!(!allows(std::slice::from_ref(&bad), RG, &["x"]), "{bad:?}");
        assert_eq!(check_entry(&bad).unwrap_err().fault, want, "{bad:?}");
    }
    let list = compile(&[entry("rg"), with_args("a\u{202e}", "a{2,1}")]);
    let shown: Vec<String> = list.problems().iter().map(ToString::to_string).collect();
    let want = r"allowlist entry 2 (`a\u{202e}`): the argument pattern is invalid: the counts are in the wrong order (at 1)";
    assert_eq!(shown, [want]);
    assert_eq!(list.entries().len(), 2);

    assert_eq!(check_entry(&entry("~/bin/rg")), Ok(()));
    let homeless = Allowlist::compile(&[entry("~/bin/rg"), entry("~")], None, &[]);
    assert!(homeless.problems().iter().all(|problem| problem.fault == EntryFault::NoHome));
    assert_eq!(homeless.problems().len(), 2);
}

#[test]
fn the_size_of_a_list_is_bounded() {
    let room = MAX_LIST_BYTES / (64 * 1024);
    let mut entries = vec![entry("a*"); room];
    entries.extend([entry("r*"), with_args("rg", "^x$"), entry("ls"), entry("rg")]);
    let list = compile(&entries);
    let faults: Vec<_> =
        list.problems().iter().map(|problem| (problem.index, problem.fault.clone())).collect();
    assert_eq!(faults, [(room, EntryFault::TooMany), (room + 1, EntryFault::TooMany)]);
    assert_eq!(find(&list, RG, None, &["x"]).map(|hit| hit.index), Some(room + 3));
    // One that is too large takes room as well: trying it took time.
    let huge = compile(&vec![with_args("rg", "(?:.{1000}){1000}"); 40]);
    assert_eq!(huge.problems().last().map(|problem| problem.fault.clone()), Some(EntryFault::TooMany));
    // A large one takes the room of many.
    let large = compile(&vec![with_args("rg", "^.{0,500}$"); 40]);
    assert_eq!(large.problems().len(), 40 - MAX_LIST_BYTES / MAX_EXPRESSION_BYTES);
}

#[test]
fn ordinary_patterns_are_small_enough() {
    for pattern in
        ["^.{0,500}$", r"^[^\s]{1,1000}$", r"^(?:-[a-z]+ )*\S+(?: \S+){0,20}$", "^[a-zA-Z0-9/_.-]{1,4096}$"]
    {
        assert_eq!(check_entry(&with_args("rg", pattern)), Ok(()), "{pattern}");
    }
}

fn with_examples(base: AllowEntry, matching: &[&str], others: &[&str]) -> AllowEntry {
    AllowEntry { examples_match: strings(matching), examples_no_match: strings(others), ..base }
}

#[test]
fn examples_that_hold_change_nothing() {
    let table = [
        with_examples(
            with_args("git", "^log\\b"),
            &["git log", "git 'log' -n \"3\""],
            &["git push", "./git log", "/opt/git log", "ls"],
        ),
        with_examples(entry("/usr/bin/*"), &["/usr/bin/rg x"], &["/opt/rg x"]),
        with_examples(entry("/bin/echo"), &["/bin/echo x", "/usr/bin/echo x"], &["/usr/local/bin/echo"]),
        with_examples(entry("~/bin/t"), &["/home/u/bin/t"], &["/home/v/bin/t"]),
        with_examples(with_args("rg", r"^a\0b c\0$"), &["rg a 'b c'"], &["rg a b c"]),
    ];
    for good in table {
        assert_eq!(fault(&good), None, "{good:?}");
    }
}

#[test]
fn examples_that_do_not_hold_put_the_entry_out_of_force() {
    use ExampleFault::*;
    let unreadable = |text: &str, reason: &str| Unreadable { text: text.into(), reason: reason.into() };
    let path_only = "the entry names a path, so the program must be written as an absolute path";
    let table = [
        (
            with_examples(with_args("git", "^log$"), &["git log", "git push"], &[]),
            NotMatched("git push".into()),
        ),
        (with_examples(with_args("git", "log"), &[], &["git push --log"]), Matched("git push --log".into())),
        (with_examples(entry("*"), &[], &["rm x"]), Matched("rm x".into())),
        (with_examples(entry("rg"), &["./rg"], &[]), NotMatched("./rg".into())),
        (with_examples(entry("rg"), &["rg a; rg b"], &[]), unreadable("rg a; rg b", "it is more than one")),
        (
            with_examples(entry("rg"), &["A=1 rg"], &[]),
            unreadable("A=1 rg", "something stands before the program"),
        ),
        (
            with_examples(entry("rg"), &["! rg"], &[]),
            unreadable("! rg", "something stands before the program"),
        ),
        (
            with_examples(entry("rg"), &[], &["ls *"]),
            unreadable("ls *", "a shell would expand some of it; quote it"),
        ),
        (
            with_examples(entry("rg"), &["rg $(x)"], &[]),
            unreadable("rg $(x)", "command-substitution at byte 3"),
        ),
        (with_examples(entry("/usr/bin/rg"), &[], &["rg x"]), unreadable("rg x", path_only)),
    ];
    for (bad, want) in table {
        assert_eq!(fault(&bad), Some(EntryFault::Example(want.clone())), "{bad:?}");
        assert!(!allows(std::slice::from_ref(&bad), RG, &[]), "{bad:?}");
        assert_eq!(check_entry(&bad).unwrap_err().fault, EntryFault::Example(want), "{bad:?}");
    }
    for text in ["", "A=1", "'"] {
        let found = fault(&with_examples(entry("rg"), &[text], &[]));
        assert!(matches!(found, Some(EntryFault::Example(Unreadable { .. }))), "{text}: {found:?}");
    }
    // Examples below the home directory are checked where it is known.
    assert_eq!(check_entry(&with_examples(entry("~/t"), &["/elsewhere/t"], &[])), Ok(()));
}

#[test]
fn a_list_tells_how_wide_its_entries_are() {
    let table = [
        (entry(" * "), "everything"),
        (entry("rg"), "program"),
        (with_args("rg", ""), "program"),
        (with_args("rg", "^x$"), "arguments"),
        (always(with_args("/usr/bin/rg", "sha256:cwd-argv:v1:00")), "invocation"),
        (always(entry("=node-command:00")), "command-text"),
    ];
    for (entry, want) in table {
        assert_eq!(Scope::of(&entry).as_str(), want, "{entry:?}");
    }
}

fn any_entry() -> impl Strategy<Value = AllowEntry> {
    let pattern = prop_oneof!["[*?/~\\\\a-c. ]{0,8}", any::<String>()];
    let args = prop_oneof![r"[\\^$*+?(){}\[\]|a-c0-9,:=!<>-]{0,10}", any::<String>()];
    (pattern, option::of(args), any::<bool>(), vec(any::<String>(), 0..2)).prop_map(
        |(pattern, arg_pattern, is_always, examples_match)| AllowEntry {
            pattern,
            arg_pattern,
            source: is_always.then_some(AllowAlways),
            examples_match,
            ..AllowEntry::default()
        },
    )
}

proptest! {
    #[test]
    fn nothing_panics(
        entries in vec(any_entry(), 0..6),
        word in prop_oneof!["[a-c/~.]{0,4}", any::<String>()],
        path in option::of("[a-c/.]{0,8}"),
        args in vec(any::<String>(), 0..3),
        cwd in option::of("[a-c/.]{0,8}"),
    ) {
        let list = compile(&entries);
        let path = path.as_deref().map(Path::new);
        let target = Target { word: &word, path, real: path, args: &args, cwd: cwd.as_deref() };
        let hit = list.find(&target);
        let broken: Vec<usize> = list.problems().iter().map(|problem| problem.index).collect();
        prop_assert!(hit.is_none_or(|hit| hit.index < entries.len() && !broken.contains(&hit.index)));
    }

    /// Looking up plain names and paths gives what trying each entry alone would give.
    #[test]
    fn the_order_of_the_list_decides(picks in vec((select(vec!["rg", "r*", "/usr/bin/rg", "/usr/**", "ls", "*"]), select(vec!["", "a", "b", "c"])), 0..8)) {
        let entries: Vec<AllowEntry> = picks.iter().map(|(pattern, args)| with_args(pattern, args)).collect();
        let alone = |entry: &AllowEntry| find(&compile(std::slice::from_ref(entry)), RG, None, &["a", "b"]);
        let hits: Vec<(usize, Matched)> =
            entries.iter().enumerate().filter_map(|(at, entry)| Some((at, alone(entry)?))).collect();
        let first = hits.iter().find(|(_, hit)| hit.by_args).or_else(|| hits.first());
        let want = first.map(|(index, hit)| Matched { index: *index, ..*hit });
        prop_assert_eq!(find(&compile(&entries), RG, None, &["a", "b"]), want);
    }
}
