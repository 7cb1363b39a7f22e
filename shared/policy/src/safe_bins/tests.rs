//! The tables of §4, the cases about safe bins, and the real programs as judges.

use std::{fs, process::Command, process::Stdio};

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// All built-in profiles.
fn all() -> SafeBins {
    let names = Some(words("cut uniq head tail tr wc grep sort"));
    let (bins, warnings) = SafeBins::new(&SafeBinsConfig { names, ..SafeBinsConfig::default() });
    assert_eq!(warnings, []);
    bins
}

fn check(bins: &SafeBins, name: &str, args: &[String]) -> Result<(), SafeBinMiss> {
    let path = Path::new("/usr/bin").join(name);
    bins.check(&path, &path, args)
}

/// Whether a command line, split at spaces, passes. A quoted word stands for what is between the quotes.
fn passes(bins: &SafeBins, line: &str) -> bool {
    let mut argv: Vec<String> = words(line).iter().map(|word| word.trim_matches('\'').to_owned()).collect();
    let name = argv.remove(0);
    check(bins, &name, &argv).is_ok()
}

#[test]
fn lines_that_pass() {
    let bins = all();
    let table = [
        "cut -d : -f 1",
        "cut -d: -f1,3-5",
        "cut -d, -sf2",
        "cut --delimiter=, --fields=2 --complement",
        "cut -d a/b -f 1",
        "cut -d $ -f 1",
        "cut -d - -f 1",
        "cut -d -- -f 1",
        "cut -d '' -f 1",
        "cut -zf1",
        "uniq",
        "uniq -cd",
        "uniq -f 1 -s2 -w 3",
        "uniq --group=prepend",
        "uniq --ignore-case --skip-fields 2",
        "head",
        "head -",
        "head -- -",
        "head --",
        "head -n 1 -",
        "head '' -",
        "head -n -5",
        "head -zn 5",
        "head -c100 -q",
        "head --lines=3",
        "head --li 3",
        "head --by=3 --z",
        "head -c 5b",
        "head -c5kB -n +7",
        "tail -c +10K",
        "tail -c -1MiB",
        "tail --bytes 2G",
        "tail --li=-3m",
        "tail -n +2",
        "tail --pid 1 --sleep-interval=2",
        "tail --max-unchanged-stats 3 --li=3",
        "tr a b",
        "tr a-z A-Z",
        "tr -d a",
        "tr a b -s",
        "tr -- -d x",
        "tr a/b x",
        "wc -lwc",
        "wc --max-line-length --chars",
        "grep -e key",
        "grep -ekey -m 1 -A2 -B 3 -C 4",
        "grep --regexp=key --context=2 --label x",
        "grep --regexp key -e ^a$",
        "grep -e key -",
        "sort",
        "sort -k2,2 -t : -S 50%",
        "sort --key=1 --parallel 2 --batch-size=8",
        "sort --fiel=, --buf 1M",
    ];
    for line in table {
        assert!(passes(&bins, line), "{line}");
    }
}

#[test]
fn lines_that_do_not_pass() {
    let bins = all();
    let table = [
        // Files, positional or behind a flag (traps 53, 56, 59; F028, F030).
        "head secret",
        "head -c 5 /etc/shadow",
        "cut -d : -f 1 -- passwd",
        "uniq in out",
        "wc --files0-from=list",
        "wc --files0=list",
        "wc --fil list",
        "grep key",
        "grep -e key .env",
        "grep --fil=/etc/shadow",
        "grep -f pats",
        "grep -fpats -e x",
        "grep -r -e x",
        "grep -R -e x",
        "grep --recursive -e x",
        "grep -d recurse -e x",
        "grep --exclude-from=f -e x",
        "sort -o f",
        "sort -oout",
        "sort -ro f",
        "sort -T d",
        "sort --outp=f",
        "sort --output=f",
        "sort --output f",
        "sort --compress-p=sh",
        "sort --compress-prog=./h.sh",
        "sort --comp sh",
        "sort --random-source=f",
        "sort --files0-from=f",
        "sort --temporary-directory=d",
        "tail -F f",
        "tail -f",
        "tail -fn 1",
        "tail -qf",
        "tail -cf",
        "tail --follow",
        "tail --follow=name",
        "tail --fol",
        "tail --re",
        // An old `tail` takes no value here, and the word for a file.
        "tail -c passwd",
        "tail -n passwd",
        "tail -cpasswd",
        "tail -qn passwd",
        "tail --bytes passwd",
        "tail --lines=passwd",
        "head -c passwd",
        "head -n 5x",
        "head -n 5kib",
        "head -n k",
        "head -n +",
        "head -n --5",
        "head --bytes=5BB",
        "tail -n ''",
        // Literal words only (trap 54).
        "head -n *",
        "head -n $HOME",
        "head -n $(id)",
        "head -n ${x}",
        "head -n $1",
        "head -n a$'b'",
        "cut -d ? -f 1",
        "tr [a] b",
        "tr [:upper:] [:lower:]",
        "tr a{b,c} d",
        "tr a }",
        "cut -f{1,2}",
        "cut --fields={1,2}",
        // Words that begin like paths.
        "cut -d / -f 1",
        "cut -d/ -f 1",
        "tr / _",
        "tr ~ _",
        "tr ./a _",
        "tr ../a _",
        "tr C:\\x _",
        "tr c:/x _",
        "cut --delimiter=/ -f 1",
        "head -n./x",
        // Unknown flags, unknown letters in clusters.
        "head -5",
        "sort -r",
        "sort -n",
        "grep -i -e x",
        "grep -Hne x",
        "tail -s 1",
        "head --help",
        "head --version",
        "head --nope",
        "wc -lx",
        "head -n",
        "head -zn",
        "head --lines",
        "wc --lines=3",
        "wc --=3",
        // Short for more than one, or the whole name of another.
        "head --n=1",
        "head --ve",
        "tail --s 1",
        "sort --f=x",
        "grep -e x --binary secret",
        "grep -e x --color",
        // A value that must be attached, or a number.
        "uniq --group",
        "uniq --group secret",
        "uniq --gr secret",
        "grep -e x -C secret",
        "grep -e x --context secret",
        // After an operand some systems read no flags.
        "head - -n secret",
        "head '' -n secret",
        "head - --",
        // Too few, too many.
        "tr -d",
        "tr -d -",
        "tr a b c",
    ];
    for line in table {
        assert!(!passes(&bins, line), "{line}");
    }
}

#[test]
fn a_miss_names_the_argument_and_the_reason() {
    let bins = all();
    let found = |line: &str| {
        let argv = words(line);
        let (name, args) = argv.split_first().unwrap();
        check(&bins, name, args).unwrap_err().to_string()
    };
    let table = [
        ("sort -k 1 --outp=f", "the argument 3 does not pass: this flag is not allowed"),
        (
            "tail -c passwd",
            "the argument 2 does not pass: the value must be a number, with a sign and a unit at most",
        ),
        ("head -n ./x", "the argument 2 does not pass: it begins like a path"),
        ("head -n", "the argument 1 does not pass: this flag needs a value"),
        ("tr -d", "it needs at least 1 positional arguments"),
        ("jq .", "it is no safe bin"),
    ];
    for (line, want) in table {
        assert_eq!(found(line), want, "{line}");
    }
}

#[test]
fn which_program_it_is() {
    let listed = words("head grep jq awk sed gsed tool");
    let profiles = BTreeMap::from([("tool".to_owned(), CustomProfile::default())]);
    let trusted_dirs = vec![PathBuf::from("/opt/tools/")];
    let (bins, _) = SafeBins::new(&SafeBinsConfig { names: Some(listed), trusted_dirs, profiles });
    let (not_listed, untrusted) = (Err(SafeBinMiss::NotListed), Err(SafeBinMiss::UntrustedDirectory));
    let table = [
        ("/usr/bin/head", "/usr/bin/head", Ok(())),
        // A machine where `/bin` is a link.
        ("/bin/head", "/usr/bin/head", Ok(())),
        ("/bin/head", "/bin/head", Ok(())),
        // One file with many names, each a link in a trusted directory (gap 18).
        ("/bin/head", "/bin/busybox", Ok(())),
        ("/opt/tools/head", "/usr/bin/head", Ok(())),
        ("/opt/tools/tool", "/opt/tools/tool-1.2", Ok(())),
        ("/opt/tools/Tool", "/opt/tools/Tool", Ok(())),
        ("/home/a/links/head", "/usr/bin/head", Ok(())),
        // A planted file, a planted link, a link that leads out (trap 60, F033).
        ("/opt/planted/head", "/opt/planted/head", untrusted.clone()),
        ("/tmp/head", "/usr/bin/tac", untrusted.clone()),
        ("/usr/bin/head", "/opt/planted/head", untrusted.clone()),
        ("/usr/bin/sub/head", "/usr/bin/sub/head", untrusted.clone()),
        ("/opt/tools/sub/head", "/opt/tools/sub/head", untrusted),
        // Denied under every name.
        ("/usr/bin/jq", "/usr/bin/jq", not_listed.clone()),
        ("/usr/bin/sed", "/usr/bin/sed", not_listed.clone()),
        ("/usr/bin/tool", "/usr/bin/gawk", not_listed.clone()),
        ("/usr/bin/tool", "/usr/bin/python3.12", not_listed.clone()),
        ("/tmp/head", "/usr/bin/python3", not_listed.clone()),
        ("/usr/bin/sort", "/usr/bin/sort", not_listed.clone()),
        ("/usr/bin/HEAD", "/usr/bin/HEAD", not_listed.clone()),
        ("/", "/usr/bin/head", not_listed),
    ];
    for (path, real, want) in table {
        assert_eq!(bins.check(Path::new(path), Path::new(real), &[]), want, "{path} {real}");
    }
    assert!(bins.is_trusted(Path::new("/opt/tools/x")) && !bins.is_trusted(Path::new("/opt/x")));
    assert!(!bins.is_trusted_program(Path::new("/tmp/env"), Path::new("/usr/bin/python3")));
}

#[test]
fn which_names_are_in_force() {
    let names = |names: Option<&str>| {
        let names = names.map(words);
        let (bins, _) = SafeBins::new(&SafeBinsConfig { names, ..SafeBinsConfig::default() });
        bins.bins.iter().map(|bin| bin.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(None), words("cut uniq head tail tr wc"));
    assert_eq!(names(Some("")), words(""));
    assert_eq!(names(Some("GREP sort sort")), words("grep sort"));
    assert_eq!(names(Some("jq python3 rg head")), words("head"));
}

#[test]
fn custom_profiles() {
    let profile = |min, max, values: &str, denied: &str| CustomProfile {
        min_positional: min,
        max_positional: max,
        allowed_value_flags: words(values),
        denied_flags: words(denied),
    };
    let profiles = BTreeMap::from([
        ("open".to_owned(), CustomProfile::default()),
        ("narrow".to_owned(), profile(Some(2), Some(1), "-n --limit -o", "-o --limit-file")),
        ("head".to_owned(), profile(None, Some(1), "-n", "")),
    ]);
    let names = Some(words("open narrow head"));
    let (bins, warnings) = SafeBins::new(&SafeBinsConfig { names, profiles, trusted_dirs: Vec::new() });
    assert_eq!(warnings, []);
    let table = [
        ("open a b c d", true),
        ("open", true),
        ("open -", true),
        ("open -x", false),
        ("open --x", false),
        ("open /etc/passwd", false),
        ("narrow a b", true),
        ("narrow a", false),
        ("narrow a b c", false),
        ("narrow -n5 a b", true),
        ("narrow a --limit 5 b", true),
        ("narrow a b --limit=5", true),
        // The profile does not know all flags of the program, so nothing is short for one.
        ("narrow a b --lim=5", false),
        ("narrow a b --limit-f=5", false),
        ("narrow -o x a b", false),
        ("head -n 1 file", true),
        ("head -c 1", false),
    ];
    for (line, want) in table {
        assert_eq!(passes(&bins, line), want, "{line}");
    }
}

#[test]
fn warnings() {
    let profiles = BTreeMap::from([
        ("ruby".to_owned(), CustomProfile::default()),
        (
            "tool".to_owned(),
            CustomProfile { denied_flags: words("o -ab --c=d -x"), ..CustomProfile::default() },
        ),
    ]);
    let config = SafeBinsConfig {
        names: Some(words("head jq python3 ruby xargs rg bin/x tool")),
        trusted_dirs: [
            "/opt/ok",
            "rel",
            "/opt/../x",
            "/tmp/x",
            "/home/a/bin",
            "/usr/local/bin",
            "/a/node_modules/b",
        ]
        .map(PathBuf::from)
        .to_vec(),
        profiles,
    };
    let (bins, found) = SafeBins::new(&config);
    let found: Vec<(&str, &str)> =
        found.iter().map(|warning| (warning.id, warning.message.split('`').nth(1).unwrap())).collect();
    let want = [
        (TRUSTED_DIRS_RISKY, "rel"),
        (TRUSTED_DIRS_RISKY, "/opt/../x"),
        (TRUSTED_DIRS_RISKY, "/tmp/x"),
        (TRUSTED_DIRS_RISKY, "/home/a/bin"),
        (TRUSTED_DIRS_RISKY, "/usr/local/bin"),
        (TRUSTED_DIRS_RISKY, "/a/node_modules/b"),
        (BROAD_BEHAVIOR, "jq"),
        (INTERPRETER_UNPROFILED, "python3"),
        (BROAD_BEHAVIOR, "ruby"),
        (BROAD_BEHAVIOR, "xargs"),
        (UNPROFILED, "rg"),
        (UNPROFILED, "bin/x"),
        (PROFILE_FLAGS, "tool"),
    ];
    assert_eq!(found, want);
    let dirs =
        ["/bin", "/usr/bin", "/opt/ok", "/tmp/x", "/home/a/bin", "/usr/local/bin", "/a/node_modules/b"];
    assert_eq!(bins.trusted_dirs(), dirs.map(PathBuf::from));
}

#[test]
fn the_table_is_consistent() {
    for data in &table::BUILT_IN {
        let lists =
            [data.values, data.counts, data.sizes, data.attached, data.switches, data.denied, data.others];
        let mut seen = std::collections::BTreeSet::new();
        for flag in lists.iter().flat_map(|list| list.split_ascii_whitespace()) {
            assert!(seen.insert(flag), "{} has {flag} twice", data.name);
            let letters = flag.trim_start_matches('-').len();
            assert!(flag.starts_with("--") && letters > 1 || letters == 1, "{} {flag}", data.name);
        }
    }
}

/// Words that mean something to one of the programs; all but the empty one are also names of files.
fn judged_words() -> Vec<String> {
    let mut all = words(
        "- -- a b 1 2,3 out -n -c -f -d -z -q -e -k -t -m -C -D -zf1 -na -cf -nf -c1f -sa -e=a --lines --li=1 --bytes \
         --fields=1 --delimiter --group --group=a --skip-fields --regexp --context --binary --key --parallel --pid \
         --label --c +1",
    );
    all.push(String::new());
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// What passes reads no file and writes none, whatever the files are called and with both ways of reading flags.
    #[test]
    fn the_programs_agree_that_no_argument_is_a_file(
        bin in select(&["cut", "uniq", "head", "tail", "wc", "grep", "sort", "tr"][..]),
        args in vec(select(judged_words()), 0..5),
    ) {
        let program = Path::new("/usr/bin").join(bin);
        if check(&all(), bin, &args).is_err() || !program.exists() {
            return Ok(());
        }
        let dir = std::env::temp_dir().join(format!("safe-bins-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        for word in judged_words().iter().filter(|word| !word.is_empty()) {
            fs::write(dir.join(word), "marker one\nmarker two\n").unwrap();
        }
        for posix in [false, true] {
            // A program that follows its input would never end.
            let mut command = Command::new("/usr/bin/timeout");
            command.arg("10").arg(&program).args(&args).current_dir(&dir).stdin(Stdio::null());
            if posix {
                command.env("POSIXLY_CORRECT", "1");
            }
            let output = command.output().unwrap();
            prop_assert_ne!(output.status.code(), Some(124), "{} {:?} does not end", bin, args);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            // Standard input is empty, so every count is 0; another one is that of a file.
            prop_assert!(bin != "wc" || !text.contains(|letter| matches!(letter, '1'..='9')), "{args:?}: {text}");
        }
        let names = fs::read_dir(&dir).unwrap().count();
        fs::remove_dir_all(&dir).unwrap();
        // The empty word is no name.
        prop_assert_eq!(names, judged_words().len() - 1, "{} {:?} left a file", bin, args);
    }

    /// No words make it panic, and what passes holds no denied word.
    #[test]
    fn any_words(bin in select(&["cut", "uniq", "head", "tail", "wc", "grep", "sort", "tr"][..]), args in vec(".{0,8}", 0..6)) {
        if check(&all(), bin, &args).is_ok() {
            for arg in &args {
                prop_assert!(!arg.contains(['*', '?', '[', ']', '{', '}', '\0']), "{:?}", args);
            }
        }
    }
}
