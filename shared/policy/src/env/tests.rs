//! Tables of the specification's examples, and the two promises as properties.

use std::ffi::OsString;

use proptest::{collection::vec, prelude::*, sample::select};

use super::{table::*, *};

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

fn pairs(items: &[(&str, &str)]) -> Vec<(String, String)> {
    items.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn rejected(items: &[(&str, &str)]) -> EnvRejection {
    check_overrides(items.iter().copied()).unwrap_err()
}

fn inherit(items: &[(&str, &str)], pass: &PassList) -> Vec<(String, String)> {
    let given = items.iter().map(|&(key, value)| (OsString::from(key), OsString::from(value)));
    clean_inherited(given, pass)
        .into_iter()
        .map(|(key, value)| (key.into_string().unwrap(), value.into_string().unwrap()))
        .collect()
}

#[test]
fn every_name_of_both_lists_is_blocked_even_when_empty() {
    for name in BLOCKED_EVERYWHERE.iter().chain(BLOCKED_AS_OVERRIDE) {
        let result = check_overrides([(*name, "")]);
        if matches!(*name, "PAGER" | "GIT_PAGER") {
            assert_eq!(result, Ok(pairs(&[(name, "")])));
        } else {
            assert_eq!(result.unwrap_err().blocked, strings(&[name]), "{name}");
        }
    }
}

#[test]
fn blocked_shapes() {
    let table = [
        "PATH",
        "Path",
        " PATH ",
        "\tpath\n",
        "ld_preload",
        "LD_X",
        "DYLD_INSERT_LIBRARIES",
        "BASH_FUNC_x()",
        "GIT_CONFIG_COUNT",
        "npm_config_registry",
        "CARGO_REGISTRIES_X_INDEX",
        "TF_VAR_a",
        "CARGO_TARGET_X_LINKER",
        "cargo_target_x86_runner",
        "OPENCLAW_SHELL",
        "openclaw_cli",
        "OPENCLAW_PREPEND_PATH",
        "FARRUN_X",
        "farrun_",
        "HOME",
        "ZDOTDIR",
        "BASH_ENV",
        "ENV",
        "PS4",
        "SHELLOPTS",
        "https_proxy",
        "AWS_SECRET_ACCESS_KEY",
        "MANPAGER",
    ];
    for key in table {
        let want = EnvRejection { blocked: vec![key.trim().to_ascii_uppercase()], ..EnvRejection::default() };
        assert_eq!(rejected(&[(key, "cat")]), want, "{key:?}");
    }
}

#[test]
fn further_names_are_refused_from_callers_and_inherited() {
    let shaped = [
        "GIT_TRACE",
        "GIT_TRACE2_EVENT",
        "GIT_REDIRECT_STDOUT",
        "LUA_PATH_5_4",
        "LUA_CPATH_5_4",
        "TS_NODE_PROJECT",
        "LESSKEY",
        "LESSKEYIN",
        "LESSKEY_CONTENT",
        "SYSTEMD_PAGER",
        "GH_PAGER",
        "KUBE_EDITOR",
    ];
    for name in ALSO_BLOCKED_AS_OVERRIDE.iter().chain(&shaped) {
        for value in ["", "cat", "x"] {
            let want = EnvRejection { blocked: strings(&[name]), ..EnvRejection::default() };
            assert_eq!(rejected(&[(name, value)]), want, "{name}");
        }
        assert_eq!(inherit(&[(name, "x")], &PassList::none()), pairs(&[(name, "x")]), "{name}");
    }
    assert_eq!(check_overrides([("GIT_PAGER", "cat")]), Ok(pairs(&[("GIT_PAGER", "")])));
}

#[test]
fn accepted_as_given() {
    let table = [
        ("OPENAI_API_KEY", "x"),
        ("USER", "x"),
        ("TMPDIR", "x"),
        ("TERM", "x"),
        ("LANG", "x"),
        ("NODE_ENV", "x"),
        ("PYTHONUNBUFFERED", "1"),
        ("GIT_AUTHOR_NAME", "ä b\nc"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("LESS", "-R"),
        ("CARGO_TARGET_DIR", "t"),
        ("OPENCLAW_CHANNEL_CONTEXT", "{}"),
        ("ProgramFiles(x86)", "c"),
        ("_", ""),
        ("foo", "x"),
    ];
    assert_eq!(check_overrides(table), Ok(pairs(&table)));
    assert_eq!(check_overrides([(" FOO\t", " v ")]), Ok(pairs(&[("FOO", " v ")])));
}

#[test]
fn pagers_are_emptied_or_blocked() {
    for (key, value, accepted) in [
        ("PAGER", "", true),
        ("PAGER", "cat", true),
        ("git_pager", "cat", true),
        ("GIT_PAGER", " cat", false),
        ("GIT_PAGER", "/bin/cat", false),
        ("PAGER", "less", false),
        ("PAGER", "cat\0", false),
        ("MANPAGER", "cat", false),
        ("MANPAGER", "", false),
    ] {
        match check_overrides([(key, value)]) {
            Ok(stored) => assert_eq!((stored, accepted), (pairs(&[(key, "")]), true), "{key} {value:?}"),
            Err(refused) => assert_eq!((refused.blocked.len(), accepted), (1, false), "{key} {value:?}"),
        }
    }
}

#[test]
fn a_rejection_names_everything_once_sorted_and_escaped() {
    let found = rejected(&[
        ("PATH", "secret-value"),
        ("ld_preload", "secret-value"),
        ("FOO BAR", "x"),
        ("1A", "x"),
        ("BASH_FUNC_x%%", "() {"),
        ("", "x"),
        ("a\u{1b}[2J\u{202e}", "x"),
        ("NULL", "secret\0value"),
        ("Twice", "x"),
        ("TWICE", "x"),
    ]);
    let want = EnvRejection {
        blocked: strings(&["LD_PRELOAD", "PATH"]),
        invalid: strings(&["(empty)", "1A", "BASH_FUNC_x%%", "FOO BAR", "a\\u{1b}[2J\\u{202e}"]),
        nul_values: strings(&["NULL"]),
        repeated: strings(&["TWICE"]),
        too_many: false,
    };
    assert_eq!(found, want);
    assert_eq!(
        found.to_string(),
        "environment override rejected (blocked override keys: LD_PRELOAD, PATH; invalid non-portable override keys: \
         (empty), 1A, BASH_FUNC_x%%, FOO BAR, a\\u{1b}[2J\\u{202e}; values with NUL: NULL; keys given more than once: \
         TWICE)"
    );
    assert_eq!(
        rejected(&[("PATH", "x")]).to_string(),
        "environment override rejected (blocked override keys: PATH)"
    );
}

#[test]
fn requests_and_texts_are_bounded() {
    let names: Vec<String> = (0..=MAX_OVERRIDES).map(|n| format!("N{n}")).collect();
    let given = |count: usize| check_overrides(names[..count].iter().map(|name| (name.as_str(), "")));
    assert_eq!(given(MAX_OVERRIDES).unwrap().len(), MAX_OVERRIDES);
    assert_eq!(
        given(MAX_OVERRIDES + 1).unwrap_err().to_string(),
        "environment override rejected (more than 1024 overrides)"
    );
    let bad: Vec<String> = (0..MAX_OVERRIDES).map(|n| format!("{n:04}{}", "\u{7}".repeat(500))).collect();
    let text = check_overrides(bad.iter().map(|name| (name.as_str(), ""))).unwrap_err().to_string();
    assert!(text.len() < 4096 && text.ends_with(" and 992 more)"), "{} bytes", text.len());
}

#[test]
fn inheriting_follows_the_lists() {
    for name in BLOCKED_EVERYWHERE {
        let kept = !inherit(&[(name, "x")], &PassList::new([name])).is_empty();
        assert_eq!(
            kept,
            name.starts_with("GIT_ALLOW_PROTOCOL") || *name == "GIT_PROTOCOL_FROM_USER",
            "{name}"
        );
    }
    for name in BLOCKED_AS_OVERRIDE {
        let kept = !inherit(&[(name, "x")], &PassList::none()).is_empty();
        assert_eq!(kept, contains(KEPT_WHEN_INHERITED, name), "{name}");
        assert_eq!(inherit(&[(name, "x")], &PassList::new([name])).len(), 1, "{name}");
    }
}

#[test]
fn inheriting_examples() {
    let kept = [
        ("HOME", "/h"),
        ("PATH", "/b"),
        ("USER", "u"),
        ("LANG", "C"),
        ("http_proxy", "p"),
        ("KUBECONFIG", "k"),
        ("XDG_RUNTIME_DIR", "x"),
        ("GIT_CONFIG_COUNT", "0"),
        ("npm_config_cache", "c"),
        ("TF_VAR_region", "r"),
        ("CARGO_TARGET_X_LINKER", "l"),
        ("odd key=", "o"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/f"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/f"),
        ("SSH_AUTH_SOCK", "s"),
        ("MONKEY", "m"),
        ("COMPAT", "c"),
    ];
    assert_eq!(inherit(&kept, &PassList::none()), pairs(&kept));

    let dropped = [
        "API_TOKEN",
        "api_token",
        "MY_SECRET",
        "DB_PASSWORD",
        "PGPASSWORD",
        "X_PASSWD",
        "OPENAI_API_KEY",
        "XAPIKEY",
        "S3_ACCESS_KEY",
        "SSH_PRIVATE_KEY",
        "MY_CREDENTIALS",
        "GITLAB_PAT",
        "A_SECRET_B",
        "SECRET_KEY_BASE",
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "OPENCLAW_STATE_DIR",
        "OPENCLAW_CLI",
        "farrun_x",
        "SHELL",
        "EDITOR",
        "VIRTUAL_ENV",
        "CARGO_HOME",
        "GOPATH",
        "LD_PRELOAD",
        "ld_audit",
        "DYLD_X",
        "BASH_FUNC_x%%",
        "BASH_ENV",
        " ENV ",
    ];
    for name in dropped {
        assert_eq!(inherit(&[(name, "x")], &PassList::none()), [], "{name}");
    }
    let passed = [("API_TOKEN", "t"), ("OPENCLAW_STATE_DIR", "d"), ("GH_TOKEN", "g")];
    let pass = PassList::new([
        "api_token",
        " OPENCLAW_STATE_DIR ",
        "GH_TOKEN",
        "LD_PRELOAD",
        "BASH_FUNC_x%%",
        "SHELL",
    ]);
    let mut given = passed.to_vec();
    given.extend([("LD_PRELOAD", "x"), ("BASH_FUNC_x%%", "x"), ("SHELL", "x"), ("OTHER_TOKEN", "x")]);
    assert_eq!(inherit(&given, &pass), pairs(&passed));
}

#[test]
fn git_transports_are_narrowed() {
    for (value, want) in [
        ("https:ssh", "https:ssh"),
        ("ext:https:file:git:http", "https:git:http"),
        ("ext", ""),
        ("", ""),
        ("HTTPS", ""),
    ] {
        assert_eq!(
            inherit(&[("GIT_ALLOW_PROTOCOL", value)], &PassList::none()),
            pairs(&[("GIT_ALLOW_PROTOCOL", want)])
        );
    }
    for (value, want) in [
        ("1", "0"),
        ("true", "0"),
        ("yes", "0"),
        ("2k", "0"),
        ("0", "0"),
        ("No", "No"),
        ("", ""),
        ("off", "off"),
    ] {
        assert_eq!(
            inherit(&[("GIT_PROTOCOL_FROM_USER", value)], &PassList::none()),
            pairs(&[("GIT_PROTOCOL_FROM_USER", want)])
        );
    }
}

#[cfg(unix)]
#[test]
fn keys_and_values_that_are_no_text_stay() {
    use std::os::unix::ffi::OsStringExt;
    let odd = (OsString::from_vec(vec![b'A', 0xff]), OsString::from_vec(vec![0xfe]));
    assert_eq!(clean_inherited([odd.clone()], &PassList::none()), [odd]);
    let loader = OsString::from_vec(b"LD_\xff".to_vec());
    assert_eq!(clean_inherited([(loader, OsString::new())], &PassList::none()), []);
}

#[test]
fn a_shell_wrapper_keeps_the_short_list_and_names_the_rest() {
    let given = pairs(&[
        ("FOO", "x"),
        ("LANG", "C"),
        ("LANGUAGE", "x"),
        ("term", "xterm"),
        ("LC_ALL", "C"),
        ("lc_anything", "C"),
        ("COLORTERM", "1"),
        ("NO_COLOR", "1"),
        ("FORCE_COLOR", "1"),
        ("OPENCLAW_SUBAGENT_EXEC", "1"),
        ("PAGER", ""),
        ("GIT_PAGER", "less"),
    ]);
    let (kept, left_out) = reduce_for_shell_wrapper(&given);
    let kept: Vec<&str> = kept.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        kept,
        [
            "LANG",
            "term",
            "LC_ALL",
            "lc_anything",
            "COLORTERM",
            "NO_COLOR",
            "FORCE_COLOR",
            "OPENCLAW_SUBAGENT_EXEC",
            "PAGER"
        ]
    );
    assert_eq!(left_out, strings(&["FOO", "LANGUAGE", "GIT_PAGER"]));
}

/// A blocked name as an attacker would write it: any letter case, spaces around.
fn disguised(names: Vec<String>) -> impl Strategy<Value = (String, String)> {
    (select(names), vec(any::<bool>(), 64), "[ \t\r\n]{0,3}", "[ \t\r\n]{0,3}").prop_map(
        |(name, lower, before, after)| {
            let letters = name.chars().zip(lower.into_iter().cycle());
            let key: String =
                letters.map(|(c, lower)| if lower { c.to_ascii_lowercase() } else { c }).collect();
            (name, format!("{before}{key}{after}"))
        },
    )
}

fn blocked_names() -> Vec<String> {
    let listed = BLOCKED_EVERYWHERE
        .iter()
        .chain(BLOCKED_AS_OVERRIDE)
        .chain(ALSO_BLOCKED_AS_OVERRIDE)
        .chain(OWN_NAMES)
        .chain(&["PATH"]);
    let prefixed =
        BLOCKED_PREFIXES.iter().chain(OVERRIDE_PREFIXES).chain(ALSO_BLOCKED_PREFIXES).chain(&[OWN_PREFIX]);
    listed
        .filter(|name| !matches!(**name, "PAGER" | "GIT_PAGER"))
        .map(|&name| name.to_owned())
        .chain(prefixed.map(|prefix| format!("{prefix}ANY")))
        .collect()
}

proptest! {
    #[test]
    fn a_blocked_name_is_rejected_however_it_is_written((name, key) in disguised(blocked_names()), value in ".{0,8}") {
        let found = check_overrides([("FINE", "x"), (key.as_str(), value.as_str())]).unwrap_err();
        prop_assert_eq!(found, EnvRejection { blocked: vec![name], ..EnvRejection::default() });
    }

    #[test]
    fn what_is_accepted_is_never_blocked(
        key in "[A-Za-z_ ]{0,12}|(?i)(ld|dyld|bash_func|path|git_config)_?[a-z]{0,4}",
        value in ".{0,8}",
    ) {
        if let Ok(stored) = check_overrides([(key.as_str(), value.as_str())]) {
            let name = stored[0].0.to_ascii_uppercase();
            prop_assert!(name != "PATH" && !contains(BLOCKED_EVERYWHERE, &name));
            prop_assert!(!has_prefix(BLOCKED_PREFIXES, &name) && !value.contains('\0'));
        }
    }

    #[test]
    fn nothing_of_list_a_is_inherited((_, key) in disguised(
        BLOCKED_EVERYWHERE.iter().filter(|name| !matches!(**name, "GIT_ALLOW_PROTOCOL" | "GIT_PROTOCOL_FROM_USER"))
            .map(|&name| name.to_owned()).chain(BLOCKED_PREFIXES.iter().map(|prefix| format!("{prefix}ANY"))).collect()
    )) {
        let pass = PassList::new([&key]);
        prop_assert_eq!(clean_inherited([(OsString::from(&key), OsString::from("x"))], &pass), []);
    }
}
