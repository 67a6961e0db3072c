//! The transport of all HTTP providers: sends requests, reads errors, and limits sizes and times.

pub(super) mod endpoint;
pub(crate) mod retry;
pub(super) mod verdict;

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response, StatusCode};

use super::Error;
use super::key_mask::without_key;
use super::wire_log::{self, SentKeys};
use sepal_net as net;

/// The most bytes of one event of a stream, and of a body that is not a stream.
pub(super) const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;
/// The longest silence of a provider: a reasoning model may think for minutes before its first word.
pub(super) const SILENCE: Duration = Duration::from_mins(5);
/// The most bytes of an error response that are read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// The most characters of a provider's error message that are passed on.
const MAX_SAID_CHARACTERS: usize = 500;
/// A response with an error status.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: String,
}

/// Sends a request and waits for the response head.
pub(super) async fn send(
    provider: &str,
    request: RequestBuilder,
) -> Result<Result<Response, Refused>, Error> {
    let keys = wire_log::request(provider, &request);
    let mut response = tokio::time::timeout(SILENCE, request.send())
        .await
        .map_err(|_| silent(provider))?
        .map_err(|error| unreachable_by(provider, error))?;
    wire_log::head(provider, &response);
    if response.status().is_success() {
        response.extensions_mut().insert(keys);
        return Ok(Ok(response));
    }
    let status = response.status();
    let retry_after = retry_after(response.headers(), Timestamp::now());
    // A body that does not arrive in time is treated as empty: the status is error enough.
    let body = tokio::time::timeout(SILENCE, read_at_most(response, MAX_REFUSAL_BYTES)).await;
    let body = body.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    wire_log::refusal(provider, status, &body, &keys);
    Ok(Err(Refused {
        status,
        retry_after,
        body,
    }))
}

/// Reads a complete response that is not a stream.
pub(super) async fn read_whole(provider: &str, response: Response) -> Result<Vec<u8>, Error> {
    let keys = SentKeys::of_response(&response);
    let whole = tokio::time::timeout(SILENCE, read_to_end(provider, response)).await;
    let whole = whole.unwrap_or_else(|_| Err(silent(provider)))?;
    wire_log::payload(provider, &String::from_utf8_lossy(&whole), &keys);
    Ok(whole)
}

async fn read_to_end(provider: &str, mut response: Response) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| cut(provider, error.without_url()))?
    {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_EVENT_BYTES {
            return Err(too_large(provider));
        }
    }
    Ok(body)
}

/// A provider's message on one line, truncated, with our key replaced.
pub(super) fn quote(text: &str, key: Option<&str>) -> String {
    let text = key.map_or_else(|| text.to_owned(), |key| without_key(text, key));
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = words.char_indices().nth(MAX_SAID_CHARACTERS) {
        words.truncate(at);
        words.push('…');
    }
    words
}

/// The pause that the provider asks for, in milliseconds, in seconds, or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let seconds = |text: &str, unit: f64| {
        let number: f64 = text.trim().parse().ok()?;
        Duration::try_from_secs_f64(number * unit).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|ms| seconds(ms, 0.001)) {
        return Some(wait);
    }
    let value = text("retry-after")?;
    seconds(value, 1.0).or_else(|| {
        let date = rfc2822::parse(value).ok()?.timestamp();
        Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
    })
}

async fn read_at_most(mut response: Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    // A read error ends the body early: the status is error enough.
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = limit - body.len();
        body.extend(chunk.iter().take(room));
        if body.len() >= limit {
            break;
        }
    }
    body
}

fn unreachable_by(provider: &str, error: reqwest::Error) -> Error {
    let provider = provider.to_owned();
    let kept_in = net::blocked(&error).map(ToString::to_string);
    let unsent = || "its address or key cannot be sent".to_owned();
    if let Some(problem) = kept_in.or_else(|| error.is_builder().then(unsent)) {
        return Error::Misconfigured { provider, problem };
    }
    let place = error.url().and_then(|url| {
        let host = url.host_str()?;
        Some(match url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })
    });
    let place = place.unwrap_or_else(|| "its address".to_owned());
    if error.is_timeout() {
        let said = format!("`{place}` does not answer in time");
        return Error::TimedOut { provider, said };
    }
    let said = if error.is_connect() {
        format!("no connection to `{place}`")
    } else {
        format!("`{place}` broke the connection")
    };
    Error::Unavailable {
        provider,
        said,
        retry_after: None,
        source: Some(error.without_url()),
    }
}

fn silent(provider: &str) -> Error {
    Error::TimedOut {
        provider: provider.to_owned(),
        said: "it does not answer in time".to_owned(),
    }
}

pub(super) fn cut(provider: &str, source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Cut {
        provider: provider.to_owned(),
        source: Some(Box::new(source)),
    }
}

pub(super) fn too_large(provider: &str) -> Error {
    Error::BadAnswer {
        provider: provider.to_owned(),
        problem: format!("an event or document of more than {MAX_EVENT_BYTES} bytes"),
    }
}

pub(super) fn page(provider: &str) -> Error {
    Error::BadAnswer {
        provider: provider.to_owned(),
        problem: "a web page; the base URL may be wrong".to_owned(),
    }
}

pub(super) fn not_text(provider: &str) -> Error {
    Error::BadAnswer {
        provider: provider.to_owned(),
        problem: "bytes that are no text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use reqwest::header::HeaderMap;

    use super::{quote, retry_after};

    #[test]
    fn when_to_ask_again_comes_in_three_spellings() {
        fn check(name: &'static str, value: &str, ms: Option<u64>) {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
            let expected = ms.map(Duration::from_millis);
            assert_eq!(retry_after(&headers, now), expected, "{name}: {value}");
        }
        check("retry-after", "7", Some(7_000));
        check("retry-after", "0.5", Some(500));
        check("retry-after-ms", "20", Some(20));
        check("retry-after", "Sat, 21 Nov 2026 10:00:30 GMT", Some(30_000));
        check("retry-after", "Sat, 21 Nov 2026 09:00:00 GMT", Some(0));
        check("retry-after", "-1", None);
        check("retry-after", "soon", None);
    }

    #[test]
    fn a_quote_is_short_and_holds_no_key() {
        assert_eq!(quote(" a\n b ", None), "a b");
        for (text, key, expected) in [
            ("bad key sk-1!", "sk-1", "bad key [key]!"),
            (
                "bad key sk-12, see sk-1",
                "sk-1",
                "bad key sk-12, see [key]",
            ),
            ("bad key xsk-123456x", "sk-123456", "bad key x[key]x"),
            ("a model must be named", "a", "a model must be named"),
            ("no model at x", "x", "no model at x"),
            ("it is not so", "no", "it is not so"),
            ("none of them, (none)", "none", "[key] of them, ([key])"),
            ("nonetheless", "none", "nonetheless"),
            ("密钥错误", "密钥", "密钥错误"),
        ] {
            assert_eq!(quote(text, Some(key)), expected, "{key}");
        }
        assert_eq!(quote(&"ä".repeat(600), Some("")).chars().count(), 501);
    }
}
