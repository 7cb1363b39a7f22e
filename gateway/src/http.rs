//! One HTTP request on a connection of its own.
//!
//! No redirects, no proxies, no cookies, no second try: what is not an answer is a failure.

use std::sync::Arc;

use bytes::Bytes;
use config::ReviewerUrl;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, StatusCode, http::request};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longest head of an answer, in bytes.
pub(crate) const HEAD_MAX: usize = 64 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// No certificate of the system can be used.
    #[error("the system has no certificates to check the server's with")]
    NoRoots,
    /// It is no address that requests go to.
    #[error("the address cannot be used")]
    Address,
    /// No connection, or a certificate that is not trusted.
    #[error("it cannot be reached: {0}")]
    Unreachable(std::io::Error),
    /// What came is no HTTP, or ended too early.
    #[error("the exchange broke off: {0}")]
    Broken(hyper::Error),
    /// Not a status that the caller takes.
    #[error("it answered with HTTP status {0}")]
    Status(u16),
    /// The body is longer than the caller takes.
    #[error("its answer is too long")]
    TooLong,
}

/// What answers over TLS must show: a certificate that the system trusts.
///
/// Read for each request: that is quick beside what it is for, and the system's own updates count at once.
pub(crate) async fn system_tls() -> Result<Arc<ClientConfig>, HttpError> {
    let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs);
    let loaded = loaded.await.map_err(|_| HttpError::NoRoots)?;
    let mut roots = RootCertStore::empty();
    // Those that cannot be read, or that this library does not take, vouch for nobody.
    let (taken, _) = roots.add_parsable_certificates(loaded.certs);
    if taken == 0 {
        return Err(HttpError::NoRoots);
    }
    tls(roots)
}

/// TLS with these roots.
pub(crate) fn tls(roots: RootCertStore) -> Result<Arc<ClientConfig>, HttpError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|_| HttpError::NoRoots)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The head of a POST of JSON to a path of an address.
pub(crate) fn post(url: &ReviewerUrl, path: &str) -> request::Builder {
    let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    Request::post(path)
        .header(HOST, format!("{host}:{}", url.port))
        .header(USER_AGENT, concat!("farrun-gateway/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/json")
}

/// What a caller takes for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Statuses.
    pub(crate) status: fn(StatusCode) -> bool,
    /// Longest body, in bytes.
    pub(crate) body_max: usize,
}

/// Sends a request and yields the body of the answer. `tls` is there where the address asks for it. The caller limits
/// the time: dropping this ends everything.
///
/// # Errors
/// There is no such answer.
pub(crate) async fn send(
    url: &ReviewerUrl,
    tls: Option<Arc<ClientConfig>>,
    request: Request<Full<Bytes>>,
    expected: Expected,
) -> Result<Bytes, HttpError> {
    match (url.tls, tls) {
        (false, _) => exchange(connect_here(url).await?, request, expected).await,
        (true, Some(tls)) => {
            let name = ServerName::try_from(url.host.clone()).map_err(|_| HttpError::Address)?;
            let stream =
                TcpStream::connect((url.host.as_str(), url.port)).await.map_err(HttpError::Unreachable)?;
            let connected = TlsConnector::from(tls).connect(name, stream).await;
            exchange(connected.map_err(HttpError::Unreachable)?, request, expected).await
        }
        (true, None) => Err(HttpError::NoRoots),
    }
}

/// Without TLS: to this machine only, whatever its name resolves to.
async fn connect_here(url: &ReviewerUrl) -> Result<TcpStream, HttpError> {
    let found =
        tokio::net::lookup_host((url.host.as_str(), url.port)).await.map_err(HttpError::Unreachable)?;
    let here: Vec<_> = found.filter(|address| address.ip().is_loopback()).collect();
    if here.is_empty() {
        return Err(HttpError::Address);
    }
    TcpStream::connect(here.as_slice()).await.map_err(HttpError::Unreachable)
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>, expected: Expected) -> Result<Bytes, HttpError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_MAX);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(HttpError::Broken)?;
    let answered = async {
        let response = sender.send_request(request).await.map_err(HttpError::Broken)?;
        if !(expected.status)(response.status()) {
            return Err(HttpError::Status(response.status().as_u16()));
        }
        let body = Limited::new(response.into_body(), expected.body_max).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| {
            match error.downcast::<hyper::Error>() {
                Ok(error) => HttpError::Broken(*error),
                // The only other one that a bound makes.
                Err(_) => HttpError::TooLong,
            }
        })
    };
    // The connection may be over before its last bytes are read; what goes wrong on it, the exchange sees too.
    let driven = async {
        let _ = connection.await;
        std::future::pending::<Result<Bytes, HttpError>>().await
    };
    tokio::select! {
        answer = answered => answer,
        never = driven => never,
    }
}
