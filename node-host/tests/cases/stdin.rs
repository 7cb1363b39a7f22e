//! Input: closed unless asked for, ended when told, never in the way of output.

use bytes::Bytes;
use node_host::process::{Mode, Stdin};
use node_host::sessions::{StartRequest, StdinError};
use session::{Death, Ended};

use super::Case;
use crate::bed::{Bed, eventually, stat, within};
use crate::cases::{IDLE_TICKS, ticks_of};

pub(crate) const CASES: &[Case] = &[
    ("stdin::closed_unless_asked_for", closed),
    ("stdin::end_of_input_is_seen", half_close),
    ("stdin::four_mebibytes_through_cat", both_directions),
    ("stdin::an_exit_beats_a_write", exit_wins),
    ("stdin::one_that_the_command_closed_costs_nothing", closed_by_command),
];

fn open(request: &mut StartRequest) {
    request.mode = Mode::Pipes { stdin: Stdin::Open };
}

fn closed(bed: &mut Bed) {
    for text in ["cat", "grep x", "read v; echo $?"] {
        let session = bed.start(text, |_| {});
        let written = bed.runtime.block_on(session.write_stdin(Bytes::from_static(b"x")));
        assert_eq!(written, Err(StdinError::NotOpened));
        let (exit, _) = bed.end_of(&session);
        assert!(exit.duration_ms < 1000, "{text}: {exit:?}");
    }
}

fn half_close(bed: &mut Bed) {
    let session = bed.start("wc -c", open);
    bed.runtime.block_on(async {
        session.write_stdin(Bytes::from_static(b"12345")).await.unwrap();
        session.close_stdin().await.unwrap();
        let after = session.write_stdin(Bytes::from_static(b"6")).await;
        assert!(matches!(after, Err(StdinError::Closed | StdinError::Ended { .. })), "{after:?}");
    });
    assert_eq!(bed.end_of(&session).1, b"5\n");
}

fn both_directions(bed: &mut Bed) {
    let session = bed.start("cat", open);
    let data: Vec<u8> = (0..4_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    bed.runtime.block_on(within(async {
        // Nobody reads yet.
        session.write_stdin(data.clone().into()).await.unwrap();
        session.close_stdin().await.unwrap();
    }));
    let (exit, output) = bed.end_of(&session);
    assert_eq!(exit.ended, Ended::Died(Death::Code(0)));
    assert!(output == data);
}

fn exit_wins(bed: &mut Bed) {
    let session = bed.start("head -c 3; exit 0", open);
    let written = bed.runtime.block_on(within(session.write_stdin(vec![b'x'; 8 << 20].into())));
    assert!(matches!(written, Err(StdinError::Closed | StdinError::Ended { .. })), "{written:?}");
    let (exit, output) = bed.end_of(&session);
    assert_eq!((exit.ended, output), (Ended::Died(Death::Code(0)), b"xxx".to_vec()));
    let late = bed.runtime.block_on(session.write_stdin(Bytes::from_static(b"x")));
    assert!(matches!(late, Err(StdinError::Ended { .. })), "{late:?}");
}

fn closed_by_command(bed: &mut Bed) {
    let session = bed.start("exec 0<&-; echo closed; sleep 2; echo slept; sleep 60", open);
    bed.read_until(&session, "closed");
    let (_, holder) = stat(session.info().pid.unwrap()).unwrap();
    let before = ticks_of(holder);
    eventually("the news of it", || (!session.info().stdin_open).then_some(()));
    let late = bed.runtime.block_on(session.write_stdin(Bytes::from_static(b"x")));
    assert_eq!(late, Err(StdinError::Closed));
    bed.read_until(&session, "slept");
    let spent = ticks_of(holder) - before;
    assert!(spent < IDLE_TICKS, "{spent} ticks");
    bed.runtime.block_on(session.kill(std::time::Duration::ZERO)).unwrap();
    assert_eq!(bed.end_of(&session).1, b"closed\nslept\n");
}
