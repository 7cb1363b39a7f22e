//! A reviewer behind an endpoint for chat completions: one request, and what is not an answer is a failure; then a person
//! decides.

use std::sync::Arc;

use bytes::Bytes;
use config::ReviewerUrl;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use hyper::{Request, StatusCode};
use rustls::ClientConfig;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{ANSWER_MAX, Failure};
use crate::http::{self, Expected, HttpError};

/// Sends a request for a chat completion and yields the text of the answer. `tls` is there where the address asks for
/// it. The caller limits the time: dropping this ends everything.
pub(super) async fn complete(
    url: &ReviewerUrl,
    tls: Option<Arc<ClientConfig>>,
    key: Option<&str>,
    body: String,
) -> Result<String, Failure> {
    let request = request(url, key, body)?;
    let expected = Expected { status: |status| status == StatusCode::OK, body_max: ANSWER_MAX };
    content(&http::send(url, tls, request, expected).await?)
}

fn request(url: &ReviewerUrl, key: Option<&str>, body: String) -> Result<Request<Full<Bytes>>, Failure> {
    let mut request = http::post(url, &format!("{}/chat/completions", url.path))
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

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::NoRoots => Self::NoRoots,
            HttpError::Address => Self::Address,
            HttpError::Unreachable(error) => Self::Unreachable(error),
            HttpError::Broken(error) => Self::Broken(error),
            HttpError::Status(status) => Self::Status(status),
            HttpError::TooLong => Self::TooLong,
        }
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
