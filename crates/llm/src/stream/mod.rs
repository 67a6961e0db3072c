//! Drives an assembler over the payloads of a stream: detects its end, handles errors, drains the body.

#[cfg(test)]
pub(super) mod cutting;
pub(super) mod envelope;
pub(super) mod idle_timeout;
#[cfg(test)]
pub(super) mod line;
pub(super) mod payloads;
pub(super) mod tagged;
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

/// The time limit for reading the end of the body after the model has finished.
const DRAIN: Duration = Duration::from_millis(10);
/// The time for which an answer may go on without saying anything after the model has finished: some servers
/// tell the usage late, and some never end.
const AFTER_FINISH: Duration = Duration::from_secs(2);
/// Bytes of payloads that are read before their events are passed on: about 60 tokens, which many parallel
/// streams read in milliseconds.
const MOST_AT_ONCE: usize = 16 * 1024;
/// Payloads that arrive within this time of each other are a burst.
const CLOSE: Duration = Duration::from_millis(2);
/// The most bytes of one answer, all payloads together.
pub(super) const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// The most calls of one answer.
pub(super) const MAX_CALLS: usize = 128;

/// Turns the payloads of one answer into events. Pure.
pub(super) trait Assemble: Send + Unpin + 'static {
    /// Reads the next payload; returns true if it was the last.
    fn push(&mut self, payload: &str, out: &mut VecDeque<ModelEvent>) -> Result<bool, Error>;

    /// Returns true once the model has finished; a later error of the connection is ignored.
    fn is_finished(&self) -> bool;

    /// Emits the last events of an answer that ended properly.
    fn end(&mut self, out: &mut VecDeque<ModelEvent>);

    /// The error of an answer that ended too early.
    fn short(&self) -> Error;
}

/// The events of an answer. Pieces of text that have arrived together are joined into one event, without
/// waiting for more.
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
        ending: None,
    })
}

/// The events of an answer, preceded by messages about parts that were left out of its request.
pub(super) fn telling(told: Vec<String>, events: ModelStream) -> ModelStream {
    if told.is_empty() {
        return events;
    }
    let told = told.into_iter().map(|text| Ok(ModelEvent::LeftOut(text)));
    stream::iter(told).chain(events).boxed()
}

/// Implemented by hand: a generated state machine would run from its start for every token.
struct Streaming<A> {
    payloads: BoxStream<'static, Result<String, Error>>,
    assembler: A,
    ready: VecDeque<ModelEvent>,
    state: State,
    /// The time at which the last awaited payload arrived.
    last: Option<Instant>,
    /// Fires [`AFTER_FINISH`] after the model has finished.
    ending: Option<Pin<Box<Sleep>>>,
}

enum State {
    /// Waits for a payload.
    Open,
    /// Yields to the HTTP library's task; holds the number of bytes read so far.
    Yielding(usize, Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Reads the end of the body until the timer fires: the connection can be reused only after that.
    Draining(Pin<Box<Sleep>>),
    /// The error that follows the pending events.
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
                    let Poll::Ready(payload) = this.payloads.poll_next_unpin(cx) else {
                        ready!(this.poll_ending(cx));
                        this.state = State::Draining(Box::pin(sleep(DRAIN)));
                        continue;
                    };
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
                    // The task had its turn; a payload that is still missing has not arrived yet.
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
                    // A server that does not close its answer only loses the connection.
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
    /// Reads the payloads that have already arrived. A task of the HTTP library hands chunks over one at a
    /// time; in a burst, that task runs once more before the burst counts as over. A single payload is passed
    /// on at once.
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

    /// Ready if the model has finished and nothing was said since.
    fn poll_ending(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.assembler.is_finished() {
            return Poll::Pending;
        }
        let ending = self
            .ending
            .get_or_insert_with(|| Box::pin(sleep(AFTER_FINISH)));
        ending.as_mut().poll(cx)
    }

    /// The next event, joined with all text that directly follows it.
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

    /// Reads a payload and returns its length.
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
        if self.ready.len() > before {
            self.ending = None;
        }
        match ended {
            Ok(false) => {}
            Ok(true) => self.state = State::Draining(Box::pin(sleep(DRAIN))),
            Err(error) => {
                // Events of a broken payload are discarded.
                self.ready.truncate(before);
                self.state = State::Failed(error);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use futures::stream::StreamExt as _;
    use tokio::time::Instant;

    use super::{Assemble, Error, ModelEvent, events};
    use crate::Finish;

    /// Says each payload; `stop` finishes, and `usage` is known afterwards.
    struct Plain {
        is_finished: bool,
        usage: bool,
    }

    impl Assemble for Plain {
        fn push(&mut self, payload: &str, out: &mut VecDeque<ModelEvent>) -> Result<bool, Error> {
            match payload {
                "stop" => self.is_finished = true,
                "usage" => self.usage = true,
                "" => {}
                text => out.push_back(ModelEvent::Text(text.to_owned())),
            }
            Ok(payload == "end")
        }

        fn is_finished(&self) -> bool {
            self.is_finished
        }

        fn end(&mut self, out: &mut VecDeque<ModelEvent>) {
            if self.usage {
                out.push_back(ModelEvent::Text("counted".to_owned()));
            }
            out.push_back(ModelEvent::Finished(Finish::Stop));
        }

        fn short(&self) -> Error {
            unreachable!("the connection stays open")
        }
    }

    /// The server says the payloads, each after its pause in milliseconds, and keeps the connection open.
    async fn check(said: &[(u64, &'static str)], expected: &[&str], within: Duration) {
        let said = said.to_vec();
        let payloads = futures::stream::iter(said).then(|(pause, payload)| async move {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Ok(payload.to_owned())
        });
        let payloads = payloads.chain(futures::stream::pending()).boxed();
        let plain = Plain {
            is_finished: false,
            usage: false,
        };
        let begun = Instant::now();
        let all: Vec<_> = events(payloads, plain).collect().await;
        let texts: Vec<String> = all
            .into_iter()
            .filter_map(|event| {
                let event = event.unwrap();
                if let ModelEvent::Text(text) = event {
                    Some(text)
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(texts, expected);
        assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_ends_soon_after_its_model_finished_whatever_the_connection_does() {
        let soon = Duration::from_millis(2_500);
        check(&[(0, "a"), (0, "stop")], &["a"], soon).await;
        let beats = [
            (0, "a"),
            (0, "stop"),
            (300, ""),
            (300, ""),
            (300, ""),
            (60_000, ""),
        ];
        check(&beats, &["a"], soon).await;
        check(
            &[(0, "a"), (0, "stop"), (400, "usage")],
            &["a", "counted"],
            soon,
        )
        .await;
        check(
            &[(0, "a"), (0, "stop"), (5, "end")],
            &["a", "end"],
            Duration::from_millis(100),
        )
        .await;
        // What is still said is heard.
        let late = [(0, "a"), (0, "stop"), (1_500, "b"), (1_500, "c")];
        check(&late, &["a", "b", "c"], Duration::from_millis(5_500)).await;
        // A model that thinks for long is waited for.
        let slow = [(0, "a"), (60_000, "b"), (0, "stop")];
        check(&slow, &["a", "b"], Duration::from_secs(63)).await;
    }
}
