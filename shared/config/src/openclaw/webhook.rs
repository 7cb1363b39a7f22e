//! `tools.exec.notifyWebhook`: who wakes an agent when the end of a background command waits for it (runtime spec §5.4).

use std::path::PathBuf;

use super::{
    cursor::{Cursor, Refusal},
    reviewer::ReviewerUrl,
};

/// Where wake requests go, and how they are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyWebhook {
    /// The address. Without TLS it is on this machine.
    pub url: ReviewerUrl,
    /// The file with the key that signs requests; a relative one lies in the state directory.
    pub secret_file: PathBuf,
}

impl NotifyWebhook {
    /// Reads the object. Both members are needed: a request that nobody can check is not sent.
    pub(super) fn read(webhook: &Cursor<'_>) -> Result<Self, Refusal> {
        let (mut url, mut secret_file) = (None, None);
        for (member, value) in webhook.members()? {
            match member {
                "url" => {
                    url = Some(ReviewerUrl::parse(value.text()?).map_err(|reason| value.refuse(reason))?);
                }
                "secretFile" => secret_file = Some(PathBuf::from(value.text()?)),
                _ => return Err(value.refuse("a webhook has no such member")),
            }
        }
        Ok(Self {
            url: url.ok_or_else(|| webhook.refuse("the webhook has no `url`"))?,
            secret_file: secret_file.ok_or_else(|| webhook.refuse("the webhook has no `secretFile`"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn one_webhook_for_all() {
        let read = |webhook: &str| {
            Config::parse(&format!("{{ tools: {{ exec: {{ notifyWebhook: {webhook} }} }} }}"))
                .map(|config| config.notify_webhook().cloned())
                .map_err(|error| error.to_string())
        };
        let url = ReviewerUrl { tls: false, host: "127.0.0.1".into(), port: 8, path: "/wake".into() };
        assert_eq!(
            read("{ url: 'http://127.0.0.1:8/wake', secretFile: 'wake.key' }"),
            Ok(Some(NotifyWebhook { url, secret_file: "wake.key".into() }))
        );
        assert_eq!(Config::parse("{}").unwrap().notify_webhook(), None);
        let refused = [
            ("7", "notifyWebhook: expected an object"),
            ("{}", "notifyWebhook: the webhook has no `url`"),
            ("{ url: 'https://a' }", "notifyWebhook: the webhook has no `secretFile`"),
            ("{ url: 'https://a', secretFile: ' ' }", "notifyWebhook.secretFile: the text is blank"),
            ("{ url: 'https://a', secret: 'x' }", "notifyWebhook.secret: a webhook has no such member"),
            (
                "{ url: 'http://a.example', secretFile: 'x' }",
                "notifyWebhook.url: http:// goes to this machine only (127.0.0.1, [::1], localhost): use https://",
            ),
        ];
        for (webhook, want) in refused {
            assert_eq!(read(webhook), Err(format!("line 1: tools.exec.{want}")), "{webhook}");
        }
        let own = "tools: { exec: { notifyWebhook: { url: 'https://a', secretFile: 'x' } } }";
        for agents in [format!("entries: {{ a: {{ {own} }} }}"), format!("list: [{{ id: 'a', {own} }}]")] {
            let error = Config::parse(&format!("{{ agents: {{ {agents} }} }}")).unwrap_err().to_string();
            assert!(error.ends_with("put it into the global `tools.exec`"), "{error}");
        }
    }
}
