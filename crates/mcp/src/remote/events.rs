//! Reads server-sent events over HTTP. An event beyond the size limit is dropped, and the request that waits
//! for it gets an error.

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use rmcp::model::RequestId;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp_sse_stream::SseStream;

use crate::wire::message;
use crate::wire::oversized::{Envelope, MAX_MESSAGE_BYTES, answer};
use crate::wire::pending::Pending;

/// Parses the events of a body with the parser that rmcp uses. `posted` is the request whose response this is.
pub(super) fn events(
    body: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    pending: Pending,
    posted: Option<RequestId>,
) -> BoxedSseResponse {
    let mut limiter = Limiter::default();
    let body: BoxStream<'static, reqwest::Result<Bytes>> =
        body.map_ok(move |piece| limiter.pass(&piece)).boxed();
    SseStream::from_bytes_stream(body)
        .map_ok(move |mut event| {
            if let Some(data) = event.data.take_if(|data| !is_cut(data)) {
                event.data = Some(message::rewritten(data, &pending, posted.as_ref()));
            }
            event
        })
        .boxed()
}

/// The last line of an event that was cut off. Such an event is not rewritten into an error: one follows it.
const CUT: &str = "sepal/cut";

fn is_cut(data: &str) -> bool {
    data.rsplit('\n').next() == Some(CUT)
}

/// Passes events through as they arrive. An event that is too long is cut off at the limit, so that it cannot
/// be parsed, and ends with [`CUT`]; an event with an error follows in its place.
#[derive(Default)]
struct Limiter {
    /// The bytes of the event's complete lines.
    bytes: usize,
    /// The bytes of the current line.
    line: usize,
    /// The first bytes of the line.
    name: [u8; NAME.len()],
    was_return: bool,
    /// The message in the event's data.
    message: Envelope,
    state: State,
}

#[derive(Default, PartialEq)]
enum State {
    #[default]
    Fits,
    TooLong,
    /// The waiting request was told.
    Told,
}

/// The prefix of lines with data.
const NAME: &[u8; 5] = b"data:";

impl Limiter {
    fn pass(&mut self, piece: &[u8]) -> Bytes {
        let mut passed = Vec::with_capacity(piece.len());
        for byte in piece {
            self.step(*byte, &mut passed);
        }
        passed.into()
    }

    fn step(&mut self, byte: u8, passed: &mut Vec<u8>) {
        let is_second = std::mem::replace(&mut self.was_return, byte == b'\r') && byte == b'\n';
        let is_end = matches!(byte, b'\r' | b'\n');
        if is_end && self.line == 0 && !is_second {
            self.end(passed);
            passed.push(byte);
            return;
        }
        if is_end {
            // Comments are not stored, so they do not count.
            if self.name.first() != Some(&b':') {
                self.bytes += self.line;
            }
            self.line = 0;
            self.name = [0; NAME.len()];
        } else {
            if let Some(place) = self.name.get_mut(self.line) {
                *place = byte;
            } else if self.name == *NAME && (byte, self.line) != (b' ', NAME.len()) {
                self.message.read(&[byte]);
            }
            self.line += 1;
        }
        // Cuts only between characters.
        let is_inside = byte & 0xC0 == 0x80;
        if self.state == State::Fits && self.bytes + self.line > MAX_MESSAGE_BYTES && !is_inside {
            self.state = State::TooLong;
            passed.extend_from_slice(format!("\ndata: {CUT}\n\n").as_bytes());
        }
        match self.state {
            State::Fits => passed.push(byte),
            State::TooLong => {
                if let Some(message) = self.message.given_up() {
                    self.state = State::Told;
                    tell(&message, passed);
                }
            }
            State::Told => {}
        }
    }

    /// Ends the current event.
    fn end(&mut self, passed: &mut Vec<u8>) {
        let ended = std::mem::take(self);
        self.was_return = ended.was_return;
        if ended.state == State::TooLong {
            tracing::error!(
                most = MAX_MESSAGE_BYTES,
                "An event of a server is too long and is dropped"
            );
            if let Some(id) = ended.message.answers() {
                tell(&answer(id.clone(), ended.message.size()), passed);
            }
        }
    }
}

fn tell(message: &impl serde::Serialize, passed: &mut Vec<u8>) {
    if let Ok(message) = serde_json::to_string(message) {
        passed.extend_from_slice(format!("data: {message}\n\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures::{StreamExt as _, stream};
    use proptest::prelude::*;
    use rmcp_sse_stream::{Sse, SseStream};

    use super::{Limiter, MAX_MESSAGE_BYTES, is_cut};

    /// Parses a body that arrives in pieces of `size` bytes.
    async fn events(body: &str, size: usize) -> Vec<Sse> {
        let mut limiter = Limiter::default();
        let pieces: Vec<Bytes> = body
            .as_bytes()
            .chunks(size)
            .map(|it| limiter.pass(it))
            .collect();
        let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
        SseStream::from_bytes_stream(pieces)
            .map(|event| event.unwrap())
            .collect()
            .await
    }

    #[tokio::test]
    async fn what_fits_passes_as_it_is() {
        let body = ": hello\n\nid: 1\r\nevent: message\r\ndata: {\"a\":\r\ndata:1}\r\n\r\nretry: 5\r\rdata: äß\n\n";
        let whole = events(body, body.len()).await;
        assert_eq!(whole, events(body, 1).await);
        let data: Vec<&str> = whole.iter().filter_map(|it| it.data.as_deref()).collect();
        assert_eq!(data, ["{\"a\":\n1}", "äß"]);
        let long = format!("data: {}\n\n", "x".repeat(MAX_MESSAGE_BYTES - 6));
        assert_eq!(events(&long, 4_096).await.len(), 1);
    }

    #[tokio::test]
    async fn what_is_too_long_is_replaced_by_the_word_that_it_is() {
        for text in ["x", "ä", "🔑"] {
            let text = text.repeat(MAX_MESSAGE_BYTES / text.len());
            let long = format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{text}"}}"#);
            let body = format!("id: 1\nevent: message\ndata: {long}\n\ndata: next\n\n");
            for size in [body.len(), 65_537] {
                let events = events(&body, size).await;
                let data: Vec<&str> = events.iter().filter_map(|it| it.data.as_deref()).collect();
                let [cut, told, next] = data.as_slice() else {
                    panic!("{} events", data.len());
                };
                assert!(serde_json::from_str::<serde_json::Value>(cut).is_err());
                assert_eq!([*cut, *told, *next].map(is_cut), [true, false, false]);
                let told: serde_json::Value = serde_json::from_str(told).unwrap();
                assert_eq!(told["id"], 7);
                let counted = told["error"]["data"]["bytes"].as_u64().unwrap();
                assert_eq!(counted, long.len() as u64);
                assert_eq!(*next, "next");
            }
        }
    }

    #[tokio::test]
    async fn many_remarks_are_no_long_event() {
        let remarks = ": still here\n".repeat(MAX_MESSAGE_BYTES / 10);
        let body = format!("{remarks}data: here\n\n");
        let events = events(&body, 65_537).await;
        assert!(events.iter().any(|it| it.data.as_deref() == Some("here")));
    }

    proptest! {
        #[test]
        fn nothing_is_changed_that_fits(body in "(data:|data: |id:|:|\\n|\\r|x|ä){0,40}", size in 1_usize..9) {
            let mut limiter = Limiter::default();
            let pieces = body.as_bytes().chunks(size);
            let passed: Vec<u8> = pieces.flat_map(|it| limiter.pass(it).to_vec()).collect();
            prop_assert_eq!(passed, body.as_bytes());
        }
    }
}
