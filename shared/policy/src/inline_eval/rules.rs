//! Which arguments of an interpreter are code, as data.

/// What an interpreter does with words that are no options.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    /// The first is a script; without one it reads the program from standard input.
    Script,
    /// It reads commands from standard input, whatever else it is given.
    Session,
    /// The first is the program, unless an option names its file.
    Program,
    /// The first is a command.
    Command,
    /// No code.
    Ignored,
}

/// The options of one interpreter. Names of long options bear no dashes and match behind one or two; a bar in a name
/// ends its shortest abbreviation.
#[derive(Debug)]
pub(super) struct Rule {
    /// Letters that give code or load it.
    pub(super) code: &'static str,
    /// Letters whose value names the file of the program.
    pub(super) file: &'static str,
    /// Other letters with a value.
    pub(super) value: &'static str,
    /// Letters whose value is a long option.
    pub(super) as_long: &'static str,
    /// Letters whose value is a setting.
    pub(super) setting: &'static str,
    /// Long options whose value is a setting.
    pub(super) long_setting: &'static [&'static str],
    /// Settings that load code.
    pub(super) settings: &'static [&'static str],
    /// Whether letters can stand together behind one dash.
    pub(super) clusters: bool,
    /// Names behind one dash that are no letters.
    pub(super) no_cluster: &'static [&'static str],
    /// Long options that give code or load it.
    pub(super) long: &'static [&'static str],
    /// Long options whose value names the file of the program.
    pub(super) long_file: &'static [&'static str],
    /// Other long options whose value is the next word.
    pub(super) long_value: &'static [&'static str],
    /// First words that make the rest code.
    pub(super) verbs: &'static [&'static str],
    pub(super) operand: Operand,
    /// `+command` is code.
    pub(super) plus: bool,
    /// Operands may set variables, as those of `make`.
    pub(super) assigns: bool,
    /// The first word is letters even without a dash, as that of `tar`.
    pub(super) first_letters: bool,
    /// Options count after `--` too.
    pub(super) after_end: bool,
    /// Options are written as on Windows too.
    pub(super) windows: bool,
}

const NOTHING: Rule = Rule {
    code: "",
    file: "",
    value: "",
    as_long: "",
    setting: "",
    long_setting: &[],
    settings: &[],
    clusters: true,
    no_cluster: &[],
    long: &[],
    long_file: &[],
    long_value: &[],
    verbs: &[],
    operand: Operand::Ignored,
    plus: false,
    assigns: false,
    first_letters: false,
    after_end: false,
    windows: false,
};

pub(super) static PYTHON: Rule = Rule {
    code: "cm",
    value: "QWX",
    long_value: &["check-hash-based-pycs"],
    operand: Operand::Script,
    ..NOTHING
};
pub(super) static NODE: Rule = Rule {
    code: "epr",
    value: "C",
    long: &["eval", "print", "require", "import", "loader", "experimental-loader"],
    operand: Operand::Script,
    ..NOTHING
};
pub(super) static BUN: Rule = Rule {
    code: "epr",
    long: &["eval", "print", "preload", "require", "import"],
    verbs: &["eval", "exec"],
    operand: Operand::Script,
    ..NOTHING
};
// Its `-r` reloads, and loads nothing of its own.
pub(super) static DENO: Rule = Rule {
    code: "ep",
    long: &["eval", "print", "preload"],
    verbs: &["eval", "repl"],
    operand: Operand::Script,
    ..NOTHING
};
// The values of `-K` and `-T` are attached and end by themselves.
pub(super) static RUBY: Rule = Rule { code: "er", value: "CEFIX", operand: Operand::Script, ..NOTHING };
pub(super) static IRB: Rule = Rule { code: "er", value: "IEU", operand: Operand::Session, ..NOTHING };
// A module's name may be followed by any code.
pub(super) static PERL: Rule = Rule { code: "eEmM", value: "I", operand: Operand::Script, ..NOTHING };
pub(super) static PHP: Rule = Rule {
    code: "BEFRr",
    file: "f",
    value: "Sctz",
    setting: "d",
    long_setting: &["define"],
    settings: &["auto_append_file", "auto_prepend_file", "opcache.preload"],
    long: &["run", "process-begin", "process-code", "process-end", "process-file"],
    long_file: &["file"],
    long_value: &["docroot", "php-ini", "server", "zend-extension"],
    operand: Operand::Script,
    ..NOTHING
};
pub(super) static LUA: Rule =
    Rule { code: "e", value: "l", clusters: false, operand: Operand::Script, ..NOTHING };
pub(super) static OSASCRIPT: Rule = Rule { code: "e", value: "ls", operand: Operand::Script, ..NOTHING };
pub(super) static R: Rule = Rule {
    code: "e",
    file: "f",
    clusters: false,
    long_file: &["file"],
    operand: Operand::Session,
    ..NOTHING
};
pub(super) static RSCRIPT: Rule = Rule { code: "e", clusters: false, operand: Operand::Script, ..NOTHING };
pub(super) static JULIA: Rule = Rule {
    code: "ELe",
    value: "CHJOgpt",
    long: &["eval", "print", "load"],
    operand: Operand::Script,
    ..NOTHING
};
pub(super) static ELIXIR: Rule =
    Rule { code: "e", clusters: false, long: &["eval", "rpc-eval"], operand: Operand::Script, ..NOTHING };
pub(super) static IEX: Rule = Rule {
    code: "e",
    clusters: false,
    long: &["eval", "rpc-eval", "dot-iex"],
    operand: Operand::Session,
    ..NOTHING
};
pub(super) static GUILE: Rule =
    Rule { code: "ce", file: "s", value: "CL", clusters: false, operand: Operand::Script, ..NOTHING };
pub(super) static GROOVY: Rule = Rule {
    code: "e",
    value: "D",
    no_cluster: &["classpath", "cp", "debug", "define", "encoding", "help", "indy", "version"],
    operand: Operand::Script,
    ..NOTHING
};
pub(super) static SCALA: Rule = Rule {
    code: "e",
    clusters: false,
    long: &[
        "execute",
        "execute-java",
        "execute-markdown",
        "execute-scala",
        "execute-scala-script",
        "execute-script",
        "java-snippet",
        "markdown-snippet",
        "scala-snippet",
        "script-snippet",
        "snippet",
    ],
    operand: Operand::Script,
    ..NOTHING
};
pub(super) static CLOJURE: Rule =
    Rule { code: "e", clusters: false, long: &["eval", "init"], operand: Operand::Script, ..NOTHING };
pub(super) static RAKU: Rule = Rule { code: "eM", value: "I", operand: Operand::Script, ..NOTHING };
pub(super) static GHC: Rule = Rule { code: "e", clusters: false, ..NOTHING };
pub(super) static GHCI: Rule = Rule { code: "e", clusters: false, operand: Operand::Session, ..NOTHING };
pub(super) static ERL: Rule =
    Rule { clusters: false, long: &["eval", "run", "s"], operand: Operand::Session, ..NOTHING };
pub(super) static GDB: Rule = Rule {
    code: "x",
    clusters: false,
    long: &[
        "x",
        "ex",
        "iex",
        "eiex",
        "ix",
        "eix",
        "ev|al-command",
        "init-e|val-command",
        "early-init-e|val-command",
        "com|mand",
        "init-c|ommand",
        "early-init-c|ommand",
    ],
    operand: Operand::Session,
    ..NOTHING
};
pub(super) static EXPECT: Rule = Rule { code: "c", file: "fb", operand: Operand::Script, ..NOTHING };
pub(super) static TCL: Rule = Rule { operand: Operand::Script, ..NOTHING };
pub(super) static SWIFT: Rule = Rule { code: "e", clusters: false, operand: Operand::Script, ..NOTHING };
pub(super) static AWK: Rule = Rule {
    code: "e",
    file: "Ef",
    value: "Filv",
    as_long: "W",
    long: &["so|urce"],
    long_file: &["exe|c", "fi|le"],
    long_value: &["assign", "field-separator", "include", "load"],
    operand: Operand::Program,
    ..NOTHING
};
pub(super) static SED: Rule = Rule {
    code: "e",
    file: "f",
    value: "l",
    long: &["e|xpression"],
    long_file: &["fi|le"],
    long_value: &["line-length"],
    operand: Operand::Program,
    ..NOTHING
};
pub(super) static FIND: Rule =
    Rule { clusters: false, long: &["exec", "execdir", "ok", "okdir"], after_end: true, ..NOTHING };
pub(super) static XARGS: Rule = Rule {
    value: "EILPadns",
    long_value: &["arg-file", "delimiter", "max-args", "max-chars", "max-lines", "max-procs"],
    operand: Operand::Command,
    ..NOTHING
};
pub(super) static MAKE: Rule = Rule {
    code: "Ef",
    value: "CIWo",
    long: &["ev|al", "f|ile", "mak|efile"],
    long_value: &["assume-new", "assume-old", "directory", "include-dir", "new-file", "old-file", "what-if"],
    assigns: true,
    ..NOTHING
};
pub(super) static VIM: Rule = Rule {
    code: "Sc",
    no_cluster: &["clean", "embed", "headless", "noplugin", "server", "servername"],
    long: &["cmd"],
    plus: true,
    operand: Operand::Session,
    ..NOTHING
};
pub(super) static EMACS: Rule =
    Rule { clusters: false, long: &["ev|al", "exe|cute", "f|uncall", "l|oad"], ..NOTHING };
pub(super) static EMACSCLIENT: Rule = Rule { code: "e", long: &["e|val"], ..NOTHING };
/// Programs that start others by an option (F015, F025).
pub(super) static TAR: Rule = Rule {
    code: "FI",
    value: "CKLNTVXbfg",
    long: &[
        "checkpoint-|action",
        "inf|o-script",
        "new-|volume-script",
        "rs|h-command",
        "rm|t-command",
        "to-c|ommand",
        "us|e-compress-program",
    ],
    first_letters: true,
    ..NOTHING
};
pub(super) static RIPGREP: Rule = Rule { clusters: false, long: &["hostname-bin", "pre"], ..NOTHING };
/// Their text is run by a shell.
pub(super) static RUNNER: Rule = Rule { code: "c", long: &["call", "shell-mode"], ..NOTHING };
pub(super) static PDB: Rule = Rule { code: "cm", long: &["c|ommand"], operand: Operand::Session, ..NOTHING };
pub(super) static JRUNSCRIPT: Rule = Rule {
    code: "e",
    file: "f",
    value: "l",
    clusters: false,
    no_cluster: &["encoding"],
    long_value: &["classpath", "cp", "encoding"],
    operand: Operand::Script,
    ..NOTHING
};
pub(super) static KOTLIN: Rule =
    Rule { code: "e", clusters: false, long: &["script"], operand: Operand::Session, ..NOTHING };
pub(super) static CRYSTAL: Rule =
    Rule { verbs: &["e", "ev", "eva", "eval"], operand: Operand::Script, ..NOTHING };
pub(super) static PROVE: Rule =
    Rule { code: "MPe", value: "Ij", long: &["e|xec", "f|ormatter", "ha|rness"], ..NOTHING };
/// Shells whose text is never read.
pub(super) static OTHER_SHELL: Rule = Rule {
    code: "Cc",
    value: "o",
    long: &["c|ommands", "init-|command"],
    operand: Operand::Script,
    ..NOTHING
};
pub(super) static NU: Rule =
    Rule { code: "ce", long: &["c|ommands", "e|xecute"], operand: Operand::Script, ..NOTHING };
pub(super) static CMD: Rule = Rule { code: "ckr", windows: true, ..NOTHING };
pub(super) static PWSH: Rule = Rule {
    clusters: false,
    long: &["c|ommand", "command|withargs", "cwa", "e|ncodedcommand", "ec"],
    long_file: &["f|ile"],
    long_value: &["ep", "ex", "exec", "executionpolicy", "wd", "workingdirectory"],
    operand: Operand::Script,
    windows: true,
    ..NOTHING
};
// The older one takes an operand for a command.
pub(super) static POWERSHELL: Rule = Rule { operand: Operand::Program, ..PWSH };
