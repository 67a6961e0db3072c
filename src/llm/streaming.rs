//! Drives an assembler over the payloads of a stream: what ends it, what breaks it, what is drained.

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::stream::{self, BoxStream, StreamExt};

use super::{Error, ModelEvent, ModelStream};

/// How long the end of a body is waited for after the model has finished.
const DRAIN: Duration = Duration::from_millis(10);
/// Bytes of payloads that are taken before what they say is passed on: some 60 tokens, which many
/// streams at once read in milliseconds.
const MOST_AT_ONCE: usize = 16 * 1024;
/// Payloads that come closer together than this are a burst.
const CLOSE: Duration = Duration::from_millis(2);
/// Bytes of one answer, all payloads together.
pub(super) const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Calls of one answer.
pub(super) const MAX_CALLS: usize = 128;

/// Turns the payloads of one answer into events. Pure.
pub(super) trait Assemble: Send + 'static {
    /// Takes the next payload; true = it was the last.
    fn push(&mut self, payload: &str, out: &mut VecDeque<ModelEvent>) -> Result<bool, Error>;

    /// Whether the model said that it is done: what breaks after that breaks nothing.
    fn is_finished(&self) -> bool;

    /// The last events of an answer that ended as it should.
    fn end(&mut self, out: &mut VecDeque<ModelEvent>);

    /// What an answer is that ended before it was whole.
    fn short(&self) -> Error;
}

/// The events of an answer. Pieces of text that have come together are one event: nothing waits for
/// more to come, and what is there costs one event however finely it was cut.
pub(super) fn events<A: Assemble>(
    payloads: BoxStream<'static, Result<String, Error>>,
    assembler: A,
) -> ModelStream {
    // In a box, because `unfold` moves it with every event.
    let streaming = Box::new(Streaming {
        payloads,
        assembler,
        ready: VecDeque::new(),
        state: State::Open,
        last: None,
    });
    stream::unfold(streaming, |mut streaming| async move {
        let event = streaming.next().await?;
        Some((event, streaming))
    })
    .boxed()
}

struct Streaming<A> {
    payloads: BoxStream<'static, Result<String, Error>>,
    assembler: A,
    ready: VecDeque<ModelEvent>,
    state: State,
    /// When it last had to wait for a payload and got one.
    last: Option<Instant>,
}

enum State {
    Open,
    /// What is told after the events that came before it.
    Failed(Error),
    Over,
}

impl<A: Assemble> Streaming<A> {
    async fn next(&mut self) -> Option<Result<ModelEvent, Error>> {
        loop {
            if let Some(event) = self.pop() {
                return Some(Ok(event));
            }
            match mem::replace(&mut self.state, State::Over) {
                State::Open => self.state = State::Open,
                State::Failed(error) => return Some(Err(error)),
                State::Over => return None,
            }
            let payload = self.payloads.next().await;
            let now = Instant::now();
            let last = self.last.replace(now);
            let mut is_burst = last.is_some_and(|last| now.duration_since(last) < CLOSE);
            let mut taken = payload_len(payload.as_ref());
            self.take(payload).await;
            while matches!(self.state, State::Open) && taken < MOST_AT_ONCE {
                let Some(payload) = self.at_hand(is_burst).await else {
                    break;
                };
                is_burst = true;
                taken += payload_len(payload.as_ref());
                self.take(payload).await;
            }
        }
    }

    /// A payload that has come already. The HTTP library hands chunks over one by one, by a task of
    /// its own: in a burst that one is let through before nothing counts as there. A payload that
    /// came alone is passed on at once instead.
    async fn at_hand(&mut self, is_burst: bool) -> Option<Option<Result<String, Error>>> {
        // The waker of nobody does no harm: nothing rests before the next real poll.
        let payload = self.payloads.next().now_or_never();
        if payload.is_some() || !is_burst {
            return payload;
        }
        tokio::task::yield_now().await;
        self.payloads.next().now_or_never()
    }

    /// The next event, with all the text that follows it at once.
    fn pop(&mut self) -> Option<ModelEvent> {
        let mut event = self.ready.pop_front()?;
        loop {
            match (&mut event, self.ready.front()) {
                (ModelEvent::Text(text), Some(ModelEvent::Text(more)))
                | (ModelEvent::Reasoning(text), Some(ModelEvent::Reasoning(more))) => {
                    text.push_str(more);
                }
                _ => return Some(event),
            }
            self.ready.pop_front();
        }
    }

    async fn take(&mut self, payload: Option<Result<String, Error>>) {
        let before = self.ready.len();
        let ended = match payload {
            Some(Ok(payload)) => self.assembler.push(&payload, &mut self.ready),
            Some(Err(error)) if !self.assembler.is_finished() => Err(error),
            Some(Err(_)) => Ok(true),
            None if self.assembler.is_finished() => Ok(true),
            None => Err(self.assembler.short()),
        };
        match ended {
            Ok(false) => {}
            Ok(true) => {
                self.drain().await;
                self.state = State::Over;
                self.assembler.end(&mut self.ready);
            }
            Err(error) => {
                // What a broken payload began is void.
                self.ready.truncate(before);
                self.state = State::Failed(error);
            }
        }
    }

    /// Reads the end of the body: only then can its connection carry the next request.
    async fn drain(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.payloads.next().await {} };
        // A server that does not close its answer loses the connection, no more.
        let _ = tokio::time::timeout(DRAIN, rest).await;
    }
}

fn payload_len(payload: Option<&Result<String, Error>>) -> usize {
    payload.map_or(0, |payload| payload.as_ref().map_or(0, String::len))
}
