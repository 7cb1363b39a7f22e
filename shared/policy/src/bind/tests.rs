use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::{interpreter::takes_code, syntax::syntax_of, *};
use crate::{
    allowlist::Allowlist,
    analyse::{Rules, analyse},
    fake::Machine,
    plan::Invocation,
    resolve::Files,
    safe_bins::{SafeBins, SafeBinsConfig},
    skills::Skills,
};

fn plan(text: &str, lookup: Lookup<'_>) -> Plan {
    let (safe_bins, _) = SafeBins::new(&SafeBinsConfig::default());
    let rules = Rules {
        allowlist: &Allowlist::default(),
        safe_bins: &safe_bins,
        skills: &Skills::default(),
        input: Input::Other,
    };
    analyse(Invocation::Shell(text), lookup, rules).unwrap()
}

#[test]
fn everything_that_inline_code_knows_takes_code() {
    let names = "python python2 python3 pypy pypy3 node nodejs bun deno ruby perl php lua osascript R Rscript julia \
                 elixir iex guile groovy scala scala-cli clojure clj raku perl6 ghc ghci erl werl gdb expect awk gawk \
                 mawk nawk sed gsed find xargs make gmake python3.12 lua5.4 nodejs18 luajit vim emacs tclsh irb swift \
                 uv npx npm strace parallel tar rg";
    for name in names.split_whitespace() {
        assert!(takes_code(name), "{name}");
    }
    for name in "git ls cat head rsync curl gcc-12 java cargo docker".split_whitespace() {
        assert!(!takes_code(name), "{name}");
    }
}

#[test]
fn interpreters_go_by_many_names() {
    let same = [
        ("python", "python3.12 python3-dbg /usr/bin/python2 Python.exe pypy3 pythonw"),
        ("perl", "perl5 perl5.36 perl5.36-x86_64-linux-gnu"),
        ("node", "nodejs nodejs18 ./node"),
        ("lua", "lua5.4 luajit"),
        ("php", "php8 php8.1"),
        ("awk", "gawk mawk nawk"),
    ];
    for (name, others) in same {
        let one = syntax_of(name).unwrap();
        for other in others.split_whitespace() {
            assert!(syntax_of(other).is_some_and(|other| std::ptr::eq(one, other)), "{other}");
        }
    }
    for name in ["perl6", "git", "pythonx", "ipython", "julia", "bash"] {
        assert!(syntax_of(name).is_none(), "{name}");
    }
}

/// One program, whose real path is no UTF-8.
struct Odd;

impl Files for Odd {
    fn look(&self, path: &Path) -> Option<File> {
        let real = Path::new(OsStr::from_bytes(b"/usr/bin/g\xff")).to_path_buf();
        let found = path == Path::new("/usr/bin/git");
        found.then_some(File { real, device: 1, inode: 1, regular: true, executable: true })
    }
}

#[test]
fn a_path_that_no_text_can_name_is_not_bound() {
    let lookup = Lookup { files: &Odd, path: "/usr/bin", cwd: Some(Path::new("/")), home: None };
    let refused = bind(&plan("git log", lookup), lookup, Input::Other).unwrap_err();
    assert_eq!(refused.shape, "not-text");
}

#[test]
fn the_number_of_files_is_bounded() {
    let machine = Machine::usual();
    let bound = |count: usize| {
        let plan = plan(&vec!["git log"; count].join("; "), machine.lookup());
        bind(&plan, machine.lookup(), Input::Other).map(|files| files.len()).map_err(|refused| refused.shape)
    };
    assert_eq!(bound(MAX_FILES), Ok(MAX_FILES));
    assert_eq!(bound(MAX_FILES + 1), Err("too-many"));
}

#[test]
fn nothing_is_kept_of_what_is_not_bound() {
    let machine = Machine::usual();
    let plan = plan("git log; ls", machine.lookup());
    let mut bound = bind(&plan, machine.lookup(), Input::Other).unwrap();
    let keep = |bound: &[ToBind]| {
        keepable(&plan, bound, &|_| false, Path::new("/srv/app"), Ask::OnMiss, false)
            .map(|offered| offered.into_iter().map(|keepable| keepable.width).collect::<Vec<_>>())
    };
    assert_eq!(keep(&bound), Ok(vec![Width::Exact, Width::ProgramArgs, Width::Program]));
    bound.pop();
    assert_eq!(keep(&bound), Err("the program `ls` is not bound".to_owned()));
}

#[test]
fn without_a_nameable_directory_nothing_is_bound_to_one() {
    let machine = Machine::usual();
    let plan = plan("git log", machine.lookup());
    let bound = bind(&plan, machine.lookup(), Input::Other).unwrap();
    let odd = Path::new(OsStr::from_bytes(b"/srv/\xff"));
    let offered = keepable(&plan, &bound, &|_| true, odd, Ask::OnMiss, true).unwrap();
    let shown: Vec<_> =
        offered.iter().map(|keepable| (keepable.width, keepable.not_durable.is_some())).collect();
    assert_eq!(shown, [(Width::ProgramArgs, true), (Width::Program, true)]);
}
