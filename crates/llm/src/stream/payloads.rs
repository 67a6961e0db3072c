//! Extracts the payloads of an event stream, or the plain document that some servers send instead.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use reqwest::Response;
use serde_json::{Value, json};
use sse_stream::SseByteStream;

use super::idle_timeout::IdleTimeout;
use crate::Error;
use crate::transport::{MAX_EVENT_BYTES, SILENCE, cut, not_text, page, too_large};
use crate::wire_log::{self, SentKeys};

/// The bytes of a byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The payloads of a response: the data of its events, or the whole document if the server answers with plain
/// JSON instead of a stream.
pub(crate) fn payloads(
    provider: &str,
    response: Response,
) -> impl Stream<Item = Result<String, Error>> + Send + use<> {
    let keys = SentKeys::of_response(&response);
    let bytes = response.bytes_stream().map_err(reqwest::Error::without_url);
    let bytes = IdleTimeout::new(bytes, SILENCE);
    payloads_of(Arc::from(provider), keys, bytes)
}

/// Those of bytes of a provider, whose log hides some keys.
pub(crate) fn payloads_of<S, E>(
    provider: Arc<str>,
    keys: SentKeys,
    bytes: S,
) -> impl Stream<Item = Result<String, Error>> + Send
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    Payloads {
        provider,
        keys,
        reading: Reading::Head(Vec::new(), Some(Box::pin(bytes))),
    }
}

/// One stream instead of a chain of adapters, each of which would run several times per token.
struct Payloads<S, E>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    provider: Arc<str>,
    keys: SentKeys,
    reading: Reading<S, E>,
}

enum Reading<S, E>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    /// The kind of body is still unknown; holds the chunks so far and the rest.
    Head(Vec<Bytes>, Option<Pin<Box<S>>>),
    Events(Box<SseByteStream<Counted<S, E>>>, Arc<AtomicUsize>),
    Document(BoxFuture<'static, Result<String, Error>>),
    Over,
}

impl<S, E> Stream for Payloads<S, E>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    type Item = Result<String, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self {
            provider,
            keys,
            reading,
        } = &mut *self;
        let (payload, is_last) = loop {
            match reading {
                Reading::Head(head, bytes) => match ready!(poll_head(provider, head, bytes, cx)) {
                    Ok(next) => *reading = next,
                    Err(error) => break (Some(Err(error)), true),
                },
                Reading::Events(events, held) => {
                    let event = ready!(events.poll_next_unpin(cx));
                    held.store(0, Ordering::Relaxed);
                    match event.map(|event| payload::<E>(provider, event)) {
                        Some(None) => {}
                        Some(payload) => break (payload, false),
                        None => break (None, true),
                    }
                }
                Reading::Document(document) => break (Some(ready!(document.poll_unpin(cx))), true),
                Reading::Over => return Poll::Ready(None),
            }
        };
        if is_last {
            *reading = Reading::Over;
        }
        if let Some(Ok(text)) = &payload {
            wire_log::payload(provider, text, keys);
        }
        Poll::Ready(payload)
    }
}

/// Reads until the first character distinguishes an event stream, a JSON document and an HTML page.
fn poll_head<S, E>(
    provider: &Arc<str>,
    came: &mut Vec<Bytes>,
    bytes: &mut Option<Pin<Box<S>>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Reading<S, E>, Error>>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let begins = loop {
        let Some(rest) = bytes else {
            return Poll::Ready(Ok(Reading::Over));
        };
        let Some(chunk) = ready!(rest.poll_next_unpin(cx)) else {
            break None;
        };
        let chunk = chunk.map_err(|error| cut(provider, error))?;
        let is_mark = |byte: &u8| MARK.contains(byte);
        let mut all = chunk.iter();
        let begins = all.position(|byte| !byte.is_ascii_whitespace() && !is_mark(byte));
        let before = chunk
            .get(..begins.unwrap_or(chunk.len()))
            .unwrap_or_default();
        // A byte order mark is no part of the first event.
        if before.iter().any(is_mark) {
            let kept: Vec<u8> = before
                .iter()
                .copied()
                .filter(|byte| !is_mark(byte))
                .collect();
            came.push(kept.into());
            came.push(chunk.slice(before.len()..));
        } else {
            came.push(chunk.clone());
        }
        if let Some(begins) = begins {
            break chunk.get(begins).copied();
        }
        if came.iter().map(Bytes::len).sum::<usize>() > MAX_EVENT_BYTES {
            return Poll::Ready(Err(too_large(provider)));
        }
    };
    let (head, Some(bytes)) = (std::mem::take(came), bytes.take()) else {
        return Poll::Ready(Ok(Reading::Over));
    };
    Poll::Ready(match begins {
        Some(b'{' | b'[') => {
            let whole = stream::iter(head.into_iter().map(Ok)).chain(bytes);
            Ok(Reading::Document(
                document(Arc::clone(provider), whole).boxed(),
            ))
        }
        Some(b'<') => Err(page(provider)),
        Some(_) | None => {
            let count = Arc::new(AtomicUsize::new(0));
            let counted = Counted {
                head: head.into(),
                bytes,
                held: Arc::clone(&count),
                is_over: false,
                errors: PhantomData,
            };
            Ok(Reading::Events(
                Box::new(SseByteStream::new(counted)),
                count,
            ))
        }
    })
}

async fn document<S, E>(provider: Arc<str>, bytes: S) -> Result<String, Error>
where
    S: Stream<Item = Result<Bytes, E>> + Send,
    E: std::error::Error + Send + Sync + 'static,
{
    let mut whole = Vec::new();
    let mut bytes = std::pin::pin!(bytes);
    while let Some(chunk) = bytes.try_next().await.map_err(|e| cut(&provider, e))? {
        whole.extend_from_slice(&chunk);
        if whole.len() > MAX_EVENT_BYTES {
            return Err(too_large(&provider));
        }
    }
    String::from_utf8(whole).map_err(|_| not_text(&provider))
}

/// The data of an event; `None` if it is empty.
fn payload<E: std::error::Error + Send + Sync + 'static>(
    provider: &str,
    event: Result<sse_stream::Sse, sse_stream::Error>,
) -> Option<Result<String, Error>> {
    match event {
        Ok(event) => {
            let data = event.data.filter(|data| !data.is_empty())?;
            let is_error = event.event.is_some_and(|kind| kind.trim() == "error");
            Some(Ok(if is_error { as_error(data) } else { data }))
        }
        Err(sse_stream::Error::Body(error)) => Some(Err(match error.downcast::<Broken<E>>() {
            Ok(broken) => match *broken {
                Broken::Cut(error) => cut(provider, error),
                Broken::TooLarge => too_large(provider),
            },
            Err(error) => Error::Cut {
                provider: provider.to_owned(),
                source: Some(error),
            },
        })),
        Err(_) => Some(Err(not_text(provider))),
    }
}

/// Marks the data of an event `error` as one, if they do not say so themselves: some servers send only
/// `{code, message}`, or a text.
fn as_error(data: String) -> String {
    let said: Value = serde_json::from_str(&data).unwrap_or_else(|_| json!({ "message": data }));
    let is_marked = said.get("error").is_some() || said.get("type") == Some(&json!("error"));
    if is_marked {
        return data;
    }
    let error = match said {
        Value::String(text) => json!({ "message": text }),
        said @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => said,
    };
    json!({ "type": "error", "error": error }).to_string()
}

#[derive(Debug, thiserror::Error)]
enum Broken<E: std::error::Error + 'static> {
    #[error(transparent)]
    Cut(E),
    #[error("an event is larger than {MAX_EVENT_BYTES} bytes")]
    TooLarge,
}

/// The bytes of an event stream. The decoder has no limit, so the bytes since its last event are counted.
struct Counted<S, E> {
    /// The chunks that were read to detect the kind of body.
    head: VecDeque<Bytes>,
    bytes: Pin<Box<S>>,
    held: Arc<AtomicUsize>,
    is_over: bool,
    errors: PhantomData<fn() -> E>,
}

impl<S, E> Stream for Counted<S, E>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error + Send + Sync + 'static,
{
    type Item = Result<Bytes, Broken<E>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let chunk = match self.head.pop_front() {
            Some(chunk) => chunk,
            None => match ready!(self.bytes.as_mut().poll_next(cx)) {
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(Broken::Cut(error))));
                }
                None => {
                    // Some servers omit the empty line after the last event; without it the decoder drops the
                    // event.
                    self.is_over = true;
                    return Poll::Ready(Some(Ok(Bytes::from_static(b"\n\n"))));
                }
            },
        };
        let before = self.held.fetch_add(chunk.len(), Ordering::Relaxed);
        if before.saturating_add(chunk.len()) > MAX_EVENT_BYTES {
            self.is_over = true;
            return Poll::Ready(Some(Err(Broken::TooLarge)));
        }
        Poll::Ready(Some(Ok(chunk)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use bytes::Bytes;
    use futures::executor::block_on;
    use futures::stream::{self, StreamExt};

    use super::{MAX_EVENT_BYTES, SentKeys, payloads_of};
    use crate::Error;

    fn decode(chunks: Vec<Vec<u8>>) -> Vec<Result<String, Error>> {
        let chunks = chunks
            .into_iter()
            .map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk)));
        block_on(payloads_of(Arc::from("p"), SentKeys::default(), stream::iter(chunks)).collect())
    }

    fn check(text: &str, expected: &[&str]) {
        let texts =
            |chunks| -> Vec<String> { decode(chunks).into_iter().map(Result::unwrap).collect() };
        assert_eq!(texts(vec![text.as_bytes().to_vec()]), expected, "whole");
        let bytes = text.bytes().map(|byte| vec![byte]).collect();
        assert_eq!(texts(bytes), expected, "byte by byte");
        for at in 0..text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            assert_eq!(
                texts(vec![head.to_vec(), tail.to_vec()]),
                expected,
                "at {at}"
            );
        }
    }

    #[test]
    fn events_are_read_however_they_are_split() {
        check("data: a\n\ndata:b\n\n", &["a", "b"]);
        check("data: ä€😀\r\n\r\ndata: b\r\n\r\n", &["ä€😀", "b"]);
        check(
            ": ping\n\nevent: x\nid: 7\nfoo: bar\ndata: a\n\n: ping\n\n",
            &["a"],
        );
        check("data: {\"a\":\ndata: 1}\n\n", &["{\"a\":\n1}"]);
        check("event: ping\n\nretry: 5\n\ndata:\n\ndata: a\n\n", &["a"]);
        check(
            "\n\n\ndata: last, without its empty line",
            &["last, without its empty line"],
        );
        check("", &[]);
    }

    #[test]
    fn a_plain_document_is_one_payload() {
        check("\n {\"a\":\n\n1}\n", &["\n {\"a\":\n\n1}\n"]);
        check("\u{feff}{\"a\":1}", &["{\"a\":1}"]);
        check("\n\u{feff}data: a\n\n", &["a"]);
    }

    #[test]
    fn an_event_that_is_an_error_says_so() {
        let error = |data: &str| format!("event: error\ndata: {data}\n\n");
        check(
            &error(r#"{"code":"InvalidParameter","message":"no"}"#),
            &[r#"{"error":{"code":"InvalidParameter","message":"no"},"type":"error"}"#],
        );
        for words in ["quota is used up", r#""quota is used up""#] {
            let expected = r#"{"error":{"message":"quota is used up"},"type":"error"}"#;
            check(&error(words), &[expected]);
        }
        for marked in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"type":"error","message":"no"}"#,
        ] {
            check(&error(marked), &[marked]);
        }
    }

    #[test]
    fn what_is_too_large_or_no_text_ends_the_stream() {
        let endless = vec![vec![b'x'; MAX_EVENT_BYTES / 4]; 5];
        for head in [&b"data: "[..], b"foo", b"{"] {
            let mut chunks = vec![head.to_vec()];
            chunks.extend(endless.clone());
            let got = decode(chunks);
            assert!(
                matches!(got.as_slice(), [Err(Error::BadAnswer { .. })]),
                "{head:?}"
            );
        }
        let got = decode(vec![b"data: \xff\n\n".to_vec(), b"data: a\n\n".to_vec()]);
        assert!(matches!(got.as_slice(), [Err(Error::BadAnswer { .. })]));
    }

    #[test]
    fn many_small_events_are_no_large_one() {
        let event = b"data: 0123456789\n\n".repeat(1_000);
        let chunks = vec![event; MAX_EVENT_BYTES / 18_000 + 2];
        let events = chunks.len() * 1_000;
        let got = decode(chunks);
        assert!(got.iter().all(Result::is_ok));
        assert_eq!(got.len(), events);
    }
}
