//! Whole results of this session that its model reads on, where it was shown a short form.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::journal::Journal;
use crate::domain::{CallId, Entry, Weighed};
use crate::history::{PartOfResult, Past, no_result};
use crate::session::Resolution;

/// Where they are.
pub(super) struct Results<'a> {
    /// What the model may read now.
    pub(super) past: Past<'a>,
    /// What it was given, up to that version.
    pub(super) journal: &'a Journal,
    pub(super) version: u64,
}

impl Results<'_> {
    /// What a call of `read_more` is answered: what it shows, the model was given before.
    pub(super) async fn read(&self, args: &Value) -> Resolution {
        let part = self.part(args).await;
        part.map_or_else(Resolution::Invalid, Resolution::Answered)
    }

    async fn part(&self, args: &Value) -> Result<String, String> {
        let asked = PartOfResult::asked(args)?;
        let (earlier, turn) = self.past.parted();
        if let Some(whole) = result_of(&asked.call, turn) {
            return asked.of(whole);
        }
        if result_of(&asked.call, earlier).is_none() {
            return Err(no_result(&asked.call));
        }
        // Of earlier turns the session may hold no more than the short form.
        let state = self.journal.whole(self.version).await.map_err(|error| {
            tracing::warn!(?error, "A result cannot be read again");
            "the result cannot be read now; try again later".to_owned()
        })?;
        let whole = result_of(&asked.call, &state.entries);
        asked.of(whole.ok_or_else(|| no_result(&asked.call))?)
    }
}

fn result_of<'a>(call: &CallId, entries: &'a [Arc<Weighed>]) -> Option<&'a str> {
    entries.iter().rev().find_map(|entry| match &***entry {
        Entry::ToolResult { call_id, text, .. } => (call_id == call).then_some(text.as_str()),
        Entry::User { .. } | Entry::Assistant { .. } | Entry::Note { .. } => None,
    })
}
