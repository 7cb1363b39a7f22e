//! Names that no profile makes safe (policy spec §4.1, §4.5, field case F026).

/// Filters whose program text, an argument, can start programs, read files or show the environment.
const PROGRAMMABLE: &str = "awk gawk gsed jq mawk nawk sed";

/// Programs that run what their standard input says; most of them run what an argument says, too.
const INTERPRETERS: &str = "\
    ash bash bun bunx clj clojure cmd csh dash deno elixir elvish emacs erl ex expect fish gdb ghc \
    ghci groovy guile iex ipython irb java jshell julia ksh lldb lua luajit m4 mksh mysql node \
    nodejs npx nu ocaml octave osascript osh perl php powershell psql pwsh pypy python r raku \
    rscript ruby runghc sbcl scala scala-cli scheme sh sqlite swift tclsh tcsh tsx vi vim werl wish \
    xonsh yash zsh";

/// Programs that start other programs, or hold many in one.
const CARRIERS: &str = "\
    at batch busybox chroot crontab dc doas docker ed env find gmake make nice nohup nsenter \
    parallel podman red setsid ssh sudo systemd-run timeout toybox unshare xargs";

/// Why a name is no safe bin, whatever its profile says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// One of [`PROGRAMMABLE`].
    Programmable,
    /// An interpreter.
    Interpreter,
    /// It starts other programs.
    Carrier,
}

/// Whether the name can never be a safe bin. Case is ignored: on some systems `JQ` is `jq`.
pub(super) fn unfit(name: &str) -> Option<Unfit> {
    let is_in =
        |list: &str, name: &str| list.split_ascii_whitespace().any(|entry| entry.eq_ignore_ascii_case(name));
    if is_in(PROGRAMMABLE, name) {
        return Some(Unfit::Programmable);
    }
    if is_in(CARRIERS, name) {
        return Some(Unfit::Carrier);
    }
    let plain = without_version(name);
    (is_in(INTERPRETERS, name) || is_in(INTERPRETERS, plain)).then_some(Unfit::Interpreter)
}

/// The name of what lies behind a link. A box of many programs does what the link's name says, so it is fit here.
pub(super) fn is_unfit_target(name: &str) -> bool {
    matches!(unfit(name), Some(Unfit::Programmable | Unfit::Interpreter))
}

/// `python` of `python3.12`, `lua` of `lua5.4`, `ruby` of `ruby-3.1`.
fn without_version(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_versions() {
        let table = [
            ("jq", Some(Unfit::Programmable)),
            ("GAWK", Some(Unfit::Programmable)),
            ("python3", Some(Unfit::Interpreter)),
            ("python3.12", Some(Unfit::Interpreter)),
            ("lua5.4", Some(Unfit::Interpreter)),
            ("ruby-3.1", Some(Unfit::Interpreter)),
            ("R", Some(Unfit::Interpreter)),
            ("sqlite3", Some(Unfit::Interpreter)),
            ("xargs", Some(Unfit::Carrier)),
            ("head", None),
            ("md5sum", None),
            ("base64", None),
            ("python-config", None),
        ];
        for (name, want) in table {
            assert_eq!(unfit(name), want, "{name}");
        }
        assert!(is_unfit_target("perl5.36.0") && !is_unfit_target("busybox"));
    }
}
