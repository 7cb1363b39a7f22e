//! The names, as data. The gateway, the node and the tests read this one table.
//!
//! Every list is upper case and sorted by byte, so a look-up is a binary search. Owns no rule: which list means what is
//! decided in `overrides` and `inherited`.

/// List A (policy spec §6.5): start-up files, loaders, tool hooks. Never from a caller, never inherited.
pub(super) const BLOCKED_EVERYWHERE: &[&str] = &[
    "ANT_OPTS",
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "BZR_EDITOR",
    "BZR_PLUGIN_PATH",
    "BZR_SSH",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTDOC",
    "CATALINA_OPTS",
    "CC",
    "CMAKE_CXX_COMPILER",
    "CMAKE_C_COMPILER",
    "CMAKE_TOOLCHAIN_FILE",
    "CONFIG_SHELL",
    "CONFIG_SITE",
    "CORECLR_PROFILER",
    "CPP",
    "CXX",
    "CXXCPP",
    "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_STARTUP_HOOKS",
    "ELIXIR_ERL_OPTIONS",
    "EMACSLOADPATH",
    "ENV",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_ZFLAGS",
    "EXINIT",
    "FPATH",
    "GCONV_PATH",
    "GIT_ALLOW_PROTOCOL",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_HOOK_PATH",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_NO_VERIFY",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
    "GLIBC_TUNABLES",
    "GRADLE_OPTS",
    "GVIMINIT",
    "HELM_PLUGINS",
    "HGEDITOR",
    "HGMERGE",
    "HGRCPATH",
    "HOSTALIASES",
    "IFS",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JULIA_EDITOR",
    "KSH_ENV",
    "LUA_INIT",
    "LUA_INIT_5_1",
    "LUA_INIT_5_2",
    "LUA_INIT_5_3",
    "LUA_INIT_5_4",
    "MAKE",
    "MAKEFLAGS",
    "MAVEN_OPTS",
    "MFLAGS",
    "MYVIMRC",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REDIRECT_WARNINGS",
    "NODE_REPL_EXTERNAL_MODULE",
    "NODE_REPL_HISTORY",
    "NODE_V8_COVERAGE",
    "PACKER_PLUGIN_PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PS4",
    "PYTHONBREAKPOINT",
    "PYTHONHOME",
    "PYTHONPATH",
    "RUBYLIB",
    "RUBYOPT",
    "RUBYSHELL",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "R_ENVIRON",
    "R_ENVIRON_USER",
    "R_PROFILE",
    "R_PROFILE_USER",
    "SBT_OPTS",
    "SHELL",
    "SHELLOPTS",
    "SSLKEYLOGFILE",
    "SUDO_ASKPASS",
    "SVN_EDITOR",
    "SVN_SSH",
    "TCLLIBPATH",
    "VAGRANT_VAGRANTFILE",
    "VIMINIT",
    "_JAVA_OPTIONS",
];

/// List B (§6.6): refused from a caller; inherited only where list C keeps it.
pub(super) const BLOCKED_AS_OVERRIDE: &[&str] = &[
    "ALL_PROXY",
    "AMQP_URL",
    "ANSIBLE_CALLBACK_PLUGINS",
    "ANSIBLE_COLLECTIONS_PATH",
    "ANSIBLE_CONFIG",
    "ANSIBLE_CONNECTION_PLUGINS",
    "ANSIBLE_FILTER_PLUGINS",
    "ANSIBLE_INVENTORY_PLUGINS",
    "ANSIBLE_LIBRARY",
    "ANSIBLE_LOOKUP_PLUGINS",
    "ANSIBLE_MODULE_UTILS",
    "ANSIBLE_REMOTE_TEMP",
    "ANSIBLE_ROLES_PATH",
    "ANSIBLE_STRATEGY_PLUGINS",
    "AWS_ACCESS_KEY_ID",
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SECURITY_TOKEN",
    "AWS_SESSION_TOKEN",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_AUTH_LOCATION",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "BUNDLE_GEMFILE",
    "BUN_CONFIG_REGISTRY",
    "CARGO_HOME",
    "CFLAGS",
    "CGO_CFLAGS",
    "CGO_LDFLAGS",
    "CLASSPATH",
    "COMPOSER_HOME",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "CORECLR_PROFILER_PATH",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "C_INCLUDE_PATH",
    "DATABASE_URL",
    "DENO_DIR",
    "DOCKER_CERT_PATH",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "EDITOR",
    "FCEDIT",
    "GEM_HOME",
    "GEM_PATH",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GIT_ASKPASS",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GOENV",
    "GOFLAGS",
    "GONOPROXY",
    "GONOSUMCHECK",
    "GONOSUMDB",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOPATH",
    "GOPRIVATE",
    "GOPROXY",
    "GRADLE_USER_HOME",
    "HELM_HOME",
    "HISTFILE",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "KUBECONFIG",
    "LDFLAGS",
    "LESSCLOSE",
    "LESSOPEN",
    "LIBRARY_PATH",
    "LUA_CPATH",
    "LUA_PATH",
    "MANPAGER",
    "MONGODB_URI",
    "NODE_AUTH_TOKEN",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "NO_PROXY",
    "NPM_TOKEN",
    "OBJC_INCLUDE_PATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "PAGER",
    "PERL5DB",
    "PERL5DBCMD",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PIP_CONFIG_FILE",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_PYPI_URL",
    "PIP_TRUSTED_HOST",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "REDIS_URL",
    "REQUESTS_CA_BUNDLE",
    "RUSTFLAGS",
    "RUSTUP_DIST_ROOT",
    "RUSTUP_DIST_SERVER",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTUP_UPDATE_ROOT",
    "R_LIBS_USER",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SUDO_EDITOR",
    "SYSTEMROOT",
    "TF_CLI_CONFIG_FILE",
    "TF_PLUGIN_CACHE_DIR",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_PYTHON",
    "VIRTUAL_ENV",
    "VISUAL",
    "WGETRC",
    "WINDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "YARN_RC_FILENAME",
    "ZDOTDIR",
];

/// List C (§6.7): members of list B that a command may inherit.
pub(super) const KEPT_WHEN_INHERITED: &[&str] = &[
    "ALL_PROXY",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_AUTH_LOCATION",
    "CURL_CA_BUNDLE",
    "DOCKER_CERT_PATH",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "GIT_PAGER",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GRADLE_USER_HOME",
    "HISTFILE",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "KUBECONFIG",
    "MANPAGER",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "NO_PROXY",
    "PAGER",
    "REQUESTS_CA_BUNDLE",
    "RUSTUP_DIST_ROOT",
    "RUSTUP_DIST_SERVER",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTUP_UPDATE_ROOT",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SYSTEMROOT",
    "WINDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "ZDOTDIR",
];

/// Loader and function-import prefixes: never from a caller, never inherited (§6.2, §6.3).
pub(super) const BLOCKED_PREFIXES: &[&str] = &["BASH_FUNC_", "DYLD_", "LD_"];

/// Prefixes refused from a caller but inherited (§6.2, §6.3).
pub(super) const OVERRIDE_PREFIXES: &[&str] = &["CARGO_REGISTRIES_", "GIT_CONFIG_", "NPM_CONFIG_", "TF_VAR_"];

/// Further names that are refused from a caller and inherited as they are; the specification does not have them. Each
/// makes a common program start something, load code, write a file or read its arguments in another way.
pub(super) const ALSO_BLOCKED_AS_OVERRIDE: &[&str] = &[
    "ANSIBLE_SSH_EXECUTABLE",
    "BUN_OPTIONS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CCACHE_PREFIX",
    "CDPATH",
    "COMPILER_PATH",
    "DOCKER_CONFIG",
    "ERL_LIBS",
    "GCC_EXEC_PREFIX",
    "GNUMAKEFLAGS",
    "GOAUTH",
    "GOCACHEPROG",
    "GOROOT",
    "GOTOOLCHAIN",
    "GREP_OPTIONS",
    "KUBECTL_EXTERNAL_DIFF",
    "MAKEFILES",
    "OPENSSL_MODULES",
    "PERLLIB",
    "PKG_CONFIG",
    "PKG_CONFIG_PATH",
    "PSQLRC",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTHONINSPECT",
    "PYTHONWARNINGS",
    "RIPGREP_CONFIG_PATH",
    "RSYNC_CONNECT_PROG",
    "RSYNC_RSH",
    "SYSTEMD_LESS",
    "TAR_OPTIONS",
    "UNZIP",
    "ZIPOPT",
    "_POSIX2_VERSION",
];

/// Prefixes of such names: traces and redirections of `git` are files that it writes, the others name code.
pub(super) const ALSO_BLOCKED_PREFIXES: &[&str] =
    &["GIT_REDIRECT_", "GIT_TRACE", "LESSKEY", "LUA_CPATH_", "LUA_PATH_", "TS_NODE_"];

/// Ends of such names: the program that shows or edits a text for another one (`SYSTEMD_PAGER`, `KUBE_EDITOR`).
pub(super) const ALSO_BLOCKED_SUFFIXES: &[&str] = &["_EDITOR", "_PAGER"];

/// Names that this product sets itself; a caller that sets them could pass for it.
pub(super) const OWN_NAMES: &[&str] = &["OPENCLAW_CLI", "OPENCLAW_PREPEND_PATH", "OPENCLAW_SHELL"];

/// Prefix of names that are wholly ours.
pub(super) const OWN_PREFIX: &str = "FARRUN_";

/// Prefixes that are not inherited without being named: they describe the service, not the command's world.
pub(super) const SERVICE_PREFIXES: &[&str] = &["FARRUN_", "OPENCLAW_"];

/// Ends of names that look like secrets (field case F086).
pub(super) const SECRET_ENDINGS: &[&str] = &[
    "ACCESS_KEY",
    "API_KEY",
    "API_KEYS",
    "APIKEY",
    "CREDENTIAL",
    "CREDENTIALS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PASSWORDS",
    "PRIVATE_KEY",
    "SECRET",
    "SECRETS",
    "SECRET_KEY",
    "TOKEN",
    "TOKENS",
    "_PAT",
];

/// Parts of names that look like secrets.
pub(super) const SECRET_PARTS: &[&str] = &["_API_KEY_", "_PASSWORD_", "_PRIVATE_KEY_", "_SECRET_", "_TOKEN_"];

/// Starts of names that look like secrets.
pub(super) const SECRET_STARTS: &[&str] = &["SECRET_"];

/// What a text that starts a shell wrapper keeps of its overrides (§6.4); `LC_*` and emptied pagers besides.
pub(super) const KEPT_BY_SHELL_WRAPPER: &[&str] =
    &["COLORTERM", "FORCE_COLOR", "LANG", "NO_COLOR", "OPENCLAW_SUBAGENT_EXEC", "TERM"];

/// Whether `name` (upper case) is in a sorted list.
pub(super) fn contains(list: &[&str], name: &str) -> bool {
    list.binary_search(&name).is_ok()
}

/// Whether `name` (upper case) starts with one of `prefixes`.
pub(super) fn has_prefix(prefixes: &[&str], name: &str) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether `name` (upper case) ends with one of `suffixes`.
pub(super) fn has_suffix(suffixes: &[&str], name: &str) -> bool {
    suffixes.iter().any(|suffix| name.ends_with(suffix))
}

/// `CARGO_TARGET_<x>_LINKER` and `_RUNNER` name programs to run (§6.2).
pub(super) fn is_cargo_target_program(name: &str) -> bool {
    name.strip_prefix("CARGO_TARGET_")
        .and_then(|rest| rest.strip_suffix("_LINKER").or_else(|| rest.strip_suffix("_RUNNER")))
        .is_some_and(|target| !target.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_specification() {
        assert_eq!(
            (BLOCKED_EVERYWHERE.len(), BLOCKED_AS_OVERRIDE.len(), KEPT_WHEN_INHERITED.len()),
            (110, 141, 42)
        );
    }

    #[test]
    fn lists_are_sorted_upper_case_and_disjoint() {
        for list in [
            BLOCKED_EVERYWHERE,
            BLOCKED_AS_OVERRIDE,
            ALSO_BLOCKED_AS_OVERRIDE,
            KEPT_WHEN_INHERITED,
            OWN_NAMES,
            KEPT_BY_SHELL_WRAPPER,
        ] {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "unsorted or repeated near {}", list[0]);
            assert!(
                list.iter().all(|name| name.to_ascii_uppercase() == **name),
                "lower case near {}",
                list[0]
            );
        }
        assert!(BLOCKED_EVERYWHERE.iter().all(|name| !contains(BLOCKED_AS_OVERRIDE, name)));
        assert!(
            ALSO_BLOCKED_AS_OVERRIDE
                .iter()
                .all(|name| { !contains(BLOCKED_EVERYWHERE, name) && !contains(BLOCKED_AS_OVERRIDE, name) })
        );
        assert!(KEPT_WHEN_INHERITED.iter().all(|name| contains(BLOCKED_AS_OVERRIDE, name)));
    }

    #[test]
    fn cargo_target_programs() {
        let table = [
            ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", true),
            ("CARGO_TARGET_X_RUNNER", true),
            ("CARGO_TARGET_DIR", false),
            ("CARGO_TARGET_LINKER", false),
            ("CARGO_TARGET__LINKER", false),
            ("XCARGO_TARGET_X_RUNNER", false),
        ];
        for (name, want) in table {
            assert_eq!(is_cargo_target_program(name), want, "{name}");
        }
    }
}
