//! Drives an assembler over the payloads of a stream: what ends it, what breaks it, what is drained.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};

use super::{Error, ModelEvent, ModelStream};

/// How long the end of a body is waited for after the model has finished.
const DRAIN: Duration = Duration::from_millis(10);
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

/// The events of an answer.
pub(super) fn events<A: Assemble>(
    payloads: BoxStream<'static, Result<String, Error>>,
    assembler: A,
) -> ModelStream {
    let streaming = Streaming {
        payloads,
        assembler,
        ready: VecDeque::new(),
        is_over: false,
    };
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
    is_over: bool,
}

impl<A: Assemble> Streaming<A> {
    async fn next(&mut self) -> Option<Result<ModelEvent, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            let ended = match self.payloads.next().await {
                Some(Ok(payload)) => match self.assembler.push(&payload, &mut self.ready) {
                    Ok(is_last) => is_last,
                    Err(error) => return Some(Err(self.failed(error))),
                },
                Some(Err(error)) if !self.assembler.is_finished() => {
                    return Some(Err(self.failed(error)));
                }
                Some(Err(_)) => true,
                None if self.assembler.is_finished() => true,
                None => return Some(Err(self.failed_short())),
            };
            if ended {
                self.drain().await;
                self.is_over = true;
                self.assembler.end(&mut self.ready);
            }
        }
    }

    /// Reads the end of the body: only then can its connection carry the next request.
    async fn drain(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.payloads.next().await {} };
        // A server that does not close its answer loses the connection, no more.
        let _ = tokio::time::timeout(DRAIN, rest).await;
    }

    fn failed(&mut self, error: Error) -> Error {
        self.is_over = true;
        self.ready.clear();
        error
    }

    fn failed_short(&mut self) -> Error {
        let cut = self.assembler.short();
        self.failed(cut)
    }
}
