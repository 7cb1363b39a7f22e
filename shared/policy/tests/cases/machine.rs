//! A machine that exists only in memory: the files that the cases speak of.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use policy::resolve::{File, Files};

/// Most links that one look-up follows.
const MAX_LINKS: usize = 16;

/// Programs in `/usr/bin`.
const PROGRAMS: &str = "[ alias arch ash bash bwrap busybox bun bunx caffeinate cat chroot chrt cmd \
    catchsegv cp cpulimit csh curl cut dash date deno doas docker eatmydata echo elixir elvish emacs env erl esno \
    exec expect false find firejail fish flock gawk gdb ghc ghci gh git gmake gosu grep groovy gsed guile head hostname id \
    iex ionice irb java jq julia ksh linux32 linux64 ls lua lua5.4 luajit make mawk mksh my-wrapper nawk nice node \
    nodejs nodejs18 nohup npm npx nsenter nu numactl osascript osh parallel perl perl6 php pkexec pnpm powershell \
    printf proot proxychains proxychains4 ps pwd pwsh pypy pypy3 python python2 python3 python3.11 python3.12 R raku \
    rg rm Rscript ruby runuser sandbox-exec scala scala-cli script sed seq setarch setpriv setsid sort ssh stdbuf strace \
    su sudo swift systemd-run tail tar taskset tclsh tcsh tee test time timeout torify torsocks touch toybox tr true \
    ts-node tsx uniq unbuffer unshare uv vim watch wc werl wget which whoami xargs xcrun xonsh xvfb-run yarn yash yes \
    zsh clj clojure";

/// Programs elsewhere.
const PLANTED: [&str; 16] = [
    "/opt/a/b/rg",
    "/opt/a/b/tool",
    "/opt/a/tool",
    "/opt/a/rg",
    "/opt/bin/rg",
    "/opt/planted/rg",
    "/opt/tools/deploy",
    "/home/u/bin/hello",
    "/srv/app/bash",
    "/srv/app/env",
    "/srv/app/rg",
    "/srv/app/run.sh",
    "/srv/app/scripts/run.sh",
    "/srv/app/sub/tool",
    "/srv/app/tool",
    "/tmp/x/git",
];

/// Files that nobody may execute.
const PLAIN: [&str; 6] = [
    "/srv/app/evil.sh",
    "/srv/app/notes.txt",
    "/srv/app/ok.sh",
    "/srv/app/safe.py",
    "/srv/app/tool.py",
    "/etc/passwd",
];

const LINKS: [(&str, &str); 8] = [
    ("/bin", "usr/bin"),
    ("/sbin", "/usr/bin"),
    ("/usr/bin/sh", "dash"),
    ("/usr/bin/awk", "/etc/alternatives/awk"),
    ("/etc/alternatives/awk", "/usr/bin/mawk"),
    ("/usr/bin/rglink", "rg"),
    ("/opt/links/rgl", "/usr/bin/rg"),
    ("/usr/bin/escaped", "/opt/a/tool"),
];

#[derive(Clone, Debug)]
enum Node {
    Directory,
    Program,
    Plain,
    Link(PathBuf),
}

/// The files, by their path without links.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    nodes: BTreeMap<PathBuf, Node>,
}

impl Default for Machine {
    fn default() -> Self {
        let mut machine = Self { nodes: BTreeMap::new() };
        for name in PROGRAMS.split_whitespace() {
            machine.put(Path::new("/usr/bin").join(name), Node::Program);
        }
        for path in PLANTED {
            machine.put(path.into(), Node::Program);
        }
        for path in PLAIN {
            machine.put(path.into(), Node::Plain);
        }
        for (path, target) in LINKS {
            machine.link(path, target);
        }
        machine
    }
}

impl Machine {
    pub(crate) fn plant(&mut self, path: &str) {
        self.put(path.into(), Node::Program);
    }

    pub(crate) fn write(&mut self, path: &str) {
        self.put(path.into(), Node::Plain);
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.put(path.into(), Node::Link(target.into()));
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.nodes.remove(Path::new(path));
    }

    fn put(&mut self, path: PathBuf, node: Node) {
        for parent in path.ancestors().skip(1) {
            self.nodes.entry(parent.to_owned()).or_insert(Node::Directory);
        }
        self.nodes.insert(path, node);
    }

    /// A path without links, `.` and `..`, as the system would walk it.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        let mut left: Vec<PathBuf> =
            path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect();
        let mut real = PathBuf::new();
        let mut links = 0;
        while let Some(part) = left.pop() {
            match part.components().next()? {
                Component::CurDir | Component::Prefix(_) => continue,
                Component::RootDir => real = PathBuf::from("/"),
                Component::ParentDir => {
                    real.pop();
                }
                Component::Normal(name) => {
                    real.push(name);
                    if let Node::Link(target) = self.nodes.get(&real)? {
                        links += 1;
                        if links > MAX_LINKS {
                            return None;
                        }
                        real.pop();
                        left.extend(target.components().rev().map(|part| PathBuf::from(part.as_os_str())));
                    }
                }
            }
        }
        Some(real)
    }
}

impl Files for Machine {
    fn look(&self, path: &Path) -> Option<File> {
        let real = self.real(path)?;
        let node = self.nodes.get(&real)?;
        let regular = matches!(node, Node::Program | Node::Plain);
        let inode = self.nodes.keys().position(|path| *path == real)?;
        Some(File {
            device: 1,
            inode: u64::try_from(inode).ok()?,
            regular,
            executable: matches!(node, Node::Program),
            real,
        })
    }
}

#[test]
fn links_are_followed() {
    let machine = Machine::default();
    let real = |path: &str| machine.look(Path::new(path)).map(|file| file.real.to_str().unwrap().to_owned());
    assert_eq!(real("/bin/sh").unwrap(), "/usr/bin/dash");
    assert_eq!(real("/bin/awk").unwrap(), "/usr/bin/mawk");
    assert_eq!(real("/srv/app/../app/./rg").unwrap(), "/srv/app/rg");
    assert_eq!(real("/opt/links/rgl").unwrap(), "/usr/bin/rg");
    assert_eq!(real("/usr/bin/nosuch"), None);
    assert!(!machine.look(Path::new("/srv/app/safe.py")).unwrap().executable);
}
