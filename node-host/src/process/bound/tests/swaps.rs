//! Somebody who swaps what was approved, 10 000 times each.

use std::sync::atomic::{AtomicBool, Ordering};

use session::StartFailure;

use super::{BAD, BoundRole, GOOD, elf, run, world};

struct StopIt<'a>(&'a AtomicBool);

impl Drop for StopIt<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody replaces the file as fast as possible, by name and in place, while it is started again and again. Whatever is
/// started is what was approved: that leaves with 7.
fn swap_loop(kind: BoundRole, good: &[u8], bad: &[u8], rounds: u32) {
    let w = world();
    let shell = elf(&w, "shell");
    let tool = w.put("tool", good);
    let keep = w.path("keep");
    std::fs::hard_link(&tool, &keep).unwrap();
    let (bound, argv) = match kind {
        BoundRole::Script => {
            let files = [(shell.as_path(), BoundRole::Program, false), (tool.as_path(), kind, true)];
            (w.bound(&files), vec!["sh", "/proc/self/fd/101"])
        }
        _ => (w.bound(&[(&tool, kind, true)]), vec!["tool"]),
    };
    let spec = w.spec(bound, &argv);
    let stop = AtomicBool::new(false);
    let (mut ran, mut refusals) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0;
            // In place, through the very inode that was approved; then another file under its name; then back.
            while !stop.load(Ordering::Relaxed) {
                let _ = std::fs::write(&keep, bad);
                let _ = std::fs::write(&keep, good);
                w.put("tool", bad);
                let back = w.path("back");
                let _ = std::fs::hard_link(&keep, &back);
                let _ = std::fs::rename(&back, &tool);
                // Long enough, now and then, for a start to end well.
                turn = (turn + 1) % 8;
                for _ in 0..turn * turn * 6000 {
                    std::hint::spin_loop();
                }
            }
        });
        // Also when something below fails.
        let _stop = StopIt(&stop);
        for round in 0..rounds {
            match run(&spec) {
                Ok((_, code)) => {
                    assert_eq!(code, 7, "round {round}");
                    ran += 1;
                }
                // Executing what is open for writing is refused by the system.
                Err(failure) => {
                    assert!(
                        matches!(failure.kind, StartFailure::Changed | StartFailure::NotExecutable),
                        "{failure:?}"
                    );
                    refusals += 1;
                }
            }
        }
    });
    assert!(ran > 0 && refusals > 0, "{ran} ran, {refusals} were refused: nothing was raced");
}

#[test]
fn a_program_that_is_swapped_all_the_time_is_never_the_wrong_one() {
    let [good, bad] = [7, 9].map(leaves_with);
    swap_loop(BoundRole::Program, &good, &bad, 10_000);
}

#[test]
fn a_script_program_that_is_swapped_all_the_time_is_never_the_wrong_one() {
    swap_loop(BoundRole::Program, GOOD.as_bytes(), BAD.as_bytes(), 10_000);
}

#[test]
fn a_script_that_is_swapped_all_the_time_is_never_the_wrong_one() {
    swap_loop(BoundRole::Script, GOOD.as_bytes(), BAD.as_bytes(), 10_000);
}

/// An ELF program that does nothing but end with this code: starting it costs as little as can be.
pub(super) fn leaves_with(code: u8) -> Vec<u8> {
    let machine: (u16, Vec<u8>) = match std::env::consts::ARCH {
        // mov edi, CODE; mov eax, 60; syscall
        "x86_64" => (62, vec![0xbf, code, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]),
        // mov x0, CODE; mov x8, 93; svc 0
        "aarch64" => {
            let words = [0xd280_0000 | u32::from(code) << 5, 0xd280_0ba8, 0xd400_0001_u32];
            (183, words.iter().flat_map(|word| word.to_le_bytes()).collect())
        }
        other => panic!("this test knows no code for {other}"),
    };
    let (base, headers) = (0x40_0000_u64, 64 + 56_u64);
    let size = headers + machine.1.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let put = |file: &mut Vec<u8>, width: usize, value: u64| file.extend(&value.to_le_bytes()[..width]);
    // An executable of this machine; its entry; where the one program header lies; sizes.
    for (width, value) in [(2, 2), (2, machine.0.into()), (4, 1), (8, base + headers), (8, 64), (8, 0)] {
        put(&mut file, width, value);
    }
    for (width, value) in [(4, 0), (2, 64), (2, 56), (2, 1), (2, 64), (2, 0), (2, 0)] {
        put(&mut file, width, value);
    }
    // All of it is loaded, to be read and executed.
    for (width, value) in [(4, 1), (4, 5), (8, 0), (8, base), (8, base), (8, size), (8, size), (8, 0x1000)] {
        put(&mut file, width, value);
    }
    file.extend(machine.1);
    file
}
