//! Nothing is left: no process, no zombie, no descriptor.

use std::time::{Duration, Instant};

use node_host::process::Mode;
use node_host::sessions::{ControlError, Session};
use session::{Death, Ended};

use super::Case;
use crate::bed::{Bed, children_of, descriptors_of, eventually, pids, processes_with, stat};

pub(crate) const CASES: &[Case] = &[
    ("kills::the_whole_tree_goes", whole_tree),
    ("kills::term_comes_first", term_first),
    ("kills::a_second_kill_does_not_wait", second_kill),
    ("kills::leftovers_end_with_the_session", leftovers),
    ("kills::a_silent_holder_of_the_pipe_ends_soon", pipe_holder),
    ("kills::a_dead_holder_leaves_nothing", dead_holder),
    ("kills::real_time_signals_arrive_too", numbered_signals),
    ("kills::the_deadline_ends_the_whole_tree", deadline),
    ("kills::a_stopped_process_hears_term_and_dies", stopped),
    ("kills::a_storm_of_forks_ends", storm),
    ("kills::a_process_that_becomes_another_all_the_time_ends", relay),
    ("kills::one_whose_first_thread_ended_is_no_corpse", headless),
    ("kills::one_that_ends_the_holder_ends", ends_its_holder),
    ("kills::a_kill_while_output_drains_ends_the_rest", while_draining),
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

/// `setsid`, double forks, groups of their own, one that ignores TERM and HUP, one that is stopped.
const EVERY_KIND: &str = "setsid sleep 7500 & (setsid sh -c '(sleep 7501 &) ; sleep 7502' &) ; \
     setsid sh -c 'trap \"\" TERM HUP INT; (setsid sleep 7503 &) ; sleep 7504; sleep 7504' & \
     sh -c 'kill -STOP $$; sleep 7505' & (setsid sh -c 'kill -STOP $$; : sleep 7506' &) ; echo up; wait";

fn deadline(bed: &mut Bed) {
    for mode in [Mode::PIPES, Mode::TERMINAL] {
        let (exit, _) = bed.run(EVERY_KIND, |r| (r.mode, r.deadline_ms) = (mode, Some(700)));
        assert!(matches!(exit.ended, Ended::TimedOut { .. }), "{exit:?}");
        assert!((700..2000).contains(&exit.duration_ms), "{exit:?}");
        assert_eq!([processes_with("sleep\x00750"), processes_with("sleep 750")].concat(), [0; 0]);
    }
}

fn stopped(bed: &mut Bed) {
    let dir = tempfile::tempdir().unwrap();
    let text = "trap 'echo heard >heard; exit 5' TERM; echo up; kill -STOP $$; sleep 7510";
    let session = bed.start(text, |r| r.cwd = dir.path().to_owned());
    let pid = session.info().pid;
    eventually("the stop", || {
        let pid = pid.or(session.info().pid)?;
        stat(pid).is_some_and(|(state, _)| state == 'T').then_some(())
    });
    bed.runtime.block_on(session.kill(Duration::from_secs(10))).unwrap();
    let (exit, _) = bed.end_of(&session);
    assert_eq!((exit.ended, exit.cancelled), (Ended::Died(Death::Code(5)), true));
    assert_eq!(std::fs::read(dir.path().join("heard")).unwrap(), b"heard\n");
}

/// Kills a session with a short grace; nothing with `mark` may be alive when its end is told, within two seconds.
fn ends_in_time(bed: &Bed, session: &Session, mark: &str) {
    let began = Instant::now();
    bed.runtime.block_on(session.kill(Duration::from_millis(300))).unwrap();
    let (exit, _) = bed.end_of(session);
    assert!(exit.cancelled, "{exit:?}");
    assert_eq!(processes_with(mark), [0; 0], "after {exit:?}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?} for {exit:?}", began.elapsed());
}

fn storm(bed: &mut Bed) {
    // Bounded, should the kill fail.
    let text = "trap '' TERM; n=0; while [ $n -lt 5000 ]; do (setsid sleep 7520 &) ; n=$((n+1)); done; wait";
    let session = bed.start(text, |_| {});
    eventually("the storm", || (processes_with("sleep\x007520").len() > 1500).then_some(()));
    ends_in_time(bed, &session, "sleep\x007520");
}

fn relay(bed: &mut Bed) {
    // Each one starts the next in a session of its own and ends: its number is out of date when it is signalled.
    let dir = tempfile::tempdir().unwrap();
    let text = "n=${1:-0}; trap '' TERM; [ $n -lt 20000 ] && setsid sh ./next $((n+1)) &";
    std::fs::write(dir.path().join("next"), text).unwrap();
    let session = bed.start("for i in 1 2 3; do sh ./next; done; sleep 7530", |r| {
        r.cwd = dir.path().to_owned();
    });
    eventually("the relay", || (processes_with("./next\0").len() > 2).then_some(()));
    ends_in_time(bed, &session, "./next\0");
}

fn headless(bed: &mut Bed) {
    // The system shows a process as a zombie when only its first thread has ended.
    let script = "import ctypes, threading, time, sys\n\
                  threading.Thread(target=lambda: (print('up', flush=True), time.sleep(7540))).start()\n\
                  ctypes.CDLL(None).syscall(60, 0)\n";
    if std::process::Command::new("python3").arg("-V").output().is_err() {
        return;
    }
    let path = std::env::var("PATH").unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("headless-7540.py"), script).unwrap();
    for text in ["exec python3 headless-7540.py", "setsid python3 headless-7540.py & sleep 7540"] {
        let session = bed.start(text, |r| {
            r.cwd = dir.path().to_owned();
            r.env[0].1 = path.clone().into_bytes();
        });
        bed.read_until(&session, "up");
        let first = eventually("the process", || pids().find(|&pid| is_headless(pid)));
        ends_in_time(bed, &session, "headless-7540");
        assert_eq!(stat(first), None);
    }
}

/// Whether only the first thread of a process has ended.
fn is_headless(pid: i32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    threads > 1 && stat(pid).is_some_and(|(state, _)| state == 'Z')
}

fn ends_its_holder(bed: &mut Bed) {
    let began = Instant::now();
    let (exit, _) = bed.run("setsid sleep 7550 & kill $PPID; sleep 7551", |_| {});
    assert_eq!((exit.ended, exit.cancelled), (Ended::Died(Death::Signal(15)), true));
    assert_eq!(processes_with("sleep\x00755"), [0; 0]);
    let (exit, _) = bed.run("setsid sleep 7550 & kill -9 $PPID; sleep 7551", |_| {});
    assert_eq!(exit.ended, Ended::Lost);
    gone("sleep\x00755");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

fn while_draining(bed: &mut Bed) {
    // The command is over; what it left behind goes on writing.
    let text = "(trap '' TERM; while :; do echo more; sleep 0.05; done) & echo $$; exit 4";
    let session = bed.start(text, |_| {});
    let output = bed.read_until(&session, "more\nmore");
    let shell: i32 = output.lines().find_map(|line| line.parse().ok()).unwrap();
    eventually("the command's end", || stat(shell).is_none().then_some(()));
    match bed.runtime.block_on(session.kill(Duration::ZERO)) {
        Ok(()) | Err(ControlError::Ended { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
    let (exit, _) = bed.end_of(&session);
    assert!(exit.leftovers_killed >= 1 && exit.duration_ms < 1500, "{exit:?}");
    assert_eq!((exit.ended, exit.cancelled), (Ended::Died(Death::Code(4)), true));
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
