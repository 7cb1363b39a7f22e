//! Programs of skills (policy spec §8.1): allowed by bare name, and only as the very file that the name meant when the
//! list was made.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::resolve::Lookup;

/// Most names that are kept.
pub const MAX_SKILLS: usize = 512;

/// Names, and the file behind each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skills {
    files: BTreeMap<String, PathBuf>,
}

impl Skills {
    /// Looks up each name on PATH. A name that is a path, or that stands for nothing here, is left out.
    #[must_use]
    pub fn find<'n>(names: impl IntoIterator<Item = &'n str>, lookup: &Lookup<'_>) -> Self {
        let mut files = BTreeMap::new();
        for name in names.into_iter().take(MAX_SKILLS).filter(|name| !name.contains('/')) {
            if let Some(program) = lookup.find(name) {
                files.insert(name.to_owned(), program.file.real);
            }
        }
        Self { files }
    }

    /// Whether a word is the bare name of a skill's program, and `real` the same file as then.
    #[must_use]
    pub fn allow(&self, word: &str, real: &Path) -> bool {
        self.files.get(word).is_some_and(|file| file == real)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}
