//! What tests of several parts use: a machine of their making, and words of a line.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::resolve::{File, Files, Lookup};

/// Its PATH.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Paths of programs, and the file behind each.
pub(crate) struct Machine(BTreeMap<PathBuf, PathBuf>);

impl Machine {
    pub(crate) fn usual() -> Self {
        let names = "git rg ls cat head tail wc tr cut uniq sort grep env nice nohup timeout bash sh dash python3 npx \
                     curl find xargs sudo echo busybox test";
        let mut machine = Self(BTreeMap::new());
        for name in names.split_whitespace() {
            machine.put(&format!("/usr/bin/{name}"));
        }
        machine
    }

    pub(crate) fn put(&mut self, path: &str) {
        self.0.insert(path.into(), path.into());
    }

    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup { files: self, path: PATH, cwd: Some(Path::new("/srv/app")), home: Some(Path::new("/home/u")) }
    }
}

impl Files for Machine {
    fn look(&self, path: &Path) -> Option<File> {
        let real = self.0.get(path)?.clone();
        let inode = real
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .fold(7, |sum, byte| sum * 31 % 1_000_003 + u64::from(*byte));
        Some(File { real, device: 1, inode, regular: true, executable: true })
    }
}

/// The words of a line in which only single quotes mean something.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut quoted = false;
    for part in text.split('\'') {
        if quoted {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_ascii_whitespace().map(str::to_owned));
        }
        quoted = !quoted;
    }
    words
}
