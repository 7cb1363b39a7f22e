//! Against a real listener.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls_pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

use super::super::tests::server::{Reply, always, completion, http, serve};
use super::*;
use crate::http::{HEAD_MAX, tls};

async fn ask(url: &ReviewerUrl, tls: Option<Arc<ClientConfig>>) -> Result<String, String> {
    let asked = complete(url, tls, Some("sk-1"), r#"{"model":"m"}"#.to_owned()).await;
    asked.map_err(|failure| failure.to_string())
}

#[test]
fn completions() {
    let choice = |finish: &str, message: &str| {
        format!(r#"{{"choices":[{{"finish_reason":{finish},"message":{message}}}]}}"#)
    };
    let said = r#"{"content":"x"}"#;
    let table = [
        (choice("\"stop\"", said), Some("x")),
        (
            choice("\"stop\"", r#"{"role":"assistant","content":"x","refusal":null,"tool_calls":[]}"#),
            Some("x"),
        ),
        (choice("\"length\"", said), None),
        (choice("\"content_filter\"", said), None),
        (choice("null", said), None),
        (choice("\"stop\"", r#"{"content":null}"#), None),
        (choice("\"stop\"", "{}"), None),
        (choice("\"stop\"", r#"{"content":"x","refusal":"no"}"#), None),
        (choice("\"stop\"", r#"{"content":"x","tool_calls":[{}]}"#), None),
        (choice("\"stop\"", r#"{"content":"x","content":"y"}"#), None),
        (format!(r#"{{"choices":[],"choices":[{{"finish_reason":"stop","message":{said}}}]}}"#), None),
        (r#"{"choices":[]}"#.to_owned(), None),
        (
            format!(r#"{{"choices":[{0},{0}]}}"#, format!(r#"{{"finish_reason":"stop","message":{said}}}"#)),
            None,
        ),
        (choice("\"stop\"", said) + "x", None),
        (r#"{"error":{"message":"no"}}"#.to_owned(), None),
        (String::new(), None),
    ];
    for (answer, want) in table {
        assert_eq!(content(answer.as_bytes()).ok().as_deref(), want, "{answer}");
    }
    assert!(matches!(content(choice("\"length\"", said).as_bytes()), Err(Failure::CutOff)));
}

#[tokio::test]
async fn one_request_with_the_key() {
    let server = always(http("200 OK", &completion("verdict"))).await;
    assert_eq!(ask(&server.url, None).await, Ok("verdict".to_owned()));
    let seen = server.seen.lock().clone();
    let [request] = seen.as_slice() else { panic!("{seen:?}") };
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    for line in ["authorization: Bearer sk-1", "content-type: application/json"] {
        assert!(head.lines().any(|found| found == line), "{line}: {head}");
    }
    assert_eq!(body, r#"{"model":"m"}"#);
    let key = complete(&server.url, None, Some("a\nb"), String::new()).await;
    assert!(matches!(key, Err(Failure::Key)));
}

#[tokio::test]
async fn what_is_no_answer() {
    let whole = http("200 OK", &completion("x"));
    let raw = |text: &str| Reply { bytes: text.as_bytes().to_vec(), hangs: false };
    let elsewhere = always(whole.clone()).await;
    let location = format!("http://127.0.0.1:{}/v1/chat/completions", elsewhere.url.port);
    let cut = Reply { bytes: whole.bytes[..whole.bytes.len() - 2].to_vec(), hangs: false };
    let chunk = raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"cho");
    let broken = "the exchange with the reviewer broke off";
    let long = "the reviewer's answer is longer than 65536 bytes";
    let table = [
        (http("500 Internal Server Error", "{}"), "the reviewer answered with HTTP status 500"),
        (http("401 Unauthorized", "sk-1"), "the reviewer answered with HTTP status 401"),
        (http("204 No Content", ""), "the reviewer answered with HTTP status 204"),
        (
            raw(&format!("HTTP/1.1 307 Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")),
            "the reviewer answered with HTTP status 307",
        ),
        (cut, broken),
        (chunk, broken),
        (raw(""), broken),
        (raw("SSH-2.0-x\r\n"), broken),
        (raw(&format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(HEAD_MAX))), broken),
        (http("200 OK", &completion(&"x".repeat(ANSWER_MAX))), long),
        (raw(&format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(ANSWER_MAX + 1))), long),
        (http("200 OK", "hello"), "the reviewer's answer is no chat completion"),
    ];
    for (reply, want) in table {
        let server = always(reply).await;
        let found = ask(&server.url, None).await.unwrap_err();
        assert!(found.starts_with(want), "{want}: {found}");
    }
    assert_eq!(*elsewhere.seen.lock(), Vec::<String>::new(), "the redirect was followed");
}

#[tokio::test]
async fn tls_is_checked() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    let trusted = tls(roots).unwrap();
    let acceptor = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            );
        TlsAcceptor::from(Arc::new(config.unwrap()))
    };
    let reply = |_: &str| http("200 OK", &completion("verdict"));
    let right = serve(Some(acceptor("127.0.0.1")), reply).await;
    let wrong = serve(Some(acceptor("models.example")), reply).await;
    assert_eq!(ask(&right.url, Some(Arc::clone(&trusted))).await, Ok("verdict".to_owned()));
    let unreachable = "the reviewer cannot be reached";
    let found = ask(&wrong.url, Some(Arc::clone(&trusted))).await.unwrap_err();
    assert!(found.starts_with(unreachable), "{found}");
    let strangers = tls(RootCertStore::empty()).unwrap();
    let found = ask(&right.url, Some(strangers)).await.unwrap_err();
    assert!(found.starts_with(unreachable), "{found}");
    assert!(ask(&right.url, None).await.is_err(), "no TLS where it is asked for");
    assert_eq!(right.seen.lock().len(), 1, "a request went out before the check");
}

#[tokio::test]
async fn without_tls_only_to_this_machine() {
    // The configuration refuses it before.
    let far = ReviewerUrl { tls: false, host: "192.0.2.1".to_owned(), port: 80, path: String::new() };
    assert!(matches!(complete(&far, None, None, String::new()).await, Err(Failure::Address)));
    let server = always(http("200 OK", &completion("x"))).await;
    let by_name = ReviewerUrl { host: "localhost".to_owned(), ..server.url.clone() };
    assert_eq!(ask(&by_name, None).await, Ok("x".to_owned()));
}
