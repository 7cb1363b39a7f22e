//! The one place that asks for the time of day.

use time::OffsetDateTime;

use crate::store::UnixMs;

/// Now, for certificates.
pub(crate) fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Now, for records and the wire.
pub(crate) fn now_ms() -> UnixMs {
    to_ms(now())
}

/// A moment as it is stored and sent.
pub(crate) fn to_ms(moment: OffsetDateTime) -> UnixMs {
    UnixMs::try_from(moment.unix_timestamp_nanos() / 1_000_000).unwrap_or(UnixMs::MAX)
}
