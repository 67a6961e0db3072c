//! Folds events into the working context, the entries that the model may read, oldest first.

use std::sync::Arc;

use crate::domain::{CallId, CountedEntry, Entry, Native, Stamp, Timestamp, WorkspaceCopy};
use crate::session::call::Outcome;
use crate::session::event::Event;
use crate::session::event::compaction::{Gaps, drops_nothing};
use crate::session::state::{Control, SessionState};

/// The note to the model of a fork without a copied workspace.
pub(super) const NEW_WORKSPACE: &str = "This conversation goes on in another session with a workspace \
                                        of its own: files that earlier calls wrote are not there.";
/// The note to the model of a fork whose workspace is a copy.
const COPIED_WORKSPACE: &str = "This conversation goes on in another session. Its workspace is a copy of \
                                the first session's, made now: files may differ from what earlier calls \
                                wrote or read.";

impl SessionState {
    /// Replaces the entries in memory; `gaps` are the places of removed ones.
    pub fn retain(&mut self, kept: Vec<Arc<CountedEntry>>, gaps: Gaps) {
        self.entries = kept;
        self.gaps = gaps;
    }

    /// Drops all but the newest entries from the context. The caller keeps calls and results together.
    fn keep_newest(&mut self, kept: usize) {
        let surplus = self.entries.len().saturating_sub(kept);
        self.entries.drain(..surplus);
        self.left_out += surplus as u64 + self.gaps.remove_oldest(surplus);
    }

    /// Runs before the control state changes, because it reads the waiting messages and the queue.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most events leave the context alone; the fold of the control state is exhaustive"
    )]
    pub(super) fn evolve_entries(&mut self, event: &Event, at: Timestamp) {
        // The event gets its own `seq` when the control state changes.
        let shown = self.control.seq + u64::from(event.is_shown());
        let stamp = |nth| {
            Some(Stamp {
                seq: shown,
                nth,
                at,
            })
        };
        match event {
            Event::Thinking { took, is_retry, .. } => {
                if *is_retry {
                    self.drop_last_answer();
                }
                self.take_in(took, stamp);
            }
            Event::Queued { calls } => {
                if let Some(Entry::Assistant { calls: asked, .. }) = self
                    .entries
                    .last_mut()
                    .map(|last| Arc::make_mut(last).entry_mut())
                {
                    *asked = calls.iter().map(|call| call.as_model_call()).collect();
                }
            }
            Event::Said { text, native, .. } | Event::Answered { text, native, .. } => {
                self.say(text.clone(), native.clone(), stamp(0));
            }
            Event::Cancelled {
                text: Some(text), ..
            } if !text.is_empty() => {
                let text = format!("{text}\n[stopped here by the person]");
                self.say(text, None, stamp(0));
            }
            Event::Ended { call, outcome, .. } => self.pair(call, outcome, stamp(0)),
            // A turn that waited for the copy has started without asking the model yet.
            Event::WorkspaceCopied { outcome } if self.control.turn.is_some() => {
                let text = workspace_note(*outcome).to_owned();
                let note = CountedEntry::stamped(Entry::Note { text }, stamp(0));
                self.entries.push(note);
            }
            Event::ContextReset => {
                self.entries.clear();
                self.left_out = 0;
                self.gaps = Gaps::default();
            }
            // The runner's `kept` may differ from the number of entries in memory here, and cutting would
            // shift places.
            Event::ContextCut { strategy, .. } if drops_nothing(strategy) => {}
            Event::ContextCut { kept, .. } => self.keep_newest(*kept),
            _ => {}
        }
    }

    /// Adds the notes and messages that a model request reads.
    fn take_in(&mut self, took: &[u64], stamp: impl Fn(u32) -> Option<Stamp>) {
        let Control { notes, waiting, .. } = &self.control;
        let notes = notes.iter().map(|text| Entry::Note { text: text.clone() });
        let messages = waiting.iter().filter(|m| took.contains(&m.seq));
        let messages = messages.map(|m| Entry::User {
            seq: m.seq,
            text: m.text.clone(),
            attachments: m.attachments.clone(),
        });
        let numbered = notes.chain(messages).zip(1..);
        let taken = numbered.map(|(entry, nth)| CountedEntry::stamped(entry, stamp(nth)));
        self.entries.extend(taken);
    }

    /// Adds the model's text.
    fn say(&mut self, text: String, native: Option<Native>, stamp: Option<Stamp>) {
        let said = Entry::Assistant {
            text,
            calls: Vec::new(),
            native,
        };
        self.entries.push(CountedEntry::stamped(said, stamp));
    }

    /// Adds the result of a call.
    fn pair(&mut self, id: &CallId, outcome: &Outcome, stamp: Option<Stamp>) {
        let Some(call) = self.control.turn.as_ref().and_then(|turn| turn.call(id)) else {
            return;
        };
        let mut text = outcome.text();
        if call.original_args.is_some() {
            text = format!(
                "A person changed the arguments to {} before it ran.\n{text}",
                call.args
            );
        }
        let result = Entry::ToolResult {
            call_id: call.id.clone(),
            provider_id: call.provider_id.clone(),
            name: call.model_name().to_owned(),
            text,
            is_error: outcome.is_error(),
            attachments: outcome.attachments().to_vec(),
        };
        self.entries.push(CountedEntry::stamped(result, stamp));
    }

    /// A retry replaces the final answer; calls and their results stay.
    fn drop_last_answer(&mut self) {
        let is_final =
            |entry: &Entry| matches!(entry, Entry::Assistant { calls, .. } if calls.is_empty());
        while self.entries.last().is_some_and(|entry| is_final(entry)) {
            self.entries.pop();
        }
    }
}

/// The note to the model about the workspace of a fork.
pub(super) fn workspace_note(outcome: WorkspaceCopy) -> &'static str {
    match outcome {
        WorkspaceCopy::Copied { .. } => COPIED_WORKSPACE,
        WorkspaceCopy::Empty(_) => NEW_WORKSPACE,
    }
}
