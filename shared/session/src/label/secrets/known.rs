//! Names, programs and token shapes that tell of a secret.

/// How a program takes a secret behind an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// Only in the same word: `-psecret`.
    Attached,
    /// In the same word or the next.
    Either,
    /// The same, but only what is behind the first of this character is secret: `user:secret`.
    Behind(char),
}

/// Programs and their options that take a secret without naming it.
#[derive(Debug)]
pub(super) struct Program {
    names: &'static [&'static str],
    pub(super) options: &'static [(&'static str, Given)],
}

const PROGRAMS: &[Program] = &[
    Program {
        names: &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
        ],
        options: &[("-p", Given::Attached)],
    },
    Program { names: &["7z", "7za", "7zz"], options: &[("-p", Given::Attached)] },
    Program {
        names: &["curl", "wget", "http"],
        options: &[
            ("-u", Given::Behind(':')),
            ("-U", Given::Behind(':')),
            ("-a", Given::Behind(':')),
            ("--user", Given::Behind(':')),
            ("--proxy-user", Given::Behind(':')),
            ("-b", Given::Behind('=')),
        ],
    },
    Program { names: &["sshpass", "mongo", "mongosh", "mongodump"], options: &[("-p", Given::Either)] },
    // docker, podman, helm, az, oc …
    Program { names: &["login"], options: &[("-p", Given::Either)] },
    Program { names: &["redis-cli"], options: &[("-a", Given::Either)] },
    Program {
        names: &["ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami"],
        options: &[("-w", Given::Either)],
    },
    Program { names: &["sqlcmd", "bcp", "zip", "unzip"], options: &[("-P", Given::Either)] },
    Program { names: &["smbclient"], options: &[("-U", Given::Behind('%'))] },
];

/// The program of that name.
pub(super) fn program(name: &str) -> Option<&'static Program> {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    PROGRAMS.iter().find(|program| program.names.contains(&name))
}

/// Anywhere in a name, which is compared in small letters and without `-`, `_` and `.`.
const PARTS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "credential",
    "cookie",
    "fromliteral",
    "requirepass",
];

/// A name that ends like this names a place or a kind.
const PLACES: &[&str] = &["stdin", "file", "path", "dir", "name", "type", "jar"];

/// The value of this name, option or header is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let lower = plain.to_ascii_lowercase();
    if name.starts_with("--no-")
        || matches!(name, "PWD" | "OLDPWD")
        || PLACES.iter().any(|place| lower.ends_with(place))
        // Counts and settings of language models.
        || lower.contains("tokeniz")
        || lower.ends_with("maxtokens")
    {
        return false;
    }
    let auth = lower.replace("authoriz", "auth").replace("authoris", "auth").replace("author", "");
    let pass = matches!(lower.as_str(), "passin" | "passout")
        || (lower.ends_with("pass") && !lower.ends_with("bypass") && !lower.ends_with("compass"));
    // `KEY=`, `STRIPE_KEY=`: shouted names are variables.
    let key = name.ends_with("KEY") && name.chars().all(|c| !c.is_ascii_lowercase());
    PARTS.iter().any(|part| lower.contains(part)) || auth.contains("auth") || pass || key
}

/// The scheme in front of an authorization's value.
pub(super) fn is_scheme(word: &str) -> bool {
    matches!(word, "Basic" | "Token" | "Digest") || word.eq_ignore_ascii_case("bearer")
}

/// Prefixes of tokens that can be told by their looks, and how many characters at least follow.
const PREFIXES: &[(&str, usize)] = &[
    ("ghp_", 6),
    ("gho_", 6),
    ("ghu_", 6),
    ("ghs_", 6),
    ("ghr_", 6),
    ("github_pat_", 6),
    ("glpat-", 6),
    ("xoxa-", 6),
    ("xoxb-", 6),
    ("xoxp-", 6),
    ("xoxr-", 6),
    ("xoxs-", 6),
    ("xapp-", 6),
    ("hf_", 20),
    ("npm_", 20),
    ("pypi-", 20),
    ("AIza", 20),
    ("AKIA", 12),
    ("ASIA", 12),
];

/// The longest token that is told by its looks.
const TOKEN_MAX: usize = 2048;

const BEGIN: &str = "-----BEGIN";
const END: &str = "-----END";
const DASHES: &str = "-----";

/// How many characters from the first on are a token or key of known form.
pub(super) fn shape(text: &[char]) -> Option<usize> {
    if starts(text, BEGIN) {
        return Some(armoured(text));
    }
    let run = |extra: &str| {
        let is_token = |c: &&char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || extra.contains(**c);
        text.iter().take(TOKEN_MAX).take_while(is_token).count()
    };
    if starts(text, "eyJ") {
        let length = run(".");
        let dots = text.iter().take(length).filter(|&&c| c == '.').count();
        return (length >= 20 && dots >= 2).then_some(length);
    }
    if starts(text, "sk-") {
        let length = run("");
        let digits = text.iter().take(length).any(char::is_ascii_digit);
        return (length >= 9 && digits).then_some(length);
    }
    let (prefix, least) = PREFIXES.iter().find(|(prefix, _)| starts(text, prefix))?;
    let length = run("");
    // A name that only begins like a token goes on with an underscore: `npm_config_registry`.
    let body = text.get(prefix.len()..length).unwrap_or_default();
    let solid = body.iter().take_while(|&&c| c != '_').count();
    (solid >= *least).then_some(length)
}

fn starts(text: &[char], prefix: &str) -> bool {
    prefix.chars().enumerate().all(|(at, c)| text.get(at) == Some(&c))
}

/// The length of a key between its `BEGIN` and `END` lines, or to the end of the text.
fn armoured(text: &[char]) -> usize {
    let find = |from: usize, what: &str| {
        (from..text.len()).find(|&at| text.get(at..).is_some_and(|rest| starts(rest, what)))
    };
    find(BEGIN.len(), END)
        .and_then(|end| find(end + END.len(), DASHES))
        .map_or(text.len(), |dashes| dashes + DASHES.len())
}
