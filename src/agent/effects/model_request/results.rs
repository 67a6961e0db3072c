//! Lets a model read whole results of this session that it was shown in a short form.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::journal::Journal;
use crate::domain::{CallId, CountedEntry, Entry};
use crate::history::{PartOfResult, Past, no_result};
use crate::session::Resolution;

/// The sources of whole results.
pub(super) struct Results<'a> {
    /// The history that the model may read now.
    pub(super) past: Past<'a>,
    /// The journal, which has all results up to `version`.
    pub(super) journal: &'a Journal,
    pub(super) version: u64,
}

impl Results<'_> {
    /// Answers a call of `read_more`. It shows only results that the model was given before.
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
        // For earlier turns, memory may have only the short form.
        let state = self.journal.whole(self.version).await.map_err(|error| {
            tracing::warn!(?error, "A result cannot be read again");
            "the result cannot be read now; try again later".to_owned()
        })?;
        let whole = result_of(&asked.call, &state.entries);
        asked.of(whole.ok_or_else(|| no_result(&asked.call))?)
    }
}

fn result_of<'a>(call: &CallId, entries: &'a [Arc<CountedEntry>]) -> Option<&'a str> {
    entries.iter().rev().find_map(|entry| match &***entry {
        Entry::ToolResult { call_id, text, .. } => (call_id == call).then_some(text.as_str()),
        Entry::User { .. } | Entry::Assistant { .. } | Entry::Note { .. } => None,
    })
}
