//! A reviewer behind an endpoint for chat completions: one request on a connection of its own.
//!
//! No redirects, no proxies, no cookies, no second try: what is not an answer is a failure, and a person decides.

use std::sync::Arc;

use bytes::Bytes;
use config::ReviewerUrl;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{ANSWER_MAX, Failure};

/// Longest head of an answer, in bytes.
const HEAD_MAX: usize = 64 * 1024;

/// What answers over TLS must show: a certificate that the system trusts.
///
/// Read for each review: that is quick beside a model, and the system's own updates count at once.
pub(super) async fn system_tls() -> Result<Arc<ClientConfig>, Failure> {
    let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs);
    let loaded = loaded.await.map_err(|_| Failure::NoRoots)?;
    let mut roots = RootCertStore::empty();
    // Those that cannot be read, or that this library does not take, vouch for nobody.
    let (taken, _) = roots.add_parsable_certificates(loaded.certs);
    if taken == 0 {
        return Err(Failure::NoRoots);
    }
    tls(roots)
}

/// TLS with these roots.
pub(super) fn tls(roots: RootCertStore) -> Result<Arc<ClientConfig>, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|_| Failure::NoRoots)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Sends a request for a chat completion and yields the text of the answer. `tls` is there where the address asks for
/// it. The caller limits the time: dropping this ends everything.
pub(super) async fn complete(
    url: &ReviewerUrl,
    tls: Option<Arc<ClientConfig>>,
    key: Option<&str>,
    body: String,
) -> Result<String, Failure> {
    let request = request(url, key, body)?;
    let answer = match (url.tls, tls) {
        (false, _) => exchange(connect_here(url).await?, request).await?,
        (true, Some(tls)) => {
            let name = ServerName::try_from(url.host.clone()).map_err(|_| Failure::Address)?;
            let stream =
                TcpStream::connect((url.host.as_str(), url.port)).await.map_err(Failure::Unreachable)?;
            let stream = TlsConnector::from(tls).connect(name, stream).await.map_err(Failure::Unreachable)?;
            exchange(stream, request).await?
        }
        (true, None) => return Err(Failure::NoRoots),
    };
    content(&answer)
}

/// Without TLS: to this machine only, whatever its name resolves to.
async fn connect_here(url: &ReviewerUrl) -> Result<TcpStream, Failure> {
    let found = tokio::net::lookup_host((url.host.as_str(), url.port)).await.map_err(Failure::Unreachable)?;
    let here: Vec<_> = found.filter(|address| address.ip().is_loopback()).collect();
    if here.is_empty() {
        return Err(Failure::Address);
    }
    TcpStream::connect(here.as_slice()).await.map_err(Failure::Unreachable)
}

fn request(url: &ReviewerUrl, key: Option<&str>, body: String) -> Result<Request<Full<Bytes>>, Failure> {
    let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let mut request = Request::post(format!("{}/chat/completions", url.path))
        .header(HOST, format!("{host}:{}", url.port))
        .header(USER_AGENT, concat!("farrun-gateway/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(Full::from(body))
        .map_err(|_| Failure::Address)?;
    if let Some(key) = key {
        let mut bearer = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| Failure::Key)?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
    }
    Ok(request)
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Bytes, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(Failure::Broken)?;
    let answered = async {
        let response = sender.send_request(request).await.map_err(Failure::Broken)?;
        if response.status() != StatusCode::OK {
            return Err(Failure::Status(response.status().as_u16()));
        }
        let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| {
            match error.downcast::<hyper::Error>() {
                Ok(error) => Failure::Broken(*error),
                Err(other) if other.is::<LengthLimitError>() => Failure::TooLong,
                Err(_) => Failure::NoCompletion,
            }
        })
    };
    // The connection may be over before its last bytes are read; what goes wrong on it, the exchange sees too.
    let driven = async {
        let _ = connection.await;
        std::future::pending::<Result<Bytes, Failure>>().await
    };
    tokio::select! {
        answer = answered => answer,
        never = driven => never,
    }
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    finish_reason: String,
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: String,
    #[serde(default)]
    refusal: Option<IgnoredAny>,
    #[serde(default)]
    tool_calls: Option<Vec<IgnoredAny>>,
}

/// The one text of an answer that came to its end. Members that we do not know are common here; those that we know are
/// there once.
fn content(answer: &[u8]) -> Result<String, Failure> {
    let completion: Completion = serde_json::from_slice(answer).map_err(|_| Failure::NoCompletion)?;
    let [choice] = <[Choice; 1]>::try_from(completion.choices).map_err(|_| Failure::NoCompletion)?;
    let speaks = choice.message.refusal.is_none() && choice.message.tool_calls.is_none_or(|c| c.is_empty());
    match choice.finish_reason.as_str() {
        "stop" if speaks => Ok(choice.message.content),
        "length" => Err(Failure::CutOff),
        _ => Err(Failure::NoCompletion),
    }
}

#[cfg(test)]
mod tests;
