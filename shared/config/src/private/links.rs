//! Following links to a private file, where nobody else can turn them (field case F070).
//!
//! People keep settings in a repository and link to them, and homes are links on many machines. A link is as good as the
//! file itself if only this user and root can replace it, what it leads to, and the directories that hold the two.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    ffi::OsString,
    fmt,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use super::PrivateFileError;

/// More links than this on one path lead in circles.
const MAX_LINKS: u32 = 16;
const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Why someone else can change a file, a directory or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Openness {
    /// It belongs to neither this user nor root.
    OtherOwner {
        /// Its owner's user id.
        owner: u32,
    },
    /// Its mode lets the group or everybody write.
    WritableByOthers {
        /// Its permission bits.
        mode: u32,
    },
}

impl fmt::Display for Openness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherOwner { owner } => write!(f, "belongs to another user ({owner})"),
            Self::WritableByOthers { mode } => write!(f, "can be written by other users (mode {mode:04o})"),
        }
    }
}

/// Why a link is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkFault {
    /// The link, what it leads to, or a directory on the way to one of them can be changed by others.
    Open {
        /// Which of them.
        path: PathBuf,
        /// Who can change it.
        found: Openness,
    },
    /// Nothing is where it leads.
    Dangling,
    /// It leads to another link, and so on, too often.
    TooMany,
}

impl fmt::Display for LinkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, found } => write!(f, "{} {found}", path.display()),
            Self::Dangling => f.write_str("it leads nowhere"),
            Self::TooMany => write!(f, "more than {MAX_LINKS} links follow one another"),
        }
    }
}

/// Where a private file really lies, links resolved. Neither the file nor its directory need exist.
///
/// # Errors
/// A link on the way is unsafe or leads nowhere, the directory of the file can be written by others (who could take the
/// file away), or the disk refused a look.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, PrivateFileError> {
    let unreadable = |source| PrivateFileError::Read { path: path.to_path_buf(), source };
    let absolute = std::path::absolute(path).map_err(unreadable)?;
    let mut walk = Walk { real: PathBuf::from("/"), there: true, ahead: VecDeque::new(), links: 0 };
    walk.push(&absolute, None);
    while let Some(step) = walk.ahead.pop_front() {
        walk.take(step).map_err(|stop| match stop {
            Stop::Link { link, fault } => PrivateFileError::UnsafeLink { link, fault },
            Stop::Disk(source) => unreadable(source),
        })?;
    }
    let directory = walk.real.parent().unwrap_or(Path::new("/"));
    match fs::symlink_metadata(directory).map(|metadata| openness(&metadata)) {
        Ok(Some(found)) => Err(PrivateFileError::OpenDirectory { path: directory.to_path_buf(), found }),
        Ok(None) => Ok(walk.real),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(walk.real),
        Err(source) => Err(unreadable(source)),
    }
}

/// A path on its way from its text to the place that it names.
struct Walk {
    /// What was resolved so far; holds no link.
    real: PathBuf,
    /// Whether that exists. Once it does not, the rest of the path is only text.
    there: bool,
    /// What is still to be taken.
    ahead: VecDeque<Step>,
    links: u32,
}

/// One name of the path, or of a link's text.
struct Step {
    name: OsString,
    /// The link whose text this name is from, if any.
    link: Option<PathBuf>,
    /// Whether it is the last name of that text, so what the link leads to.
    target: bool,
}

/// Why a walk ended early.
enum Stop {
    Link { link: PathBuf, fault: LinkFault },
    Disk(io::Error),
}

impl Walk {
    /// Puts the names of `text`, which came from `link`, before what is ahead.
    fn push(&mut self, text: &Path, link: Option<&Path>) {
        let mut target = link.is_some();
        for part in text.components().rev() {
            let name = match part {
                Component::Normal(name) => name.to_os_string(),
                Component::ParentDir => OsString::from(".."),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            };
            self.ahead.push_front(Step { name, link: link.map(Path::to_path_buf), target });
            target = false;
        }
    }

    fn take(&mut self, step: Step) -> Result<(), Stop> {
        if step.name == ".." {
            self.real.pop();
        } else {
            let holder = self.real.clone();
            self.real.push(&step.name);
            if !self.there {
                return Ok(());
            }
            let metadata = match fs::symlink_metadata(&self.real) {
                Ok(metadata) => metadata,
                Err(source) if source.kind() == io::ErrorKind::NotFound => {
                    self.there = false;
                    return step
                        .link
                        .map_or(Ok(()), |link| Err(Stop::Link { link, fault: LinkFault::Dangling }));
                }
                Err(source) => return Err(Stop::Disk(source)),
            };
            if metadata.is_symlink() {
                return self.follow(holder, &metadata);
            }
        }
        match step.link {
            Some(link) => self.check_behind(link, step.target),
            None => Ok(()),
        }
    }

    /// Goes where the link at `self.real` leads, if nobody else can turn it.
    fn follow(&mut self, holder: PathBuf, metadata: &Metadata) -> Result<(), Stop> {
        let link = self.real.clone();
        let stop = |fault| Stop::Link { link: link.clone(), fault };
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(stop(LinkFault::TooMany));
        }
        // The mode of a link means nothing; who may turn it is said by its owner and its directory.
        if let Some(found) = other_owner(metadata) {
            return Err(stop(LinkFault::Open { path: link.clone(), found }));
        }
        if let Some(found) = openness(&fs::symlink_metadata(&holder).map_err(Stop::Disk)?) {
            return Err(stop(LinkFault::Open { path: holder, found }));
        }
        let text = fs::read_link(&link).map_err(Stop::Disk)?;
        self.real = if text.is_absolute() { PathBuf::from("/") } else { holder };
        self.push(&text, Some(&link));
        Ok(())
    }

    /// Checks what was reached through `link`: strictly what it leads to and the directory around that, and on the way
    /// there at least that nobody else can rename this user's entries (a sticky directory is enough).
    fn check_behind(&self, link: PathBuf, target: bool) -> Result<(), Stop> {
        let around = if target { self.real.parent() } else { None };
        for path in [Some(self.real.as_path()), around].into_iter().flatten() {
            let metadata = fs::symlink_metadata(path).map_err(Stop::Disk)?;
            let sticky = !target && metadata.mode() & STICKY != 0;
            let found = if sticky { other_owner(&metadata) } else { openness(&metadata) };
            if let Some(found) = found {
                return Err(Stop::Link { link, fault: LinkFault::Open { path: path.to_path_buf(), found } });
            }
        }
        Ok(())
    }
}

fn openness(metadata: &Metadata) -> Option<Openness> {
    let mode = metadata.mode() & 0o7777;
    other_owner(metadata)
        .or_else(|| (mode & WRITABLE_BY_OTHERS != 0).then_some(Openness::WritableByOthers { mode }))
}

fn other_owner(metadata: &Metadata) -> Option<Openness> {
    let owner = metadata.uid();
    let ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
    (!ours).then_some(Openness::OtherOwner { owner })
}
