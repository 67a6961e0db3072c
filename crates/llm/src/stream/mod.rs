//! Drives an assembler over the payloads of a stream: what ends it, what breaks it, what is drained.

#[cfg(test)]
pub(super) mod cutting;
pub(super) mod envelope;
pub(super) mod idle_timeout;
#[cfg(test)]
pub(super) mod line;
pub(super) mod payloads;
pub(super) mod surrogates;
pub(super) mod text;

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures::stream::{self, BoxStream, Stream, StreamExt};
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep};

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
pub(super) trait Assemble: Send + Unpin + 'static {
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
    Box::pin(Streaming {
        payloads,
        assembler,
        ready: VecDeque::new(),
        state: State::Open,
        last: None,
    })
}

/// The events of an answer, after what people are told that was left out of its request.
pub(super) fn telling(told: Vec<String>, events: ModelStream) -> ModelStream {
    if told.is_empty() {
        return events;
    }
    let told = told.into_iter().map(|text| Ok(ModelEvent::LeftOut(text)));
    stream::iter(told).chain(events).boxed()
}

/// Polled by hand: a state machine that the compiler makes is gone through from its beginning for
/// every token.
struct Streaming<A> {
    payloads: BoxStream<'static, Result<String, Error>>,
    assembler: A,
    ready: VecDeque<ModelEvent>,
    state: State,
    /// When it last had to wait for a payload and got one.
    last: Option<Instant>,
}

enum State {
    /// Waits for a payload.
    Open,
    /// Lets the HTTP library's task through; so many bytes were taken.
    Yielding(usize, Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Reads the end of the body, for no longer than that: only then can its connection carry the
    /// next request.
    Draining(Pin<Box<Sleep>>),
    /// What is told after the events that came before it.
    Failed(Error),
    Over,
}

impl<A: Assemble> Stream for Streaming<A> {
    type Item = Result<ModelEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if !matches!(this.state, State::Yielding(..) | State::Draining(_))
                && let Some(event) = this.pop()
            {
                return Poll::Ready(Some(Ok(event)));
            }
            match &mut this.state {
                State::Open => {
                    let payload = ready!(this.payloads.poll_next_unpin(cx));
                    let now = Instant::now();
                    let last = this.last.replace(now);
                    let is_burst = last.is_some_and(|last| now.duration_since(last) < CLOSE);
                    let taken = this.take(payload);
                    this.take_more(taken, is_burst, cx);
                }
                State::Yielding(taken, yielding) => {
                    ready!(yielding.as_mut().poll(cx));
                    let taken = *taken;
                    this.state = State::Open;
                    // What is not there now, after the task had its turn, has not come.
                    if let Poll::Ready(payload) = this.payloads.poll_next_unpin(cx) {
                        let taken = taken + this.take(payload);
                        this.take_more(taken, true, cx);
                    }
                }
                State::Draining(timer) => {
                    let is_there = loop {
                        match this.payloads.poll_next_unpin(cx) {
                            Poll::Ready(Some(Ok(_))) => {}
                            Poll::Ready(Some(Err(_)) | None) => break true,
                            Poll::Pending => break false,
                        }
                    };
                    // A server that does not close its answer loses the connection, no more.
                    if !is_there {
                        ready!(timer.as_mut().poll(cx));
                    }
                    this.state = State::Over;
                    this.assembler.end(&mut this.ready);
                }
                State::Failed(_) => {
                    let failed = mem::replace(&mut this.state, State::Over);
                    if let State::Failed(error) = failed {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }
}

impl<A: Assemble> Streaming<A> {
    /// Takes the payloads that have come already. The HTTP library hands chunks over one by one, by a
    /// task of its own: in a burst that one is let through before nothing counts as there. A payload
    /// that came alone is passed on at once instead.
    fn take_more(&mut self, mut taken: usize, mut is_burst: bool, cx: &mut Context<'_>) {
        while matches!(self.state, State::Open) && taken < MOST_AT_ONCE {
            match self.payloads.poll_next_unpin(cx) {
                Poll::Ready(payload) => {
                    is_burst = true;
                    taken += self.take(payload);
                }
                Poll::Pending => {
                    if is_burst {
                        self.state = State::Yielding(taken, Box::pin(yield_now()));
                    }
                    return;
                }
            }
        }
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

    /// Takes a payload, and says how long it is.
    fn take(&mut self, payload: Option<Result<String, Error>>) -> usize {
        let before = self.ready.len();
        let mut taken = 0;
        let ended = match payload {
            Some(Ok(payload)) => {
                taken = payload.len();
                self.assembler.push(&payload, &mut self.ready)
            }
            Some(Err(error)) if !self.assembler.is_finished() => Err(error),
            Some(Err(_)) => Ok(true),
            None if self.assembler.is_finished() => Ok(true),
            None => Err(self.assembler.short()),
        };
        match ended {
            Ok(false) => {}
            Ok(true) => self.state = State::Draining(Box::pin(sleep(DRAIN))),
            Err(error) => {
                // What a broken payload began is void.
                self.ready.truncate(before);
                self.state = State::Failed(error);
            }
        }
        taken
    }
}
