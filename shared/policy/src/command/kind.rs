//! The names that start other commands, as data (policy spec §3.4 to §3.7).

use super::{Tag, name};

/// What a name is known for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Starts its arguments and changes nothing else about them.
    Transparent(Transparent),
    /// A builtin of the shell that does the same.
    Builtin(BuiltinWrapper),
    /// Starts its arguments as somebody else, elsewhere or otherwise.
    Blocked,
    /// A builtin whose effect is not known from its words.
    ShellWord(Tag),
    /// `find`, which starts commands only with some actions.
    Find,
    /// `xargs`, which starts what its input says.
    Xargs,
    /// Many programs in one file.
    Multiplexer,
    /// A shell.
    Shell(ShellKind),
    /// Starts a program of a package.
    Runner(Runner),
}

/// The transparent wrappers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transparent {
    Arch,
    Caffeinate,
    Env,
    Flock,
    Nice,
    Nohup,
    SandboxExec,
    Script,
    Stdbuf,
    Time,
    Timeout,
    Xcrun,
}

/// The builtin wrappers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltinWrapper {
    Builtin,
    Command,
    Exec,
}

/// Whether the text of a shell can be split into commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShellKind {
    /// Bash itself.
    Bash,
    /// Others with the grammar of POSIX.
    Posix,
    /// Any other; fish too, whose quotes mean something else.
    Opaque,
}

/// The package runners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    Bun,
    Npm,
    /// `npx` and those like it: what follows is the command.
    Npx,
    Pnpm,
    Yarn,
}

/// What a folded name is known for.
pub(crate) fn kind_of(name: &str) -> Option<Kind> {
    let kind = match name {
        "arch" => Kind::Transparent(Transparent::Arch),
        "caffeinate" => Kind::Transparent(Transparent::Caffeinate),
        "env" => Kind::Transparent(Transparent::Env),
        "flock" => Kind::Transparent(Transparent::Flock),
        "nice" => Kind::Transparent(Transparent::Nice),
        "nohup" => Kind::Transparent(Transparent::Nohup),
        "sandbox-exec" => Kind::Transparent(Transparent::SandboxExec),
        "script" => Kind::Transparent(Transparent::Script),
        "stdbuf" => Kind::Transparent(Transparent::Stdbuf),
        "time" => Kind::Transparent(Transparent::Time),
        "timeout" => Kind::Transparent(Transparent::Timeout),
        "xcrun" => Kind::Transparent(Transparent::Xcrun),

        "builtin" => Kind::Builtin(BuiltinWrapper::Builtin),
        "command" => Kind::Builtin(BuiltinWrapper::Command),
        "exec" => Kind::Builtin(BuiltinWrapper::Exec),

        "bwrap" | "catchsegv" | "chroot" | "chrt" | "cpulimit" | "dbus-run-session" | "doas"
        | "eatmydata" | "fakeroot" | "firejail" | "gosu" | "ionice" | "nsenter" | "numactl" | "pkexec"
        | "proot" | "proxychains" | "proxychains4" | "run0" | "runuser" | "setarch" | "setpriv"
        | "setsid" | "su" | "sudo" | "sudoedit" | "systemd-run" | "taskset" | "torify" | "torsocks"
        | "unbuffer" | "unshare" | "watch" | "xvfb-run" => Kind::Blocked,
        _ if is_architecture(name) || is_loader(name) => Kind::Blocked,

        // Both run their words as a text.
        "eval" | "trap" => Kind::ShellWord(Tag::Eval),
        "source" | "." => Kind::ShellWord(Tag::Source),
        "alias" => Kind::ShellWord(Tag::Alias),

        "find" => Kind::Find,
        "xargs" => Kind::Xargs,
        "busybox" | "toybox" => Kind::Multiplexer,

        "bun" => Kind::Runner(Runner::Bun),
        "npm" => Kind::Runner(Runner::Npm),
        "bunx" | "npx" | "pnpx" => Kind::Runner(Runner::Npx),
        "pnpm" => Kind::Runner(Runner::Pnpm),
        "yarn" => Kind::Runner(Runner::Yarn),

        _ => return name::versions(name).find_map(shell_kind).map(Kind::Shell),
    };
    Some(kind)
}

/// The other names of `setarch`, which starts its arguments.
fn is_architecture(name: &str) -> bool {
    matches!(
        name,
        "aarch64"
            | "alpha"
            | "arm"
            | "athlon"
            | "i386"
            | "i486"
            | "i586"
            | "i686"
            | "ia64"
            | "linux32"
            | "linux64"
            | "loongarch"
            | "mips"
            | "mips32"
            | "mips64"
            | "parisc"
            | "parisc32"
            | "parisc64"
            | "ppc"
            | "ppc32"
            | "ppc64"
            | "ppc64le"
            | "ppcle"
            | "riscv32"
            | "riscv64"
            | "s390"
            | "s390x"
            | "sparc"
            | "sparc32"
            | "sparc32bash"
            | "sparc64"
            | "uname26"
            | "x86_64"
    ) || name.starts_with("armv")
        || name.starts_with("alphaev")
}

/// The dynamic loader, which starts the program that it is given: `ld-linux-x86-64.so.2`, `ld-2.31.so`, `ld64.so.1`.
fn is_loader(name: &str) -> bool {
    ["ld-linux", "ld-musl", "ld.so", "ld64.so"].iter().any(|start| name.starts_with(start))
        || name.starts_with("ld-") && name.contains(".so")
}

/// Shells go by versioned names too: `bash5`, `ksh93`.
fn shell_kind(name: &str) -> Option<ShellKind> {
    Some(match name {
        "bash" => ShellKind::Bash,
        "ash" | "dash" | "ksh" | "mksh" | "sh" | "yash" | "zsh" => ShellKind::Posix,
        "cmd" | "csh" | "elvish" | "fish" | "hush" | "lksh" | "nu" | "osh" | "posh" | "powershell"
        | "pwsh" | "rbash" | "rksh" | "rzsh" | "tcsh" | "xonsh" | "ysh" => ShellKind::Opaque,
        _ => return None,
    })
}
