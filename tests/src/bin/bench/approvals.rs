//! What a person's yes costs: from the yes to the start of the command, a long list of open requests, and runs for
//! which nobody is asked. OpenSSH has nothing to compare them with.

mod open;
mod unasked;
mod yes;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use anyhow::Context as _;

use crate::bed::Bed;
use crate::measure::Sides;
use crate::report::Row;

/// The node's document. Only its owner may read it.
const DOCUMENT: &str = "exec-approvals.json";
const PRIVATE: u32 = 0o600;
/// Nothing is allowed unasked.
const ASKS: &str =
    r#"{"version":1,"defaults":{"security":"allowlist","ask":"on-miss","askFallback":"deny"}}"#;
/// `/bin/true` is, wherever its links lead.
const ALLOWS_TRUE: &str = r#"{"version":1,"defaults":{"security":"allowlist","ask":"on-miss","askFallback":"deny"},
"agents":{"*":{"allowlist":[{"pattern":"/bin/true"},{"pattern":"/usr/bin/true"}]}}}"#;

/// Measures. Each part has programs of its own.
pub(crate) fn run(sides: Sides<'_>) -> anyhow::Result<Vec<Row>> {
    let mut rows = yes::run(sides)?;
    rows.extend(open::run(sides)?);
    rows.extend(unasked::run(sides)?);
    Ok(rows)
}

/// A bed whose node decides by this document. The node reads it anew for each run.
fn bed_with(sides: Sides<'_>, document: &str) -> anyhow::Result<Bed> {
    let bed = Bed::start(sides.binaries)?;
    let path = bed.node_dir().join(DOCUMENT);
    let new = path.with_extension("new");
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&new);
    file.and_then(|mut file| file.write_all(document.as_bytes()))
        .and_then(|()| std::fs::rename(&new, &path))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(bed)
}
