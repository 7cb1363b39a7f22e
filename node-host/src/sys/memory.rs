//! Giving memory back.

use rustix::mm::{Advice, madvise};

/// An allocation of so many bytes gets pages of its own, which go back to the system with it.
#[cfg(target_env = "gnu")]
const OWN_PAGES: libc::c_int = 64 * 1024;

/// Keeps large allocations apart from small ones for as long as this process lives. Without it the allocator does so only
/// until the first of them is freed.
pub(crate) fn keep_large_apart() {
    // SAFETY: sets a number of the allocator's; the process has one thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES);
    }
}

/// Lets go of what the allocator keeps in reserve.
pub(crate) fn give_back_heap() {
    // SAFETY: it frees only what nobody has, and may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Lets go of the pages of programs and libraries that this process has used so far. What it uses again comes back from
/// the page cache, which all processes of a program share.
pub(crate) fn let_go_of_program() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    for (start, end) in unchanged(&maps) {
        let address = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the range is a mapping of a file that cannot be written to, and none of its pages differs from the
        // file: one that is dropped is read again when it is touched, this very code included.
        let _ = unsafe { madvise(address, end - start, Advice::LinuxDontNeed) };
    }
}

/// Start and end of the mappings that are as their files are. What the loader wrote to and closed again is not, and has
/// anonymous pages.
fn unchanged(maps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in maps.lines() {
        match line.split_once(':') {
            Some(("Anonymous", size)) => {
                found.extend(candidate.take().filter(|_| size.trim() == "0 kB"));
            }
            Some((name, _)) if !name.contains(' ') => {}
            _ => candidate = file_mapping(line),
        }
    }
    found
}

/// The range of a mapping's first line, when it is a private one of a file that cannot be written to.
fn file_mapping(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let wanted = matches!(fields.next()?, "r-xp" | "r--p") && fields.nth(3)?.starts_with('/');
    let number = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    (wanted && start < end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_as_in_its_file_is_let_go_of() {
        let lines = [
            ("10-11 r-xp 00001000 fd:00 77 /usr/bin/a: b", "0 kB", true),
            ("11-12 r--p 00000000 fd:00 77 /usr/bin/a", "0 kB", true),
            ("12-13 r--p 00001000 fd:00 77 /usr/bin/a", "4 kB", false),
            ("13-14 rw-p 00001000 fd:00 77 /usr/bin/a", "0 kB", false),
            ("14-15 rwxp 00001000 fd:00 77 /usr/bin/a", "0 kB", false),
            ("15-16 r-xs 00001000 fd:00 77 /usr/bin/a", "0 kB", false),
            ("16-17 r-xp 00000000 00:00 0  [vdso]", "0 kB", false),
            ("17-18 r-xp 00000000 00:00 0 ", "0 kB", false),
            ("19-18 r-xp 00000000 fd:00 77 /usr/bin/a", "0 kB", false),
        ];
        let mut maps = String::from("Anonymous: 0 kB\n");
        for (line, anonymous, _) in lines {
            maps += &format!("{line}\nSize:    4 kB\nAnonymous:     {anonymous}\nVmFlags: rd ex\n");
        }
        let want = lines.iter().filter(|(.., wanted)| *wanted).map(|(line, ..)| file_mapping(line).unwrap());
        assert_eq!(unchanged(&maps), want.collect::<Vec<_>>());
        assert_eq!(unchanged(&maps), [(0x10, 0x11), (0x11, 0x12)]);
    }

    #[test]
    fn the_program_goes_on_without_its_pages() {
        assert!(!unchanged(&std::fs::read_to_string("/proc/self/smaps").unwrap()).is_empty());
        let before = std::hint::black_box(vec![1_u8; 1 << 20]);
        let_go_of_program();
        give_back_heap();
        assert_eq!(before.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 1 << 20);
    }
}
