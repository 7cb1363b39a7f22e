//! A node that stops or dies, and the next one.

use std::time::Duration;

use bytes::Bytes;
use node_host::process::{Mode, Stdin};
use node_host::sessions::Sessions;
use session::{Death, Ended, RunId};

use super::Case;
use crate::bed::{self, Bed, eventually, limits, request};

pub(crate) const CASES: &[Case] = &[
    ("restart::the_next_node_adopts_and_reads_everything", adopt),
    ("restart::a_killed_node_loses_nothing", killed),
];

fn adopt(bed: &mut Bed) {
    // A long path: a socket's own has 108 bytes at most.
    let deep = tempfile::tempdir().unwrap();
    let dir = deep.path().join("d".repeat(120)).join("sessions");
    let open = |bed: &Bed| {
        let launcher = bed.spare_launcher();
        bed.runtime.block_on(Sessions::open(dir.clone(), launcher, limits())).unwrap()
    };
    let first = open(bed);
    let mut wanted = request(&["/bin/sh", "-c", "echo one; read x; echo got $x; read y; exit 6"]);
    wanted.mode = Mode::Pipes { stdin: Stdin::Open };
    let session = bed.runtime.block_on(first.start(wanted.clone())).unwrap();
    let done = bed.runtime.block_on(first.start(request(&["echo", "finished"]))).unwrap();
    let finished = bed.end_of(&done);
    bed.read_until(&session, "one\n");
    let (id, pid) = (session.id().clone(), session.info().pid.unwrap());
    let done = done.id().clone();
    drop((first, session));

    let second = open(bed);
    assert_eq!(bed.end_of(&second.find(&done).unwrap()), finished);
    // The retry of a start whose answer was lost.
    let session = bed.runtime.block_on(second.start(wanted)).unwrap();
    assert_eq!((session.id(), session.info().pid), (&id, Some(pid)));
    assert!(session.info().stdin_open);
    bed.runtime.block_on(session.write_stdin(Bytes::from_static(b"two\n"))).unwrap();
    assert_eq!(bed.read_until(&session, "got two\n"), "one\ngot two\n");

    // A third one takes over while the second is there: the second lets go and claims nothing.
    let third = open(bed);
    let adopted = third.find(&id).unwrap();
    bed.runtime.block_on(adopted.close_stdin()).unwrap();
    let (exit, output) = bed.end_of(&adopted);
    assert_eq!((exit.ended, output), (Ended::Died(Death::Code(6)), b"one\ngot two\n".to_vec()));
    assert_eq!(session.info().exit, None);
    drop((second, third));
    let fourth = open(bed);
    assert_eq!(bed.end_of(&fourth.find(&id).unwrap()).0.ended, Ended::Died(Death::Code(6)));
}

fn killed(bed: &mut Bed) {
    let dir = bed.dir.path().join("killed");
    let (mut host, id) = bed::spawn_host(&dir);
    host.kill().unwrap();
    host.wait().unwrap();
    let launcher = bed.spare_launcher();
    let sessions = bed.runtime.block_on(Sessions::open(dir, launcher, limits())).unwrap();
    let run = RunId::parse("counting").unwrap();
    let session = sessions.find_run(&run).unwrap();
    assert_eq!(session.id().as_str(), &*id);
    let holder = bed::stat(session.info().pid.unwrap()).unwrap().1;
    let launcher = bed::stat(holder).unwrap().1;
    let (exit, output) = bed.end_of(&session);
    let want: String = (0..200).map(|n| format!("line {n}\n")).collect();
    assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    assert_eq!(String::from_utf8(output).unwrap(), want);
    assert!(exit.duration_ms >= Duration::from_secs(2).as_millis() as u64);
    // Its last holder is gone, and so is the launcher that nobody needs any more.
    eventually("the orphaned launcher's end", || {
        bed::stat(launcher).is_none_or(|(state, _)| state == 'Z').then_some(())
    });
}
