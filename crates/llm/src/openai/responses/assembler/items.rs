//! The items of an answer: messages, calls, thoughts. Events find theirs by its number, and where a
//! server gives none, by its id; where there is neither, the newest is meant. Pure.

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
    /// None once it is whole.
    kind: Option<Kind>,
}

/// What is told of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Begun,
    Whole,
}

/// An item that has begun.
#[derive(Debug)]
pub(super) enum Kind {
    Message {
        /// Where its text begins.
        place: Position,
        /// Whether a piece of it was streamed.
        has_text: bool,
        phase: String,
    },
    Call {
        /// Its number among the calls.
        call: usize,
        /// Whether a piece of its arguments was streamed.
        has_arguments: bool,
        /// Arguments that came with its beginning; they count if no others follow.
        whole: String,
    },
    Thought {
        place: Position,
        /// Whether people were told a piece of it.
        is_told: bool,
    },
    /// A search for tools, or what it loaded.
    Search(Position),
    /// What stands for all that was said before.
    Compaction(Position),
    Other,
}

/// The number of the item that an event is about.
pub(super) fn index(event: &Event<'_>) -> Option<u64> {
    event.output_index.map(RawValue::get)?.parse().ok()
}

impl Items {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The item of that number or id; none = it begins now.
    pub(super) fn find(&self, index: Option<u64>, form: &ItemForm<'_>) -> Option<usize> {
        let id = if form.id.0.is_empty() {
            &form.call_id.0
        } else {
            &form.id.0
        };
        if index.is_none() && id.is_empty() {
            // Only the newest can be meant, while it is not whole.
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

    /// Ends an item; none = it has ended before.
    pub(super) fn close(&mut self, at: usize) -> Option<Kind> {
        self.0.get_mut(at)?.kind.take()
    }

    /// A piece of a call's arguments.
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

    /// All of a call's arguments; they count if no piece came.
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

    /// Notes that people were told a piece of a thought.
    pub(super) fn note_thought(&mut self, event: &Event<'_>) {
        if let Some(Kind::Thought { is_told, .. }) = self.open(event) {
            *is_told |= !event.delta.0.is_empty();
        }
    }

    /// Whether a piece of text is the first of its message.
    pub(super) fn begins_text(&mut self, event: &Event<'_>) -> bool {
        matches!(
            self.open(event),
            Some(Kind::Message {
                has_text: false,
                ..
            })
        )
    }

    /// Notes where the text of a message begins.
    pub(super) fn place_text(&mut self, event: &Event<'_>, begins: Position) {
        if let Some(Kind::Message {
            place, has_text, ..
        }) = self.open(event)
        {
            *place = begins;
            *has_text = true;
        }
    }

    /// The arguments of calls that never came to their end.
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

    /// By number where both have one, else by id.
    fn place_of(&self, index: Option<u64>, id: &str) -> Option<usize> {
        self.0.iter().rposition(|item| match (item.index, index) {
            (Some(known), Some(index)) => known == index,
            (None, _) | (_, None) => !id.is_empty() && item.id == id,
        })
    }
}
