//! Checks the properties of every provider's stream, for any bytes in any chunks.

use std::cell::OnceCell;
use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use tokio::runtime::{Builder, Runtime};

use super::payloads::payloads_of;
use super::{Assemble, MAX_CALLS, events};
use crate::transport::endpoint::KeyOwner;
use crate::wire_log::SentKeys;
use crate::{Error, ModelEvent};

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

/// A key that no error message may contain.
pub(crate) const KEY: &str = "sk-0123456789abcdef";

/// The owner of the answers.
pub(crate) fn owner() -> KeyOwner {
    KeyOwner {
        provider: "p".to_owned(),
        key: Some(KEY.to_owned().into()),
    }
}

/// Reads the same bytes in one chunk, in several chunks, and with `forget` called before each payload, and
/// compares the events. The first byte of the input selects the chunk sizes.
pub(crate) fn check<A: Assemble>(input: &[u8], assembler: impl Fn() -> A, forget: fn(&mut A)) {
    let (how, bytes) = sepal_fuzz::choice(input);
    let (whole, ending) = read(vec![bytes], assembler());
    let (pieces, ending_of_pieces) = read(cut(bytes, how), assembler());
    let shown = |error: &Option<Error>| error.as_ref().map(|error| format!("{error:?}"));
    assert_eq!(shown(&ending), shown(&ending_of_pieces), "cut by {how}");
    assert_eq!(joined(&whole), joined(&pieces), "cut by {how}");
    let forgetful = Forgetful {
        assembler: assembler(),
        forget,
    };
    let (anew, ending_anew) = read(vec![bytes], forgetful);
    assert_eq!(shown(&ending), shown(&ending_anew), "read anew");
    assert_eq!(joined(&whole), joined(&anew), "read anew");
    check_order(&whole, ending.as_ref());
    let said: usize = whole.iter().map(size).sum();
    // Native blocks may repeat the text.
    assert!(
        said <= 1_024 + 8 * bytes.len(),
        "{said} bytes of {}",
        bytes.len()
    );
    if let Some(error) = ending {
        let words = error.to_string();
        assert!(!words.contains(KEY), "{words}");
        assert!(words.len() < 4_096, "{} bytes of words", words.len());
    }
}

/// An assembler that forgets the previous payload before it reads the next one.
struct Forgetful<A> {
    assembler: A,
    forget: fn(&mut A),
}

impl<A: Assemble> Assemble for Forgetful<A> {
    fn push(&mut self, payload: &str, out: &mut VecDeque<ModelEvent>) -> Result<bool, Error> {
        (self.forget)(&mut self.assembler);
        self.assembler.push(payload, out)
    }

    fn is_finished(&self) -> bool {
        self.assembler.is_finished()
    }

    fn end(&mut self, out: &mut VecDeque<ModelEvent>) {
        self.assembler.end(out);
    }

    fn short(&self) -> Error {
        self.assembler.short()
    }
}

fn cut(bytes: &[u8], how: u8) -> Vec<&[u8]> {
    match usize::from(how) {
        0 => bytes.chunks(1).collect(),
        how if how < 64 => bytes.chunks(how).collect(),
        how => {
            let (head, tail) = bytes.split_at(how.min(bytes.len()));
            let (middle, tail) = tail.split_at(tail.len() / 2);
            vec![head, &[], middle, tail]
        }
    }
}

fn read<A: Assemble>(pieces: Vec<&[u8]>, assembler: A) -> (Vec<ModelEvent>, Option<Error>) {
    let pieces: Vec<_> = pieces
        .into_iter()
        .map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)))
        .collect();
    let payloads = payloads_of(Arc::from("p"), SentKeys::default(), stream::iter(pieces)).boxed();
    let all = async {
        let mut events = events(payloads, assembler);
        let mut read = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => read.push(event),
                Err(error) => {
                    assert!(events.next().await.is_none(), "an error is the end");
                    return (read, Some(error));
                }
            }
        }
        (read, None)
    };
    RUNTIME.with(|runtime| {
        let paused = || {
            Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
        };
        runtime.get_or_init(|| paused().unwrap()).block_on(all)
    })
}

/// Joins consecutive pieces of text: the boundaries between them mean nothing.
fn joined(events: &[ModelEvent]) -> Vec<ModelEvent> {
    let mut joined: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(more))
            | (Some(ModelEvent::Reasoning(text)), ModelEvent::Reasoning(more)) => {
                text.push_str(more);
            }
            _ => joined.push(event.clone()),
        }
    }
    joined
}

/// Checks that every call starts once, that arguments follow their call, and that nothing follows the end. A
/// call whose name arrives late, or never, may start after later ones.
fn check_order(events: &[ModelEvent], ending: Option<&Error>) {
    let mut calls = BTreeSet::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            ModelEvent::CallStarted { index, .. } => {
                assert!(calls.insert(*index), "call {index} begins twice");
            }
            ModelEvent::CallArguments { index, .. } => assert!(calls.contains(index)),
            ModelEvent::Finished(_) => assert_eq!(at + 1, events.len()),
            ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Usage(_)
            | ModelEvent::TextWasReasoning
            | ModelEvent::Native(_)
            | ModelEvent::Compacted(_)
            | ModelEvent::LeftOut(_)
            | ModelEvent::StopDetail(_) => {}
        }
    }
    assert!(calls.len() <= MAX_CALLS);
    let is_whole = matches!(events.last(), Some(ModelEvent::Finished(_)));
    assert_ne!(is_whole, ending.is_some(), "either whole or an error");
    if is_whole {
        assert!(calls.iter().copied().eq(0..calls.len()), "{calls:?}");
    }
}

fn size(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::Text(text)
        | ModelEvent::Reasoning(text)
        | ModelEvent::LeftOut(text)
        | ModelEvent::StopDetail(text) => text.len(),
        ModelEvent::CallStarted {
            provider_id, name, ..
        } => provider_id.len() + name.len(),
        ModelEvent::CallArguments { json, .. } => json.len(),
        ModelEvent::Native(native) => native.blocks.to_string().len(),
        ModelEvent::Compacted(it) => it.summary.as_ref().map_or(0, String::len),
        ModelEvent::Usage(_) | ModelEvent::Finished(_) | ModelEvent::TextWasReasoning => 0,
    }
}
