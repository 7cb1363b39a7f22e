//! Two numbers of this machine, in which `/proc` counts.

/// Bytes of a page of memory.
pub(crate) fn page_bytes() -> u64 {
    positive(libc::_SC_PAGESIZE, 4096)
}

/// Clock ticks of a second.
pub(crate) fn ticks_per_second() -> u64 {
    positive(libc::_SC_CLK_TCK, 100)
}

fn positive(name: libc::c_int, usual: u64) -> u64 {
    // SAFETY: `sysconf` takes a number and touches no memory of ours.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).ok().filter(|&value| value > 0).unwrap_or(usual)
}
