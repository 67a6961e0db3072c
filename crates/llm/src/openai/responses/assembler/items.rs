//! Tracks the items of an answer: messages, calls, thoughts. An event finds its item by index, else by id;
//! without either it means the newest item. Pure.

use serde_json::value::RawValue;

use crate::ModelEvent;
use crate::openai::responses::wire::{Event, ItemForm};
use crate::request::interleave::Position;

/// The items of one answer so far.
#[derive(Debug, Default)]
pub(super) struct Items(Vec<Item>);

#[derive(Debug)]
struct Item {
    index: Option<u64>,
    id: String,
    /// `None` once the item is complete.
    kind: Option<Kind>,
}

/// The stage at which an item is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Begun,
    Whole,
}

/// An item that has started.
#[derive(Debug)]
pub(super) enum Kind {
    Message {
        /// The position of the message's text.
        place: Position,
        /// True if a piece of the text was streamed.
        has_text: bool,
        /// The streamed text.
        said: String,
        /// The length of `said` before the current part.
        part: usize,
        phase: String,
    },
    Call {
        /// The index of the call.
        call: usize,
        /// True if a piece of the arguments was streamed.
        has_arguments: bool,
        /// Arguments that came with the start of the item; used if no others follow.
        whole: String,
    },
    Thought {
        place: Position,
        /// True if a piece of the thought was shown.
        is_told: bool,
    },
    /// A tool search, or its result.
    Search(Position),
    /// A compaction, which replaces everything before it.
    Compaction(Position),
    Other,
}

/// The index of the item that an event is about.
pub(super) fn index(event: &Event<'_>) -> Option<u64> {
    event.output_index.map(RawValue::get)?.parse().ok()
}

impl Items {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The item with that index or id; `None` if the item is new.
    pub(super) fn find(&self, index: Option<u64>, form: &ItemForm<'_>) -> Option<usize> {
        let id = if form.id.0.is_empty() {
            &form.call_id.0
        } else {
            &form.id.0
        };
        if index.is_none() && id.is_empty() {
            // Only the newest item can be meant, and only while it is incomplete.
            let last = self.0.len().checked_sub(1)?;
            return self.0.get(last)?.kind.is_some().then_some(last);
        }
        self.place_of(index, id)
    }

    pub(super) fn push(&mut self, index: Option<u64>, form: &ItemForm<'_>, kind: Kind) -> usize {
        let id = if form.id.0.is_empty() {
            &form.call_id.0
        } else {
            &form.id.0
        };
        self.0.push(Item {
            index,
            id: id.clone().into_owned(),
            kind: Some(kind),
        });
        self.0.len() - 1
    }

    /// Closes an item; `None` if it is already closed.
    pub(super) fn close(&mut self, at: usize) -> Option<Kind> {
        self.0.get_mut(at)?.kind.take()
    }

    /// The event for a piece of a call's arguments.
    pub(super) fn more_arguments(&mut self, event: &Event<'_>, json: &str) -> Option<ModelEvent> {
        let Kind::Call {
            call,
            has_arguments,
            ..
        } = self.open(event)?
        else {
            return None;
        };
        if json.is_empty() {
            return None;
        }
        *has_arguments = true;
        Some(ModelEvent::CallArguments {
            index: *call,
            json: json.to_owned(),
        })
    }

    /// The event for the complete arguments of a call, if no piece was streamed.
    pub(super) fn whole_arguments(&mut self, event: &Event<'_>, json: &str) -> Option<ModelEvent> {
        let Some(Kind::Call {
            has_arguments: false,
            ..
        }) = self.open(event)
        else {
            return None;
        };
        self.more_arguments(event, json)
    }

    /// Records that a piece of a thought was shown.
    pub(super) fn note_thought(&mut self, event: &Event<'_>) {
        if let Some(Kind::Thought { is_told, .. }) = self.open(event) {
            *is_told |= !event.delta.0.is_empty();
        }
    }

    /// Returns true if no text of the event's message was streamed before.
    pub(super) fn begins_text(&mut self, event: &Event<'_>) -> bool {
        matches!(
            self.open(event),
            Some(Kind::Message {
                has_text: false,
                ..
            })
        )
    }

    /// Records the position of a message's text.
    pub(super) fn place_text(&mut self, event: &Event<'_>, begins: Position) {
        if let Some(Kind::Message {
            place, has_text, ..
        }) = self.open(event)
        {
            *place = begins;
            *has_text = true;
        }
    }

    /// Records a piece of a message's text.
    pub(super) fn note_text(&mut self, event: &Event<'_>, piece: &str) {
        if let Some(Kind::Message { said, .. }) = self.open(event) {
            said.push_str(piece);
        }
    }

    /// Ends a part of a message, whose whole text is known; returns what its pieces lacked. `None` if no item
    /// is meant, or if its pieces say something else.
    pub(super) fn lacking(&mut self, event: &Event<'_>, whole: &str) -> Option<String> {
        let Some(Kind::Message { said, part, .. }) = self.open(event) else {
            return None;
        };
        let rest = whole
            .strip_prefix(said.get(*part..)?)
            .map(ToOwned::to_owned);
        *part = said.len() + rest.as_ref().map_or(0, String::len);
        rest.filter(|rest| !rest.is_empty())
    }

    /// Closes all items, and returns the arguments of calls that were never completed.
    pub(super) fn unsaid(&mut self) -> Vec<ModelEvent> {
        let open = self.0.iter_mut().filter_map(|item| item.kind.take());
        open.filter_map(|kind| match kind {
            Kind::Call {
                call,
                has_arguments: false,
                whole,
            } if !whole.is_empty() => Some(ModelEvent::CallArguments {
                index: call,
                json: whole,
            }),
            Kind::Call { .. }
            | Kind::Message { .. }
            | Kind::Thought { .. }
            | Kind::Search(_)
            | Kind::Compaction(_)
            | Kind::Other => None,
        })
        .collect()
    }

    fn open(&mut self, event: &Event<'_>) -> Option<&mut Kind> {
        let (index, id) = (index(event), &event.item_id.0);
        let at = if index.is_none() && id.is_empty() {
            self.0.len().checked_sub(1)
        } else {
            self.place_of(index, id)
        };
        self.0.get_mut(at?)?.kind.as_mut()
    }

    /// Finds an item by index if both have one, else by id.
    fn place_of(&self, index: Option<u64>, id: &str) -> Option<usize> {
        self.0.iter().rposition(|item| match (item.index, index) {
            (Some(known), Some(index)) => known == index,
            (None, _) | (_, None) => !id.is_empty() && item.id == id,
        })
    }
}
