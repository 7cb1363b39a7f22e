//! Bounds on what a command uses.

use node_host::process::Mode;
use session::{Death, Ended, LimitHit, LimitKind, Limits};

use super::Case;
use crate::bed::{Bed, eventually, processes_with};

pub(crate) const CASES: &[Case] = &[
    ("limits::too_much_memory_ends_the_tree", memory),
    ("limits::memory_behind_an_ended_first_thread_counts", hidden_memory),
    ("limits::shared_memory_counts_once", shared_memory),
    ("limits::too_many_processes_end_the_tree", pids),
    ("limits::processor_time_of_all_together_is_bounded", cpu),
    ("limits::processor_time_of_the_dead_counts", cpu_of_the_dead),
    ("limits::an_earlier_session_of_the_holder_does_not_count", earlier_session),
    ("limits::a_file_that_grows_too_large_ends_its_writer", file_size),
    ("limits::the_kernel_keeps_them_for_children_too", inherited),
    ("limits::what_stays_below_is_left_alone", below),
];

const MIB: u64 = 1 << 20;

const NONE: Limits = Limits { memory_bytes: None, pids: None, cpu_ms: None, file_bytes: None };

/// Runs until the bound is passed; nothing with `mark` may be left.
#[track_caller]
fn over(bed: &Bed, text: &str, limits: Limits, mark: &str) -> (LimitHit, Death) {
    let (exit, _) = bed.run(text, |r| r.limits = limits);
    assert_eq!(processes_with(mark), [0; 0], "{text}");
    assert!(!exit.cancelled, "{exit:?}");
    match exit.ended {
        Ended::LimitHit { hit, then } => (hit, then),
        other => panic!("{other:?} of {text}"),
    }
}

fn memory(bed: &mut Bed) {
    // Neither the shell nor a child of its own: a grandchild in a session of its own keeps one endless line.
    let text = "(setsid tail /dev/zero &) ; sleep 7801";
    let limits = Limits { memory_bytes: Some(64 * MIB), ..NONE };
    let (hit, then) = over(bed, text, limits, "tail\0/dev/zero");
    assert_eq!((hit.kind, hit.allowed, then), (LimitKind::Memory, 64 * MIB, Death::Signal(9)));
    assert!((64 * MIB..2048 * MIB).contains(&hit.used), "{hit:?}");
    assert_eq!(processes_with("sleep\x007801"), [0; 0]);
}

fn hidden_memory(bed: &mut Bed) {
    if std::process::Command::new("python3").arg("-V").output().is_err() {
        return;
    }
    let script = "import ctypes, threading, time\n\
                  def hide():\n    time.sleep(0.3); x = b'x' * 300_000_000; time.sleep(7806)\n\
                  threading.Thread(target=hide).start()\n\
                  ctypes.CDLL(None).syscall(60, 0)\n";
    let path = std::env::var("PATH").unwrap();
    let session = bed.start("exec python3 -c \"$SCRIPT\"", |r| {
        r.limits = Limits { memory_bytes: Some(128 * MIB), ..NONE };
        r.env[0].1 = path.into_bytes();
        r.env.push((b"SCRIPT".to_vec(), script.as_bytes().to_vec()));
    });
    let (exit, _) = bed.end_of(&session);
    assert!(
        matches!(exit.ended, Ended::LimitHit { hit: LimitHit { kind: LimitKind::Memory, .. }, .. }),
        "{exit:?}"
    );
}

fn shared_memory(bed: &mut Bed) {
    // Ten copies of a shell that share what it holds.
    let text = "x=$(head -c 8000000 /dev/zero | tr '\\0' a); n=0; \
                while [ $n -lt 10 ]; do (sleep 0.7; :) & n=$((n+1)); done; wait; echo ${#x}";
    let (exit, output) = bed.run(text, |r| r.limits = Limits { memory_bytes: Some(64 * MIB), ..NONE });
    assert_eq!((exit.ended, output), (Ended::Died(Death::Code(0)), b"8000000\n".to_vec()));
}

fn pids(bed: &mut Bed) {
    let text = "n=0; while [ $n -lt 300 ]; do sleep 7802 & n=$((n+1)); done; wait";
    let (hit, then) = over(bed, text, Limits { pids: Some(20), ..NONE }, "sleep\x007802");
    assert_eq!((hit.kind, hit.allowed, then), (LimitKind::Pids, 20, Death::Signal(9)));
    assert!((21..=301).contains(&hit.used), "{hit:?}");
}

fn cpu(bed: &mut Bed) {
    let text = "(while :; do :; done) & (while :; do :; done) & wait; echo 7803";
    let (hit, then) = over(bed, text, Limits { cpu_ms: Some(400), ..NONE }, "echo 7803");
    assert_eq!((hit.kind, hit.allowed, then), (LimitKind::Cpu, 400, Death::Signal(9)));
    assert!((401..4000).contains(&hit.used), "{hit:?}");
}

fn cpu_of_the_dead(bed: &mut Bed) {
    // Each child is gone long before it has used so much, and so is the parent of every second one.
    let burn = "n=0; while [ $n -lt 5000 ]; do n=$((n+1)); done";
    let text = format!("while :; do sh -c '{burn}'; (sh -c '{burn}; : 7804' &) ; done");
    let (hit, _) = over(bed, &text, Limits { cpu_ms: Some(600), ..NONE }, ": 7804");
    assert_eq!((hit.kind, hit.allowed), (LimitKind::Cpu, 600));
    assert!((601..6000).contains(&hit.used), "{hit:?}");
}

fn earlier_session(bed: &mut Bed) {
    for _ in 0..3 {
        let burn = "n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done";
        assert_eq!(bed.run(&format!("({burn}) ; exit 0"), |_| {}).0.ended, Ended::Died(Death::Code(0)));
        let (exit, _) = bed.run("sleep 0.1", |r| r.limits = Limits { cpu_ms: Some(60), ..NONE });
        assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    }
}

fn file_size(bed: &mut Bed) {
    for mode in [Mode::PIPES, Mode::TERMINAL] {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits { file_bytes: Some(MIB), ..NONE };
        let (exit, _) = bed.run("sleep 0.1; exec head -c 9000000 /dev/zero >big", |r| {
            (r.limits, r.mode, r.cwd) = (limits, mode, dir.path().to_owned());
        });
        let hit = LimitHit { kind: LimitKind::FileSize, allowed: MIB, used: 0 };
        assert_eq!(exit.ended, Ended::LimitHit { hit, then: Death::Signal(25) });
        assert_eq!(std::fs::metadata(dir.path().join("big")).unwrap().len(), MIB);
    }
    // A session's output is no file of the command.
    let limits = Limits { file_bytes: Some(1000), ..NONE };
    let (exit, output) = bed.run("sleep 0.1; exec head -c 500000 /dev/zero", |r| r.limits = limits);
    assert_eq!((exit.ended, output.len()), (Ended::Died(Death::Code(0)), 500_000));
}

fn inherited(bed: &mut Bed) {
    let limits = Limits { file_bytes: Some(4096 * 512), cpu_ms: Some(2500), ..NONE };
    let text = "sleep 0.2; sh -c 'ulimit -S -f; ulimit -H -f; ulimit -S -t; ulimit -H -t'";
    let (exit, output) = bed.run(text, |r| r.limits = limits);
    let output = String::from_utf8(output).unwrap();
    assert_eq!((exit.ended, &*output), (Ended::Died(Death::Code(0)), "4096\n4096\n4\n5\n"));
}

fn below(bed: &mut Bed) {
    let limits =
        Limits { memory_bytes: Some(256 * MIB), pids: Some(50), cpu_ms: Some(20_000), file_bytes: Some(MIB) };
    let dir = tempfile::tempdir().unwrap();
    for mode in [Mode::PIPES, Mode::TERMINAL] {
        let session = bed.start("echo up >small; sleep 7805 & sleep 1.5; cat small; kill $!; exit 3", |r| {
            (r.limits, r.mode, r.cwd) = (limits, mode, dir.path().to_owned());
        });
        eventually("the sleeper", || (!processes_with("sleep\x007805").is_empty()).then_some(()));
        let (exit, output) = bed.end_of(&session);
        assert_eq!(exit.ended, Ended::Died(Death::Code(3)));
        assert_eq!(String::from_utf8(output).unwrap().trim_end(), "up");
        assert_eq!(session.info().limits, limits);
    }
}
