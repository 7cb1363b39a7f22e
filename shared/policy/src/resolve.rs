//! Which file a word of a command starts (policy spec §2.3).

use std::path::{Path, PathBuf};

/// The part of the file system that a decision looks at. The node's implementation keeps answers for a short while.
pub trait Files {
    /// The file that `path` (absolute) means, links followed. None where nothing is, or it cannot be looked at.
    fn look(&self, path: &Path) -> Option<File>;
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path without links.
    pub real: PathBuf,
    /// Its device.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// It is a regular file.
    pub regular: bool,
    /// It is a regular file that this user may execute.
    pub executable: bool,
}

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The path that it was found at: absolute, links not followed.
    pub path: PathBuf,
    /// What lies there.
    pub file: File,
}

/// Where names are looked up.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    /// The files.
    pub files: &'a dyn Files,
    /// PATH of the command.
    pub path: &'a str,
    /// The working directory. None where a command before may have changed it: then only absolute paths, and names
    /// found in absolute parts of PATH, are found.
    pub cwd: Option<&'a Path>,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

impl std::fmt::Debug for Lookup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lookup").field("path", &self.path).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

impl Lookup<'_> {
    /// The program that a word names: with a `/` a path, else the first executable of that name on PATH.
    #[must_use]
    pub fn find(&self, word: &str) -> Option<Program> {
        if word.is_empty() || word.contains('\0') {
            return None;
        }
        if word.contains('/') {
            return self.executable(&self.absolute(Path::new(word))?);
        }
        for part in self.path.split(':') {
            // An empty part is the working directory. What an unknown one holds cannot be known, and it comes before
            // the rest.
            let mut path = self.absolute(Path::new(part))?;
            path.push(word);
            if let Some(program) = self.executable(&path) {
                return Some(program);
            }
        }
        None
    }

    /// Whether a program was found by its name in a directory that PATH names absolutely, and not by a path that the
    /// caller wrote.
    #[must_use]
    pub fn is_named(&self, word: &str, program: &Program) -> bool {
        !word.contains('/')
            && program.path.parent().is_some_and(|dir| {
                self.path.split(':').any(|part| part.starts_with('/') && Path::new(part) == dir)
            })
    }

    /// The regular file that a word names as an operand of a shell: a path, whether executable or not.
    #[must_use]
    pub fn find_script(&self, word: &str) -> Option<Program> {
        if word.is_empty() || word.contains('\0') {
            return None;
        }
        let path = self.absolute(Path::new(word))?;
        let file = self.files.look(&path).filter(|file| file.regular)?;
        Some(Program { path, file })
    }

    /// Whether a file is where a word, taken as a path, leads.
    #[must_use]
    pub fn exists(&self, word: &str) -> bool {
        !word.is_empty()
            && self.absolute(Path::new(word)).is_some_and(|path| self.files.look(&path).is_some())
    }

    /// A word that a shell would expand as `~` or `~/…`; other users' homes are not looked up.
    #[must_use]
    pub fn expand_home(&self, word: &str) -> Option<String> {
        let rest = word.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some(format!("{}{rest}", self.home?.to_str()?.trim_end_matches('/')))
    }

    /// The same look-up where the working directory is not known any more.
    #[must_use]
    pub const fn without_cwd(mut self) -> Self {
        self.cwd = None;
        self
    }

    /// A path, made absolute and freed of `.`; `..` stays, it may cross a link.
    fn absolute(&self, path: &Path) -> Option<PathBuf> {
        if path.is_absolute() {
            Some(path.components().collect())
        } else {
            Some(self.cwd?.join(path).components().collect())
        }
    }

    fn executable(&self, path: &Path) -> Option<Program> {
        let file = self.files.look(path).filter(|file| file.executable)?;
        Some(Program { path: path.to_path_buf(), file })
    }
}
