//! `tools.exec.reviewer`: who reviews commands before a person does, under `mode=auto` (policy spec §8.2).

use std::{net::IpAddr, path::Path, time::Duration};

use super::cursor::{Cursor, Refusal};

/// Time for one review, unless configured.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Shortest and longest time for one review that can be configured, in milliseconds.
const TIMEOUT_MS: std::ops::RangeInclusive<usize> = 1000..=120_000;
/// How much a model may think, as it is written.
const THINKING: [&str; 6] = ["off", "minimal", "low", "medium", "high", "xhigh"];

/// How commands are reviewed. Without a program or an address nobody reviews them, and a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewerConfig {
    /// The model to ask, by the name that the endpoint knows.
    pub model: Option<String>,
    /// Time for one review.
    pub timeout: Duration,
    /// `off`, `minimal`, `low`, `medium`, `high` or `xhigh`; none: as the model does by itself.
    pub thinking: Option<String>,
    /// The endpoint's faster tier is asked for.
    pub fast_mode: bool,
    /// An endpoint for chat completions as OpenAI has them.
    pub base_url: Option<ReviewerUrl>,
    /// The variable of the gateway's environment that holds the key.
    pub api_key_env: Option<String>,
    /// A local program, an absolute path, and its arguments; it goes before the endpoint. Empty: none.
    pub command: Vec<String>,
}

/// Where an endpoint is. Without TLS it is on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewerUrl {
    /// `https`.
    pub tls: bool,
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Begins with `/` or is empty, and does not end with `/`.
    pub path: String,
}

impl ReviewerConfig {
    /// Reads the object. A misspelt member would be a reviewer that nobody chose, so it is refused.
    pub(super) fn read(reviewer: &Cursor<'_>) -> Result<Self, Refusal> {
        let mut read = Self::default();
        for (member, value) in reviewer.members()? {
            match member {
                "model" => read.model = Some(value.text()?.to_owned()),
                "timeoutMs" => read.timeout = read_timeout(&value)?,
                "thinking" => read.thinking = Some(read_thinking(&value)?),
                "fastMode" => read.fast_mode = value.flag()?,
                "baseUrl" => {
                    let url = ReviewerUrl::parse(value.text()?).map_err(|reason| value.refuse(reason))?;
                    read.base_url = Some(url);
                }
                "apiKeyEnv" => read.api_key_env = Some(read_variable(&value)?),
                "command" => read.command = read_command(&value)?,
                _ => return Err(value.refuse("a reviewer has no such member")),
            }
        }
        Ok(read)
    }
}

impl Default for ReviewerConfig {
    fn default() -> Self {
        Self {
            model: None,
            timeout: TIMEOUT,
            thinking: None,
            fast_mode: false,
            base_url: None,
            api_key_env: None,
            command: Vec::new(),
        }
    }
}

impl ReviewerUrl {
    /// Reads `https://host[:port][/path]`, or `http://` with an address of this machine.
    ///
    /// # Errors
    /// It is no such address; the text says what is wrong.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let (tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err("expected an address that begins with https://"),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_path_letter =
            |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%:@!$&'()*+,;=".contains(&byte);
        if !path.bytes().all(is_path_letter) {
            return Err("the path of the address has characters that are not used here, such as `?` or `#`");
        }
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) if host.parse::<std::net::Ipv6Addr>().is_ok() => (host, port),
            Some(_) => return Err("expected an IPv6 address between the brackets"),
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let is_name =
            |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
        if host.is_empty() || !(is_name(host) || host.parse::<IpAddr>().is_ok()) {
            return Err("expected a host's name or address, and no user or password");
        }
        let port = match port.strip_prefix(':') {
            Some(digits) => {
                digits.parse().ok().filter(|port| *port != 0).ok_or("expected a port, 1 to 65535")?
            }
            None if !port.is_empty() => return Err("expected `:` and a port behind the address"),
            None if tls => 443,
            None => 80,
        };
        let url = Self { tls, host: host.to_owned(), port, path: path.trim_end_matches('/').to_owned() };
        if !tls && !url.is_local() {
            return Err("http:// goes to this machine only (127.0.0.1, [::1], localhost): use https://");
        }
        Ok(url)
    }

    /// It names this machine: `localhost` or a loopback address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }
}

fn read_timeout(value: &Cursor<'_>) -> Result<Duration, Refusal> {
    let ms = value.count()?;
    if !TIMEOUT_MS.contains(&ms) {
        let (least, most) = TIMEOUT_MS.into_inner();
        return Err(value.refuse(format!("expected {least} to {most} milliseconds")));
    }
    Ok(Duration::from_millis(ms as u64))
}

fn read_thinking(value: &Cursor<'_>) -> Result<String, Refusal> {
    let word = value.text()?;
    if !THINKING.contains(&word) {
        return Err(value.refuse(format!("expected one of {}", THINKING.join(", "))));
    }
    Ok(word.to_owned())
}

fn read_variable(value: &Cursor<'_>) -> Result<String, Refusal> {
    let name = value.text()?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !name.bytes().all(is_letter) || name.starts_with(|first: char| first.is_ascii_digit()) {
        // Not the value: somebody may have put the key itself here.
        return Err(value.refuse("expected the name of a variable, not the key itself"));
    }
    Ok(name.to_owned())
}

fn read_command(value: &Cursor<'_>) -> Result<Vec<String>, Refusal> {
    let words = value.texts()?;
    match words.first() {
        None => Err(value.refuse("expected a program and its arguments")),
        Some(program) if !Path::new(program).is_absolute() => {
            Err(value.refuse("expected the program's absolute path first"))
        }
        Some(_) if words.iter().any(|word| word.contains('\0')) => {
            Err(value.refuse("a word contains a NUL character"))
        }
        Some(_) => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, ExecConfig};

    fn exec(global: &str, agent: &str) -> Result<ExecConfig, String> {
        let of = |reviewer: &str| format!("tools: {{ exec: {{ mode: 'auto', {reviewer} }} }}");
        let (global, agent) = (of(global), of(agent));
        let text = format!("{{ {global}, agents: {{ entries: {{ a: {{ {agent} }} }} }} }}");
        Config::parse(&text).map(|config| config.exec(Some("a"))).map_err(|error| error.to_string())
    }

    #[test]
    fn objects_and_their_layers() {
        let all = "reviewer: { model: 'm', timeoutMs: 1000, thinking: 'low', fastMode: true,
            baseUrl: 'https://models.example/v1/', apiKeyEnv: 'REVIEW_KEY', command: ['/opt/review', '--strict'] }";
        let whole = ReviewerConfig {
            model: Some("m".into()),
            timeout: Duration::from_secs(1),
            thinking: Some("low".into()),
            fast_mode: true,
            base_url: Some(ReviewerUrl {
                tls: true,
                host: "models.example".into(),
                port: 443,
                path: "/v1".into(),
            }),
            api_key_env: Some("REVIEW_KEY".into()),
            command: vec!["/opt/review".into(), "--strict".into()],
        };
        let only_model = ReviewerConfig { model: Some("n".into()), ..ReviewerConfig::default() };
        assert_eq!(only_model.timeout, Duration::from_secs(30));
        let table = [
            ("", "", None),
            ("reviewer: {}", "", Some(ReviewerConfig::default())),
            (all, "", Some(whole.clone())),
            ("", all, Some(whole)),
            // A key for one endpoint does not go to another.
            (all, "reviewer: { model: 'n' }", Some(only_model)),
        ];
        for (global, agent, want) in table {
            assert_eq!(exec(global, agent).map(|exec| exec.reviewer), Ok(want), "{global} / {agent}");
        }
    }

    #[test]
    fn bad_values_are_refused() {
        let table = [
            ("7", "tools.exec.reviewer: expected an object"),
            ("{ modle: 'x' }", "tools.exec.reviewer.modle: a reviewer has no such member"),
            ("{ model: ' ' }", "tools.exec.reviewer.model: the text is blank"),
            ("{ timeoutMs: 999 }", "tools.exec.reviewer.timeoutMs: expected 1000 to 120000 milliseconds"),
            ("{ timeoutMs: 120001 }", "tools.exec.reviewer.timeoutMs: expected 1000 to 120000 milliseconds"),
            (
                "{ thinking: 'hard' }",
                "tools.exec.reviewer.thinking: expected one of off, minimal, low, medium, high, xhigh",
            ),
            ("{ fastMode: 'yes' }", "tools.exec.reviewer.fastMode: expected true or false"),
            (
                "{ apiKeyEnv: 'sk-123' }",
                "tools.exec.reviewer.apiKeyEnv: expected the name of a variable, not the key itself",
            ),
            ("{ command: [] }", "tools.exec.reviewer.command: expected a program and its arguments"),
            (
                "{ command: ['review'] }",
                "tools.exec.reviewer.command: expected the program's absolute path first",
            ),
            ("{ command: ['/a\\0'] }", "tools.exec.reviewer.command: a word contains a NUL character"),
            (
                "{ baseUrl: 'models.example' }",
                "tools.exec.reviewer.baseUrl: expected an address that begins with https://",
            ),
        ];
        for (reviewer, want) in table {
            let want = format!("line 1: {want}");
            assert_eq!(exec(&format!("reviewer: {reviewer}"), "").unwrap_err(), want, "{reviewer}");
        }
    }

    #[test]
    fn addresses() {
        let local = "http:// goes to this machine only (127.0.0.1, [::1], localhost): use https://";
        let host = "expected a host's name or address, and no user or password";
        let path = "the path of the address has characters that are not used here, such as `?` or `#`";
        let port = "expected a port, 1 to 65535";
        let url = |tls, host: &str, port, path: &str| {
            Ok(ReviewerUrl { tls, host: host.into(), port, path: path.into() })
        };
        let table = [
            ("https://a.example", url(true, "a.example", 443, "")),
            ("https://a.example/", url(true, "a.example", 443, "")),
            ("https://a.example:8443/v1//", url(true, "a.example", 8443, "/v1")),
            ("https://[2001:db8::1]:1/x", url(true, "2001:db8::1", 1, "/x")),
            ("http://127.9.0.1:80", url(false, "127.9.0.1", 80, "")),
            ("http://[::1]/v1", url(false, "::1", 80, "/v1")),
            ("http://LocalHost:11434/v1", url(false, "LocalHost", 11434, "/v1")),
            ("http://a.example", Err(local)),
            ("http://localhost.example", Err(local)),
            ("http://127.0.0.1.example", Err(local)),
            ("http://0.0.0.0", Err(local)),
            ("http://10.0.0.1/v1", Err(local)),
            ("http://[::ffff:10.0.0.1]/v1", Err(local)),
            ("http://127.0.0.1@a.example/", Err(host)),
            ("https://user:pass@a.example/", Err(port)),
            ("https://", Err(host)),
            ("https://:443", Err(host)),
            ("https://a b", Err(host)),
            ("https://a\\b", Err(host)),
            ("https://a?b=/c", Err(host)),
            ("https://a/b?c", Err(path)),
            ("https://a/b#c", Err(path)),
            ("https://a/b c", Err(path)),
            ("https://a:0", Err(port)),
            ("https://a:65536", Err(port)),
            ("https://a:", Err(port)),
            ("https://[::1", Err(host)),
            ("https://[x]", Err("expected an IPv6 address between the brackets")),
            ("https://[::1]x", Err("expected `:` and a port behind the address")),
            ("HTTPS://a", Err("expected an address that begins with https://")),
            ("ftp://a", Err("expected an address that begins with https://")),
        ];
        for (text, want) in table {
            assert_eq!(ReviewerUrl::parse(text), want, "{text}");
        }
    }
}
