//! The options of interpreters that are followed, as data. Any other option is refused: it may load code that a yes is
//! not bound to, or hide which word is the script.

use crate::command::name::{fold, versions};

/// What the first word is that is no option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// The file to run, unless an option gave the code.
    Script,
    /// The code, unless an option gave it.
    Code,
    /// Something that is no code.
    Other,
}

/// How one interpreter reads its words.
#[derive(Debug)]
pub(super) struct Syntax {
    names: &'static [&'static str],
    /// Letters without a value; several can stand behind one dash.
    pub(super) flags: &'static str,
    /// Letters that octal digits may follow.
    pub(super) digits: &'static str,
    /// Letters that the rest of the word belongs to.
    pub(super) attached: &'static str,
    /// Letters with a value: the rest of the word, or the next one.
    pub(super) values: &'static str,
    /// The same, where only these values are harmless.
    pub(super) checked: &'static str,
    pub(super) checked_values: &'static [&'static str],
    /// Letters whose value is code.
    pub(super) code: &'static str,
    /// Letters whose value is the file to run: the next word.
    pub(super) files: &'static str,
    /// Whole words without a value.
    pub(super) words: &'static [&'static str],
    /// Whole words whose value follows after `=`.
    pub(super) equals: &'static [&'static str],
    /// Whole words whose value is code: after `=`, or the next one.
    pub(super) code_words: &'static [&'static str],
    /// What asks about the program itself, alone.
    pub(super) information: &'static [&'static str],
    /// First words that are no file.
    pub(super) verbs: &'static [&'static str],
    pub(super) first: First,
    /// Code ends the options.
    pub(super) code_ends: bool,
    /// Options are read behind other words too.
    pub(super) permutes: bool,
    /// Words may set variables that say what is run.
    pub(super) assigns: bool,
}

const NOTHING: Syntax = Syntax {
    names: &[],
    flags: "",
    digits: "",
    attached: "",
    values: "",
    checked: "",
    checked_values: &[],
    code: "",
    files: "",
    words: &[],
    equals: &[],
    code_words: &[],
    information: &["--help", "--version"],
    verbs: &[],
    first: First::Script,
    code_ends: false,
    permutes: false,
    assigns: false,
};

static KNOWN: [Syntax; 9] = [
    Syntax {
        names: &["pypy", "python", "pythonw"],
        flags: "BEIOPSbdqsuvx",
        // Other values of these two import modules, or name directories with compiled ones.
        checked: "WX",
        checked_values: &[
            "always",
            "default",
            "dev",
            "error",
            "faulthandler",
            "ignore",
            "importtime",
            "module",
            "no_debug_ranges",
            "once",
            "tracemalloc",
            "utf8",
            "utf8=0",
            "utf8=1",
        ],
        code: "c",
        information: &["--help", "--version", "-V", "-VV", "-h"],
        code_ends: true,
        ..NOTHING
    },
    Syntax {
        names: &["node", "nodejs"],
        words: &[
            "--abort-on-uncaught-exception",
            "--check",
            "--enable-source-maps",
            "--experimental-strip-types",
            "--experimental-transform-types",
            "--experimental-vm-modules",
            "--expose-gc",
            "--expose_gc",
            "--no-deprecation",
            "--no-warnings",
            "--pending-deprecation",
            "--throw-deprecation",
            "--trace-deprecation",
            "--trace-exit",
            "--trace-uncaught",
            "--trace-warnings",
            "-c",
        ],
        equals: &[
            "--disable-warning",
            "--dns-result-order",
            "--input-type",
            "--max-old-space-size",
            "--max-semi-space-size",
            "--stack-size",
            "--stack-trace-limit",
            "--unhandled-rejections",
        ],
        code_words: &["--eval", "--print", "-e", "-p", "-pe"],
        information: &["--help", "--version", "-h", "-v"],
        verbs: &["debug", "inspect"],
        ..NOTHING
    },
    Syntax {
        names: &["jruby", "ruby", "truffleruby"],
        flags: "acdlnpsvw",
        digits: "0TW",
        attached: "Fi",
        values: "E",
        code: "e",
        words: &["--disable-gems", "--enable-frozen-string-literal", "--jit", "--verbose", "--yjit"],
        equals: &["--disable", "--encoding", "--external-encoding", "--internal-encoding"],
        information: &["--help", "--version", "-h", "-v"],
        ..NOTHING
    },
    Syntax {
        names: &["perl"],
        flags: "TUWXacfgnpstvw",
        digits: "0l",
        attached: "FVi",
        code: "Ee",
        information: &["--help", "--version", "-V", "-h", "-v"],
        ..NOTHING
    },
    Syntax {
        names: &["php"],
        flags: "CHlnqsvw",
        code: "BERr",
        files: "f",
        information: &["--help", "--ini", "--version", "-h", "-i", "-m", "-v"],
        ..NOTHING
    },
    Syntax {
        names: &["lua", "luajit"],
        words: &["-E", "-W", "-v"],
        code_words: &["-e"],
        information: &["-v"],
        ..NOTHING
    },
    Syntax {
        names: &["awk", "gawk", "mawk", "nawk"],
        values: "Fv",
        code: "e",
        files: "Ef",
        words: &["--csv", "--posix", "--re-interval", "--sandbox", "--traditional"],
        equals: &["--assign", "--field-separator"],
        code_words: &["--source"],
        information: &["--help", "--version", "-V"],
        first: First::Code,
        ..NOTHING
    },
    Syntax {
        names: &["gsed", "sed"],
        flags: "Enrsuz",
        attached: "i",
        values: "l",
        code: "e",
        files: "f",
        words: &[
            "--debug",
            "--follow-symlinks",
            "--in-place",
            "--null-data",
            "--posix",
            "--quiet",
            "--regexp-extended",
            "--sandbox",
            "--separate",
            "--silent",
            "--unbuffered",
        ],
        equals: &["--in-place", "--line-length"],
        code_words: &["--expression"],
        first: First::Code,
        permutes: true,
        ..NOTHING
    },
    Syntax {
        names: &["gmake", "make"],
        flags: "BRSbdeikmnpqrstvw",
        attached: "Ojl",
        values: "CIWo",
        code: "E",
        files: "f",
        words: &[
            "--always-make",
            "--dry-run",
            "--ignore-errors",
            "--just-print",
            "--keep-going",
            "--no-builtin-rules",
            "--no-print-directory",
            "--print-directory",
            "--question",
            "--quiet",
            "--silent",
            "--touch",
            "--trace",
        ],
        equals: &["--jobs", "--load-average", "--output-sync"],
        code_words: &["--eval"],
        information: &["--help", "--version", "-v"],
        first: First::Other,
        permutes: true,
        assigns: true,
        ..NOTHING
    },
];

/// The syntax of an interpreter whose options are known.
pub(super) fn syntax_of(word: &str) -> Option<&'static Syntax> {
    let folded = fold(word);
    let name = folded.strip_suffix("-dbg").unwrap_or(&folded);
    // `perl5.36-x86_64-linux-gnu` is one too; `perl6` is another language.
    let perl = (name.starts_with("perl5") && name != "perl5").then_some("perl");
    versions(name)
        .filter(|name| *name != "perl6")
        .take_while(|_| !name.starts_with("perl6"))
        .chain(perl)
        .find_map(|name| KNOWN.iter().find(|syntax| syntax.names.contains(&name)))
}
