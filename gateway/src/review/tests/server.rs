//! An endpoint on loopback that answers each connection as a test wants.

use std::sync::Arc;

use config::ReviewerUrl;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What is written for a request, and whether the connection then stays open.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hangs: bool,
}

/// It ends with this value.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) url: ReviewerUrl,
    /// The requests, whole.
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves; with TLS where there is an acceptor.
pub(crate) async fn serve<F>(tls: Option<TlsAcceptor>, reply: F) -> Server
where
    F: Fn(&str) -> Reply + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = ReviewerUrl::parse(&format!("{scheme}://127.0.0.1:{port}/v1/")).unwrap();
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let (requests, reply) = (Arc::clone(&seen), Arc::new(reply));
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (tls, requests, reply) = (tls.clone(), Arc::clone(&requests), Arc::clone(&reply));
            tokio::spawn(async move {
                match tls {
                    None => answer(stream, &requests, &*reply).await,
                    // A client that does not trust us is gone.
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answer(stream, &requests, &*reply).await;
                        }
                    }
                }
            });
        }
    });
    Server { url, seen, task }
}

/// Serves the same to everybody.
pub(crate) async fn always(reply: Reply) -> Server {
    serve(None, move |_| reply.clone()).await
}

async fn answer<S>(mut stream: S, seen: &Mutex<Vec<String>>, reply: &(dyn Fn(&str) -> Reply + Send + Sync))
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !is_whole(&request) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => request.extend_from_slice(&buffer[..count]),
        }
    }
    let request = String::from_utf8(request).unwrap();
    seen.lock().push(request.clone());
    let reply = reply(&request);
    // Who does not wait for all of it is gone.
    let _ = stream.write_all(&reply.bytes).await;
    let _ = stream.flush().await;
    if reply.hangs {
        // Until the client goes.
        let _ = stream.read(&mut buffer).await;
    }
    let _ = stream.shutdown().await;
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

/// A whole HTTP answer.
pub(crate) fn http(status: &str, body: &str) -> Reply {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    Reply { bytes: format!("{head}{body}").into_bytes(), hangs: false }
}

/// A chat completion with this text.
pub(crate) fn completion(content: &str) -> String {
    serde_json::json!({
        "id": "x", "object": "chat.completion", "usage": { "total_tokens": 1 },
        "choices": [{
            "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": content, "refusal": null },
        }],
    })
    .to_string()
}

/// The text of a verdict.
pub(crate) fn verdict(decision: &str, risk: &str) -> String {
    format!(r#"{{"decision":"{decision}","risk":"{risk}","rationale":"because"}}"#)
}
