//! Asks an agent's runtime to wake it when the end of a background command waits for it (runtime spec §5.4).
//!
//! A request says who has news, never what they are: the ends stay in the queue until the agent takes them. Requests are
//! signed, tried again, and bounded in their number: a wake that is too early waits, and ends that are queued meanwhile
//! are told by it too.

mod pace;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{NotifyWebhook, PrivateMode, read_private};
use http_body_util::Full;
use parking_lot::Mutex;
use proto::v1 as pb;
use ring::hmac;

use crate::clock;
use crate::gateway::Gateway;
use crate::http::{self, Expected, HttpError};
use pace::{Key, Pace};

/// For one try.
const TRY: Duration = Duration::from_secs(10);
/// Between tries. After the last one the ends wait for whoever asks.
const BACKOFF: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16), Duration::from_secs(60)];
/// Sessions of agents that are being woken at one time.
const SESSIONS_MAX: usize = 1024;
/// Longest answer that is read, in bytes. Nothing in it counts.
const ANSWER_MAX: usize = 64 * 1024;
/// Shortest and longest key, in bytes.
const SECRET_MIN: usize = 16;
const SECRET_MAX: u64 = 4096;

/// Why a request was not answered well. The key is in none of these.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("its secretFile cannot be used: {0}")]
    Secret(config::PrivateFileError),
    #[error("its secretFile holds no key of {SECRET_MIN} bytes or more")]
    NoSecret,
    #[error("it did not answer within {} s", TRY.as_secs())]
    Late,
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// The wakes of one gateway.
#[derive(Debug)]
pub(crate) struct Wakes {
    born: Instant,
    state: Mutex<State>,
    backoff: [Duration; 4],
}

#[derive(Debug, Default)]
struct State {
    pace: Pace,
    /// Sessions that have somebody at work for them, and what was queued since their last request began.
    open: HashMap<Key, Option<News>>,
}

/// What a request names: the newest command that ended.
#[derive(Debug, Clone)]
struct News {
    session_id: String,
}

impl Default for Wakes {
    fn default() -> Self {
        Self { born: Instant::now(), state: Mutex::default(), backoff: BACKOFF }
    }
}

impl Wakes {
    /// An end was queued. Its agent is woken where a webhook is configured.
    pub(crate) fn queued(self: &Arc<Self>, gateway: &Arc<Gateway>, notice: &pb::Notice) {
        if polls(&notice.session_key) || webhook(gateway).is_none() {
            return;
        }
        let key = (notice.agent_id.clone(), notice.session_key.clone());
        let news = News { session_id: notice.session_id.clone() };
        let mut state = self.state.lock();
        if let Some(newest) = state.open.get_mut(&key) {
            *newest = Some(news);
            return;
        }
        if state.open.len() >= SESSIONS_MAX {
            tracing::warn!(agent = key.0, "too many agents are being woken; this one is not");
            return;
        }
        state.open.insert(key.clone(), Some(news));
        drop(state);
        let (wakes, gateway) = (Arc::clone(self), Arc::clone(gateway));
        tokio::spawn(async move {
            tokio::select! {
                () = wakes.serve(&gateway, &key) => {}
                () = gateway.stopping.cancelled() => {}
            }
        });
    }

    /// Wakes one session until there is no news for it.
    async fn serve(&self, gateway: &Gateway, key: &Key) {
        while let Some(news) = self.leave(key).await {
            let waiting = gateway.tasks.take(&key.0, &key.1, 0).map_or(0, |ends| ends.len());
            // They were taken or read meanwhile.
            if waiting > 0 {
                self.wake(gateway, key, &news, waiting).await;
            }
        }
    }

    /// Waits until the session may be woken, and takes its news; none: nobody is at work for it any more.
    async fn leave(&self, key: &Key) -> Option<News> {
        loop {
            let now = self.born.elapsed();
            let again = {
                let mut state = self.state.lock();
                if !matches!(state.open.get(key), Some(Some(_))) {
                    state.open.remove(key);
                    return None;
                }
                match state.pace.take(key, now) {
                    Ok(()) => return state.open.get_mut(key)?.take(),
                    Err(again) => again,
                }
            };
            tokio::time::sleep(again.saturating_sub(now)).await;
        }
    }

    async fn wake(&self, gateway: &Gateway, (agent, session_key): &Key, news: &News, waiting: usize) {
        let body = serde_json::json!({
            "source": "exec-event",
            "intent": "event",
            "reason": "exec-event",
            "agentId": agent,
            "sessionKey": session_key,
            "contextKey": format!("exec:{}", news.session_id),
            "pending": waiting,
        })
        .to_string();
        let mut backoff = self.backoff.iter();
        loop {
            // It may be configured otherwise by now.
            let Some(webhook) = webhook(gateway) else { return };
            let sent = tokio::time::timeout(TRY, post(&webhook, gateway.settings.state.path(), &body)).await;
            let Err(failure) = sent.unwrap_or(Err(Failure::Late)) else { return };
            let Some(pause) = backoff.next() else {
                tracing::error!(agent, %failure, "the webhook could not be told; the agent's events wait");
                return;
            };
            tracing::warn!(agent, %failure, "the webhook could not be told");
            tokio::time::sleep(*pause).await;
        }
    }
}

/// Sessions that ask by themselves: those of agents that work for another one.
fn polls(session_key: &str) -> bool {
    session_key.starts_with("subagent:") || session_key.contains(":subagent:")
}

/// The configured webhook. A configuration that cannot be used is told of elsewhere, and wakes nobody.
fn webhook(gateway: &Gateway) -> Option<NotifyWebhook> {
    gateway.config.load().ok()?.notify_webhook().cloned()
}

async fn post(webhook: &NotifyWebhook, state_dir: &Path, body: &str) -> Result<(), Failure> {
    // A relative path lies in the state directory.
    let file = state_dir.join(&webhook.secret_file);
    let secret = read_private(&file, SECRET_MAX, PrivateMode::Strict).map_err(Failure::Secret)?;
    let secret = secret.trim_ascii();
    if secret.len() < SECRET_MIN {
        return Err(Failure::NoSecret);
    }
    let timestamp = (clock::now_ms() / 1000).to_string();
    let url = &webhook.url;
    let path = if url.path.is_empty() { "/" } else { url.path.as_str() };
    let request = http::post(url, path)
        .header("X-Farrun-Timestamp", &timestamp)
        .header("X-Farrun-Signature", signature(secret, &timestamp, body))
        .body(Full::from(body.to_owned()))
        .map_err(|_| HttpError::Address)?;
    let tls = if url.tls { Some(http::system_tls().await?) } else { None };
    let expected = Expected { status: |status| status.is_success(), body_max: ANSWER_MAX };
    // Large, and not always needed.
    match Box::pin(http::send(url, tls, request, expected)).await {
        // The status is what counts.
        Ok(_) | Err(HttpError::TooLong) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// `sha256=` and the HMAC of the time, a point and the body, in hex.
fn signature(secret: &[u8], timestamp: &str, body: &str) -> String {
    let mut signing = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret));
    signing.update(timestamp.as_bytes());
    signing.update(b".");
    signing.update(body.as_bytes());
    let mut text = "sha256=".to_owned();
    for byte in signing.sign().as_ref() {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
