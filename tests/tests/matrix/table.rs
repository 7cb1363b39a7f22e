//! The matrix as a document, and the document in the repository.

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::cell::{Cell, Row};

const HEADER: &str = "# Failure matrix

What becomes of a session when a part of the system fails while its command writes. Each row is played by
`cargo test -p e2e --test matrix` with the real programs and compared with this file;
`UPDATE_MATRIX=1 cargo test -p e2e --test matrix` writes it anew. Do not edit it by hand.

The command writes 8 MiB of numbered lines in about two and a half seconds and ends with a code of its own. The fault
comes when a third was read.

| fault | of a process | of the link |
|---|---|---|
| kill | SIGKILL, and the program is started again | RST both ways |
| stop | SIGSTOP for 2 s, then SIGCONT | RST both ways, and connections are refused for 3 s |
| cut | SIGTERM, and the program is started again | FIN both ways |
| stall | no byte passes over its link for 2 s | no byte passes, until the ends have noticed |

- **foreground** is `gateway exec`, **background** is `gateway exec --detach` read by `gateway attach`, **pty** is
  `gateway exec --pty`.
- **lost** and **repeated** are bytes, of all that the command wrote or, where it was ended, of all that was kept. The
  SHA-256 of what the reader got is that of what was written.
- **ran** is how often the command was started.
- **how long** is the longest time without a byte from the fault on; where the command was ended: from the fault to its
  end. An upper bound.

";
const COLUMNS: &str = "| component | fault | mode | what is seen | lost | repeated | ran | how long |
|---|---|---|---|---|---|---|---|
";

/// What the reader sees of a fault, as one of these phrases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    AsStop,
    Pause,
    NodeAway,
    GatewayAway,
    ReadOn,
    EndedWithCaller,
    Lost,
    EndedByHolder,
}

/// A length of time, coarse enough to be the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Second,
    FiveSeconds,
    ThirtySeconds,
    Longer,
}

impl Seen {
    /// `exitReason` of the session afterwards.
    pub(crate) fn exit_reason(self) -> &'static str {
        match self {
            Self::AsStop | Self::Pause | Self::NodeAway | Self::GatewayAway | Self::ReadOn => "exit",
            Self::EndedWithCaller | Self::EndedByHolder => "manual-cancel",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsStop => "as stop",
            Self::Pause => "a pause; all output, then the exit",
            Self::NodeAway => "told that the node is away, and back; all output, then the exit",
            Self::GatewayAway => {
                "told that the gateway is away; the reader finds the session again; all output, then the exit"
            }
            Self::ReadOn => "the command goes on; the next reader reads on; all output, then the exit",
            Self::EndedWithCaller => "the command is ended with its caller; what it wrote is kept",
            Self::Lost => {
                "the command is ended; the session is lost and says so; what its holder had logged is kept"
            }
            Self::EndedByHolder => "the command is ended as by a kill; what it wrote is kept",
        })
    }
}

impl Class {
    const ALL: [Self; 3] = [Self::Second, Self::FiveSeconds, Self::ThirtySeconds];

    /// The class of a measured time, with room for a machine that is slower than this one.
    fn of(took: Duration) -> Self {
        match took {
            took if took < Duration::from_millis(400) => Self::Second,
            took if took < Duration::from_millis(3500) => Self::FiveSeconds,
            took if took < Duration::from_secs(25) => Self::ThirtySeconds,
            _ => Self::Longer,
        }
    }

    fn bound(self) -> Duration {
        match self {
            Self::Second => Duration::from_secs(1),
            Self::FiveSeconds => Duration::from_secs(5),
            Self::ThirtySeconds => Duration::from_secs(30),
            Self::Longer => Duration::MAX,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Longer => f.write_str("longer"),
            class => write!(f, "< {} s", class.bound().as_secs()),
        }
    }
}

/// The table, without the words around it.
pub(crate) fn render(rows: &[Row]) -> String {
    let mut text = COLUMNS.to_owned();
    for row in rows {
        let _ = writeln!(text, "{}{} |", promise(row), how_long(row, rows));
    }
    text
}

/// All of a row but its time.
fn promise(row: &Row) -> String {
    let Row { cell: Cell { component, fault, mode }, seen, difference, ran, .. } = row;
    let what = format!("| {component} | {fault} | {mode} | {seen} |");
    if *seen == Seen::AsStop {
        return format!("{what} | | |");
    }
    let lost = match seen {
        Seen::Lost => "what it had not logged".to_owned(),
        _ => difference.lost.to_string(),
    };
    format!("{what} {lost} | {} | {ran} |", difference.repeated)
}

/// One bound for a fault in all modes.
fn how_long(row: &Row, rows: &[Row]) -> String {
    if row.seen == Seen::AsStop {
        return String::new();
    }
    let same =
        |other: &&Row| (other.cell.component, other.cell.fault) == (row.cell.component, row.cell.fault);
    let took = rows.iter().filter(same).map(|row| row.took).max();
    format!(" {}", Class::of(took.unwrap_or(row.took)))
}

/// Compares with the file, or writes it.
#[track_caller]
pub(crate) fn compare(rows: &[Row]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/failure-matrix.md");
    if std::env::var_os("UPDATE_MATRIX").is_some() {
        std::fs::write(path, format!("{HEADER}{}", render(rows))).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    let kept = kept.strip_prefix(HEADER).expect("docs/failure-matrix.md begins as it would be written");
    assert_eq!(difference(kept, rows), None);
}

/// Where a table that is kept and what happened differ. The times in the table are bounds.
fn difference(kept: &str, rows: &[Row]) -> Option<String> {
    let kept: Vec<&str> = kept.strip_prefix(COLUMNS).unwrap_or_default().lines().collect();
    if kept.len() != rows.len() {
        return Some(format!("{} rows are kept, {} were played", kept.len(), rows.len()));
    }
    kept.into_iter().zip(rows).find_map(|(kept, row)| {
        let bound = kept.strip_prefix(&promise(row)).map(|rest| rest.trim_matches([' ', '|']));
        let holds = match bound {
            None => false,
            Some("") => row.seen == Seen::AsStop,
            Some(bound) => Class::ALL.into_iter().any(|c| c.to_string() == bound && row.took < c.bound()),
        };
        let found = || format!("kept is\n{kept}\nand this happened, in {:?}\n{}", row.took, promise(row));
        (!holds).then(found)
    })
}

#[cfg(test)]
mod tests {
    use e2e::fault_matrix::Difference;

    use super::*;
    use crate::cell::{Component, Fault, Mode};

    #[test]
    fn a_kept_table_is_held_against_what_happens() {
        let cell = Cell { component: Component::Link, fault: Fault::Cut, mode: Mode::Pty };
        let took = Duration::from_millis(300);
        let row = Row { cell, seen: Seen::Pause, difference: Difference::default(), ran: 1, took };
        let stop = Row { seen: Seen::AsStop, ..row.clone() };
        let kept = render(&[row.clone(), stop.clone()]);
        assert!(kept.contains("| 0 | 0 | 1 | < 1 s |"), "{kept}");
        let lost = Difference { lost: 3, ..Difference::default() };
        for (row, same) in [
            (row.clone(), true),
            (Row { took: Duration::from_millis(999), ..row.clone() }, true),
            (Row { took: Duration::from_secs(1), ..row.clone() }, false),
            (Row { seen: Seen::NodeAway, ..row.clone() }, false),
            (Row { difference: lost, ..row.clone() }, false),
            (Row { ran: 2, ..row.clone() }, false),
            (stop.clone(), false),
        ] {
            assert_eq!(difference(&kept, &[row.clone(), stop.clone()]).is_none(), same, "{row:?}");
        }
        assert!(difference(&kept, &[row]).is_some(), "a row is missing");
    }
}
