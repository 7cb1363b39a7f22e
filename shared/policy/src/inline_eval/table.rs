//! The names of interpreters.

use super::rules::{self, Rule};
use crate::command::name::{fold, versions};

/// What a name is looked into for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    Interpreter(&'static Rule),
    /// It starts what its arguments say, and is no wrapper that a decision looks through.
    Carrier,
}

/// Sorted by name, for a binary search.
pub(super) static TABLE: &[(&str, Entry)] = &[
    ("awk", Entry::Interpreter(&rules::AWK)),
    ("bsdtar", Entry::Interpreter(&rules::TAR)),
    ("bun", Entry::Interpreter(&rules::BUN)),
    ("bundle", Entry::Carrier),
    ("bunx", Entry::Interpreter(&rules::RUNNER)),
    ("clj", Entry::Interpreter(&rules::CLOJURE)),
    ("clojure", Entry::Interpreter(&rules::CLOJURE)),
    ("cmd", Entry::Interpreter(&rules::CMD)),
    ("conda", Entry::Carrier),
    ("crystal", Entry::Interpreter(&rules::CRYSTAL)),
    ("csh", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("deno", Entry::Interpreter(&rules::DENO)),
    ("direnv", Entry::Carrier),
    ("editor", Entry::Interpreter(&rules::VIM)),
    ("elixir", Entry::Interpreter(&rules::ELIXIR)),
    ("elvish", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("emacs", Entry::Interpreter(&rules::EMACS)),
    ("emacsclient", Entry::Interpreter(&rules::EMACSCLIENT)),
    ("erl", Entry::Interpreter(&rules::ERL)),
    ("esno", Entry::Interpreter(&rules::NODE)),
    ("eview", Entry::Interpreter(&rules::VIM)),
    ("evim", Entry::Interpreter(&rules::VIM)),
    ("ex", Entry::Interpreter(&rules::VIM)),
    ("expect", Entry::Interpreter(&rules::EXPECT)),
    ("find", Entry::Interpreter(&rules::FIND)),
    ("fish", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("gawk", Entry::Interpreter(&rules::AWK)),
    ("gdb", Entry::Interpreter(&rules::GDB)),
    ("gdb-multiarch", Entry::Interpreter(&rules::GDB)),
    ("ghc", Entry::Interpreter(&rules::GHC)),
    ("ghci", Entry::Interpreter(&rules::GHCI)),
    ("gmake", Entry::Interpreter(&rules::MAKE)),
    ("groovy", Entry::Interpreter(&rules::GROOVY)),
    ("gsed", Entry::Interpreter(&rules::SED)),
    ("gtar", Entry::Interpreter(&rules::TAR)),
    ("guile", Entry::Interpreter(&rules::GUILE)),
    ("gview", Entry::Interpreter(&rules::VIM)),
    ("gvim", Entry::Interpreter(&rules::VIM)),
    ("gvimdiff", Entry::Interpreter(&rules::VIM)),
    ("hatch", Entry::Carrier),
    ("hush", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("iex", Entry::Interpreter(&rules::IEX)),
    ("ipython", Entry::Interpreter(&rules::PYTHON)),
    ("ipython3", Entry::Interpreter(&rules::PYTHON)),
    ("irb", Entry::Interpreter(&rules::IRB)),
    ("jiti", Entry::Interpreter(&rules::NODE)),
    ("jruby", Entry::Interpreter(&rules::RUBY)),
    ("jrunscript", Entry::Interpreter(&rules::JRUNSCRIPT)),
    ("julia", Entry::Interpreter(&rules::JULIA)),
    ("kotlin", Entry::Interpreter(&rules::KOTLIN)),
    ("kotlinc", Entry::Interpreter(&rules::KOTLIN)),
    ("lksh", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("ltrace", Entry::Carrier),
    ("lua", Entry::Interpreter(&rules::LUA)),
    ("luajit", Entry::Interpreter(&rules::LUA)),
    ("make", Entry::Interpreter(&rules::MAKE)),
    ("mamba", Entry::Carrier),
    ("mawk", Entry::Interpreter(&rules::AWK)),
    ("mise", Entry::Carrier),
    ("nawk", Entry::Interpreter(&rules::AWK)),
    ("node", Entry::Interpreter(&rules::NODE)),
    ("nodejs", Entry::Interpreter(&rules::NODE)),
    ("npm", Entry::Interpreter(&rules::RUNNER)),
    ("npx", Entry::Interpreter(&rules::RUNNER)),
    ("nu", Entry::Interpreter(&rules::NU)),
    ("nvim", Entry::Interpreter(&rules::VIM)),
    ("osascript", Entry::Interpreter(&rules::OSASCRIPT)),
    ("osh", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("parallel", Entry::Carrier),
    ("pdb", Entry::Interpreter(&rules::PDB)),
    ("pdb3", Entry::Interpreter(&rules::PDB)),
    ("pdm", Entry::Carrier),
    ("perl", Entry::Interpreter(&rules::PERL)),
    ("perl6", Entry::Interpreter(&rules::RAKU)),
    ("php", Entry::Interpreter(&rules::PHP)),
    ("pipenv", Entry::Carrier),
    ("pipx", Entry::Carrier),
    ("pnpm", Entry::Interpreter(&rules::RUNNER)),
    ("pnpx", Entry::Interpreter(&rules::RUNNER)),
    ("poetry", Entry::Carrier),
    ("posh", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("powershell", Entry::Interpreter(&rules::POWERSHELL)),
    ("prove", Entry::Interpreter(&rules::PROVE)),
    ("pwsh", Entry::Interpreter(&rules::PWSH)),
    ("py", Entry::Interpreter(&rules::PYTHON)),
    ("pypy", Entry::Interpreter(&rules::PYTHON)),
    ("pypy3", Entry::Interpreter(&rules::PYTHON)),
    ("python", Entry::Interpreter(&rules::PYTHON)),
    ("python2", Entry::Interpreter(&rules::PYTHON)),
    ("python3", Entry::Interpreter(&rules::PYTHON)),
    ("pythonw", Entry::Interpreter(&rules::PYTHON)),
    ("r", Entry::Interpreter(&rules::R)),
    ("raku", Entry::Interpreter(&rules::RAKU)),
    ("rbash", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("rg", Entry::Interpreter(&rules::RIPGREP)),
    ("rgview", Entry::Interpreter(&rules::VIM)),
    ("rgvim", Entry::Interpreter(&rules::VIM)),
    ("rksh", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("rlwrap", Entry::Carrier),
    ("rscript", Entry::Interpreter(&rules::RSCRIPT)),
    ("ruby", Entry::Interpreter(&rules::RUBY)),
    ("rview", Entry::Interpreter(&rules::VIM)),
    ("rvim", Entry::Interpreter(&rules::VIM)),
    ("rye", Entry::Carrier),
    ("rzsh", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("scala", Entry::Interpreter(&rules::SCALA)),
    ("scala-cli", Entry::Interpreter(&rules::SCALA)),
    ("sed", Entry::Interpreter(&rules::SED)),
    ("strace", Entry::Carrier),
    ("swift", Entry::Interpreter(&rules::SWIFT)),
    ("tar", Entry::Interpreter(&rules::TAR)),
    ("tclsh", Entry::Interpreter(&rules::TCL)),
    ("tcsh", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("truffleruby", Entry::Interpreter(&rules::RUBY)),
    ("ts-node", Entry::Interpreter(&rules::NODE)),
    ("tsx", Entry::Interpreter(&rules::NODE)),
    ("uv", Entry::Carrier),
    ("uvx", Entry::Carrier),
    ("vi", Entry::Interpreter(&rules::VIM)),
    ("view", Entry::Interpreter(&rules::VIM)),
    ("vim", Entry::Interpreter(&rules::VIM)),
    ("vimdiff", Entry::Interpreter(&rules::VIM)),
    ("vite-node", Entry::Interpreter(&rules::NODE)),
    ("werl", Entry::Interpreter(&rules::ERL)),
    ("wish", Entry::Interpreter(&rules::TCL)),
    ("xargs", Entry::Interpreter(&rules::XARGS)),
    ("xonsh", Entry::Interpreter(&rules::OTHER_SHELL)),
    ("yarn", Entry::Interpreter(&rules::RUNNER)),
    ("ysh", Entry::Interpreter(&rules::OTHER_SHELL)),
];

/// The entry for a word, and its name. A name without its version counts where the full one has no entry.
pub(super) fn entry_of(word: &str) -> Option<(&'static str, Entry)> {
    let folded = fold(word);
    let name = folded.strip_suffix("-dbg").unwrap_or(&folded);
    versions(name)
        .find_map(|name| {
            let at = TABLE.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
            TABLE.get(at).copied()
        })
        .or_else(|| family(name))
}

/// Names with more behind them than a version: `perl5.36-x86_64-linux-gnu`, `vim.tiny`.
fn family(name: &str) -> Option<(&'static str, Entry)> {
    if name.starts_with("perl") {
        Some(("perl", Entry::Interpreter(&rules::PERL)))
    } else if name.starts_with("vim.") {
        Some(("vim", Entry::Interpreter(&rules::VIM)))
    } else {
        None
    }
}
