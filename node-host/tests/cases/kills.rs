//! Nothing is left: no process, no zombie, no descriptor.

use std::time::{Duration, Instant};

use node_host::process::Mode;
use node_host::sessions::ControlError;
use session::{Death, Ended};

use super::Case;
use crate::bed::{Bed, children_of, descriptors_of, eventually, processes_with, stat};

pub(crate) const CASES: &[Case] = &[
    ("kills::the_whole_tree_goes", whole_tree),
    ("kills::term_comes_first", term_first),
    ("kills::a_second_kill_does_not_wait", second_kill),
    ("kills::leftovers_end_with_the_session", leftovers),
    ("kills::a_silent_holder_of_the_pipe_ends_soon", pipe_holder),
    ("kills::a_dead_holder_leaves_nothing", dead_holder),
    ("kills::real_time_signals_arrive_too", numbered_signals),
    ("kills::nothing_leaks", nothing_leaks),
];

fn gone(mark: &str) {
    eventually(mark, || processes_with(mark).is_empty().then_some(()));
}

fn whole_tree(bed: &mut Bed) {
    let text = "setsid sleep 7101 & (setsid sh -c '(sleep 7102 &) ; sleep 7103' &) ; \
                sh -c 'trap \"\" TERM; sleep 7104 & wait; wait' & echo up; wait";
    for mode in [Mode::PIPES, Mode::TERMINAL] {
        let session = bed.start(text, |r| r.mode = mode);
        eventually("all sleepers", || (processes_with("sleep\x00710").len() >= 4).then_some(()));
        let began = Instant::now();
        bed.runtime.block_on(session.kill(Duration::from_millis(200))).unwrap();
        let (exit, _) = bed.end_of(&session);
        assert!(exit.cancelled, "{exit:?}");
        assert!(matches!(exit.ended, Ended::Died(Death::Signal(15 | 9 | 1))), "{exit:?}");
        assert!(began.elapsed() < Duration::from_secs(2));
        // Before the exit is told, not some time after it.
        assert_eq!(processes_with("sleep\x00710"), [0; 0]);
        let again = bed.runtime.block_on(session.kill(Duration::ZERO));
        assert!(matches!(again, Err(ControlError::Ended { .. })), "{again:?}");
    }
}

fn term_first(bed: &mut Bed) {
    let session = bed.start("trap 'echo bye' TERM; echo up; while :; do sleep 0.05; done", |_| {});
    bed.read_until(&session, "up");
    bed.runtime.block_on(session.kill(Duration::from_millis(300))).unwrap();
    let (exit, output) = bed.end_of(&session);
    assert_eq!(exit.ended, Ended::Died(Death::Signal(9)));
    assert!(exit.cancelled);
    assert!(String::from_utf8(output).unwrap().contains("bye"));
}

fn second_kill(bed: &mut Bed) {
    let session = bed.start("trap '' TERM; echo up; while :; do sleep 0.05; done", |_| {});
    bed.read_until(&session, "up");
    let began = Instant::now();
    bed.runtime.block_on(session.kill(Duration::from_secs(60))).unwrap();
    bed.runtime.block_on(session.kill(Duration::from_secs(60))).unwrap();
    assert_eq!(bed.end_of(&session).0.ended, Ended::Died(Death::Signal(9)));
    assert!(began.elapsed() < Duration::from_secs(5));
}

fn leftovers(bed: &mut Bed) {
    let (exit, output) =
        bed.run("sleep 7201 >/dev/null 2>&1 & setsid sleep 7202 >/dev/null 2>&1 & echo hi; exit 4", |_| {});
    assert_eq!((exit.ended, output), (Ended::Died(Death::Code(4)), b"hi\n".to_vec()));
    assert_eq!(exit.leftovers_killed, 2);
    assert!(!exit.cancelled);
    assert!(exit.duration_ms < 1000, "{}", exit.duration_ms);
    gone("sleep\x00720");
}

fn pipe_holder(bed: &mut Bed) {
    let (exit, output) = bed.run("echo start; sleep 7300 | cat & exit 0", |_| {});
    assert_eq!((exit.ended, output), (Ended::Died(Death::Code(0)), b"start\n".to_vec()));
    assert!(exit.duration_ms < 3000, "{}", exit.duration_ms);
    // One that keeps writing is heard for two seconds at most.
    let (exit, _) = bed.run("(while :; do echo more; sleep 0.05; done) & exit 0", |_| {});
    assert!((1500..4000).contains(&exit.duration_ms), "{}", exit.duration_ms);
}

fn dead_holder(bed: &mut Bed) {
    let session = bed.start("echo kept; setsid sleep 7400 & sleep 7401", |_| {});
    bed.read_until(&session, "kept");
    eventually("the sleepers", || (processes_with("sleep\x00740").len() == 2).then_some(()));
    let shell = session.info().pid.unwrap();
    let (_, holder) = stat(shell).unwrap();
    assert_ne!(holder, bed.launcher_pid);
    assert_eq!(stat(holder).unwrap().1, bed.launcher_pid);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(holder).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let (exit, output) = bed.end_of(&session);
    assert_eq!((exit.ended, output), (Ended::Lost, b"kept\n".to_vec()));
    gone("sleep\x00740");
    eventually("the shell's end", || stat(shell).is_none().then_some(()));
}

fn numbered_signals(bed: &mut Bed) {
    for mode in [Mode::PIPES, Mode::TERMINAL] {
        // 32 and 33 belong to the C library, which starts every command with these two ignored.
        for number in [1, 15, 31, 34, 64] {
            let session = bed.start("echo up; exec sleep 60", |r| r.mode = mode);
            bed.read_until(&session, "up");
            bed.runtime.block_on(session.signal(number)).unwrap();
            assert_eq!(bed.end_of(&session).0.ended, Ended::Died(Death::Signal(number)));
        }
    }
}

fn nothing_leaks(bed: &mut Bed) {
    // Holders wait for the next session, a bounded number of them: up to 3 fresh ones and 8 that served before.
    bed.run("true", |_| {});
    let me = std::process::id() as i32;
    let settled = |bed: &Bed| {
        eventually("quiet", || {
            let holders = children_of(bed.launcher_pid);
            (holders.len() <= 3 + 8).then(|| (descriptors_of(bed.launcher_pid), descriptors_of(me)))
        })
    };
    let before = settled(bed);
    for n in 0..200 {
        bed.run("true", |r| r.mode = if n % 4 == 0 { Mode::TERMINAL } else { Mode::PIPES });
    }
    eventually("the descriptors' return", || {
        let now = settled(bed);
        (now.0 <= before.0 && now.1 <= before.1 + 3 + 8).then_some(())
    });
    // Launchers that other cases let go of wait for the end of this process, which is no node host.
    let is_launcher = |pid: i32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "farrun-launch\n")
    };
    let zombies = || {
        let of =
            |pid| children_of(pid).into_iter().filter(|&c| stat(c).is_some_and(|(state, _)| state == 'Z'));
        of(bed.launcher_pid).chain(of(me)).filter(|&pid| !is_launcher(pid)).count()
    };
    eventually("no zombies", || (zombies() == 0).then_some(()));
    assert!(bed.sessions().list().len() <= 51);
}
