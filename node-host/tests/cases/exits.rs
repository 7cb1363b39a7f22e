//! How sessions end, and how they start or do not.

use std::time::Instant;

use node_host::sessions::StartError;
use session::{Death, Ended, StartFailure};

use super::Case;
use crate::bed::{Bed, request};

pub(crate) const CASES: &[Case] = &[
    ("exits::codes_and_signals_are_kept_apart", codes_and_signals),
    ("exits::what_cannot_start_says_why", cannot_start),
    ("exits::deadline_is_a_timeout", deadline),
    ("exits::environment_and_signals_are_clean", clean_child),
    ("exits::a_run_id_is_one_run", one_run),
];

fn codes_and_signals(bed: &mut Bed) {
    for (text, want) in [
        ("exit 0", Death::Code(0)),
        ("exit 7", Death::Code(7)),
        ("exit 255", Death::Code(255)),
        ("kill -9 $$", Death::Signal(9)),
        ("kill -15 $$", Death::Signal(15)),
        ("no-such-program-here", Death::Code(127)),
        // F142: the holder survives its command's wrath long enough to report.
        ("kill -INT $PPID; exit 3", Death::Code(3)),
    ] {
        let (exit, _) = bed.run(text, |_| {});
        assert_eq!((exit.ended, exit.cancelled), (Ended::Died(want), false), "{text}");
        assert_eq!(exit.leftovers_killed, 0);
    }
}

fn cannot_start(bed: &mut Bed) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plain");
    std::fs::write(&file, "x").unwrap();
    let long = "x".repeat(131_072);
    let fits = "x".repeat(131_071);
    let gone = dir.path().join("gone");
    let kind = |argv: &[&str], cwd: &std::path::Path| {
        let mut request = request(argv);
        request.cwd = cwd.to_owned();
        let session = bed.runtime.block_on(bed.sessions().start(request)).unwrap();
        match bed.end_of(&session).0.ended {
            Ended::CouldNotStart { kind, errno, detail } => {
                assert!(!detail.is_empty());
                Err((kind, errno))
            }
            other => Ok(other),
        }
    };
    let root = std::path::Path::new("/");
    assert_eq!(kind(&["nope-nope"], root), Err((StartFailure::NotFound, 2)));
    assert_eq!(kind(&[file.to_str().unwrap()], root), Err((StartFailure::NotExecutable, 13)));
    assert_eq!(kind(&["/"], root), Err((StartFailure::NotExecutable, 13)));
    assert_eq!(kind(&["true"], &gone), Err((StartFailure::Workdir, 2)));
    assert_eq!(kind(&["true"], &file), Err((StartFailure::Workdir, 20)));
    assert_eq!(kind(&["true", &long], root), Err((StartFailure::TooLong, 7)));
    assert_eq!(kind(&["true", &fits], root), Ok(Ended::Died(Death::Code(0))));
}

fn deadline(bed: &mut Bed) {
    let began = Instant::now();
    let (exit, output) = bed.run("echo before; sleep 600 & wait", |r| r.deadline_ms = Some(500));
    assert_eq!(exit.ended, Ended::TimedOut { then: Death::Signal(15) });
    assert_eq!(output, b"before\n");
    assert!((500..1500).contains(&exit.duration_ms), "{exit:?}");
    assert!(began.elapsed().as_millis() < 2000);
    let (exit, output) = bed.run("trap 'echo bye; exit 5' TERM; while :; do sleep 0.05; done", |r| {
        r.deadline_ms = Some(200);
    });
    assert_eq!(exit.ended, Ended::TimedOut { then: Death::Code(5) });
    assert!(String::from_utf8(output).unwrap().contains("bye\n"));
}

fn clean_child(bed: &mut Bed) {
    let (exit, output) = bed.run("env | grep -v '^PWD\\|^_\\|^SHLVL\\|^OLDPWD' | sort; pwd", |r| {
        r.cwd = "/usr".into();
        r.env.push((b"X".to_vec(), b"\xff y".to_vec()));
    });
    assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    assert_eq!(output, b"HOME=/\nPATH=/usr/bin:/bin\nX=\xff y\n/usr\n");
    let text = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -l";
    let (_, output) = bed.run(text, |_| {});
    // 0, 1, 2 and the directory that ls itself reads.
    assert_eq!(
        String::from_utf8(output).unwrap(),
        // 32 and 33 are glibc's own; its posix_spawn leaves them ignored.
        "SigBlk:\t0000000000000000\nSigIgn:\t0000000180000000\n4\n"
    );
}

fn one_run(bed: &mut Bed) {
    let again = request(&["/bin/sh", "-c", "echo once"]);
    let start = |request| bed.runtime.block_on(bed.sessions().start(request));
    let first = start(again.clone()).unwrap();
    let second = start(again.clone()).unwrap();
    assert_eq!(first.id(), second.id());
    assert_eq!(bed.end_of(&second).1, b"once\n");
    assert_eq!(start(again.clone()).unwrap().id(), first.id());
    let mut other = again.clone();
    other.input_digest = [8; 32];
    match start(other) {
        Err(StartError::RunIdConflict { run_id, session_id }) => {
            assert_eq!((&run_id, &session_id), (&again.run_id, first.id()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bed.sessions().find_run(&again.run_id).unwrap().id(), first.id());
    bed.sessions().forget(first.id());
    assert!(bed.sessions().find(first.id()).is_none());
}
