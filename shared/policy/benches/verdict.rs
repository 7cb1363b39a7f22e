//! The time of a verdict: `cargo bench -p policy`.
//!
//! Files are looked up in a map, as the node's warm cache does.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::{
    collections::HashMap,
    hint::black_box,
    path::{Path, PathBuf},
    sync::Mutex,
};

use criterion::{Criterion, criterion_group, criterion_main};
use policy::{
    AllowEntry, Ask, EffectivePolicy, HostPolicy, Requested, Security, Terms,
    allowlist::Allowlist,
    analyse::Rules,
    inline_eval::Input,
    judge,
    plan::Invocation,
    resolve::{File, Files, Lookup},
    safe_bins::{SafeBins, SafeBinsConfig},
    skills::Skills,
};

struct Warm(Mutex<HashMap<PathBuf, Option<File>>>);

impl Files for Warm {
    fn look(&self, path: &Path) -> Option<File> {
        let mut files = self.0.lock().ok()?;
        if let Some(file) = files.get(path) {
            return file.clone();
        }
        let here = path.parent() == Some(Path::new("/usr/bin"));
        let file = here.then(|| File {
            real: path.to_path_buf(),
            device: 1,
            inode: 1,
            regular: true,
            executable: true,
        });
        files.insert(path.to_path_buf(), file.clone());
        file
    }
}

/// `count` entries of all kinds, the last one for `git`.
fn entries(count: usize) -> Vec<AllowEntry> {
    let mut entries: Vec<_> = (1..count)
        .map(|number| AllowEntry {
            pattern: match number % 4 {
                0 => format!("/opt/tools/{number}/*"),
                1 => format!("tool-{number}"),
                2 => format!("/usr/local/bin/tool-{number}"),
                _ => format!("program-{number}"),
            },
            arg_pattern: (number % 4 == 3).then(|| format!("^--job {number}$")),
            ..AllowEntry::default()
        })
        .collect();
    entries.push(AllowEntry { pattern: "git".to_owned(), ..AllowEntry::default() });
    entries
}

fn verdicts(criterion: &mut Criterion) {
    let files = Warm(Mutex::default());
    let lookup = Lookup {
        files: &files,
        path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        cwd: Some(Path::new("/srv/app")),
        home: None,
    };
    let safe_bins = SafeBins::new(&SafeBinsConfig::default()).0;
    let skills = Skills::default();
    let host = HostPolicy { security: Security::Allowlist, ..HostPolicy::fail_closed() };
    let policy = EffectivePolicy::combine(Requested { security: Security::Full, ask: Ask::Off }, &host);
    let terms = Terms { policy: &policy, strict_inline_eval: false };
    // Nearly the most commands, in nearly the longest text; the same inside a shell's text; and the most words.
    let commands = format!("git {}|", "a ".repeat(62)).repeat(1000) + "git";
    let payload = format!("bash -c '{commands}'");
    let words = format!("git{}", " a".repeat(65_000));
    let texts = [
        ("git status", "git status"),
        ("two stages", "git log -n 3 | head -n 5"),
        ("four stages", "git log --oneline | grep -e fix | sort -k 2 | head -n 20"),
        ("128 KiB of commands", commands.as_str()),
        ("128 KiB of commands for a shell", payload.as_str()),
        ("128 KiB of words", words.as_str()),
    ];
    for count in [20, 100] {
        let allowlist = Allowlist::compile(&entries(count), None, &[]);
        let rules =
            Rules { allowlist: &allowlist, safe_bins: &safe_bins, skills: &skills, input: Input::Other };
        for (name, text) in texts {
            criterion.bench_function(&format!("verdict/{name}/{count} entries"), |bencher| {
                bencher.iter(|| black_box(judge(Invocation::Shell(black_box(text)), lookup, rules, terms)));
            });
        }
    }
}

criterion_group!(benches, verdicts);
criterion_main!(benches);
