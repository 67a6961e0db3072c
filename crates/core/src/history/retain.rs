//! Decides which entries a session keeps in memory for later requests.

use std::sync::Arc;

use super::compaction::form;
use super::groups::{groups, tokens_when_short};
use super::limits::Limits;
use super::past::Past;
use crate::domain::CountedEntry;
use crate::session::Gaps;

/// The entries to keep, and the gaps between them.
#[derive(Debug, Clone, PartialEq)]
pub struct RetainedEntries {
    pub entries: Vec<Arc<CountedEntry>>,
    pub gaps: Gaps,
}

/// Returns the entries that any later window within these limits can need: those that the newest compaction
/// shows, and as many of the left-out ones as a model with another window could be sent. `None` = keep
/// everything unchanged.
pub fn retain(
    past: Past<'_>,
    limits: Limits,
    count: impl Fn(&CountedEntry) -> u64,
) -> Option<RetainedEntries> {
    let made = past.compaction?;
    let (earlier, turn) = past.parted();
    let newest = newest_within(earlier, turn, limits, &count);
    // The limits also apply to models with a wider window, so that results stay short.
    let is_short = limits.keep(made);
    let indexed = past.entries.iter().enumerate();
    let placed = indexed.map(|(index, entry)| (index, past.gaps.place(index), entry));
    let retained = placed.filter(|(index, place, _)| *index >= newest || made.keeps(*place));
    let (at, entries): (Vec<_>, Vec<_>) = retained
        .map(|(index, place, entry)| {
            let is_short = is_short && index < earlier.len();
            let entry = if is_short {
                form(entry, place, made)
            } else {
                Arc::clone(entry)
            };
            (place, entry)
        })
        .unzip();
    Some(RetainedEntries {
        entries,
        gaps: Gaps::between(at, past.gaps.place(past.entries.len())),
    })
}

/// The index of the oldest earlier group that fits beside the turn with shortened results.
fn newest_within(
    earlier: &[Arc<CountedEntry>],
    turn: &[Arc<CountedEntry>],
    limits: Limits,
    count: &impl Fn(&CountedEntry) -> u64,
) -> usize {
    let mut used = tokens_when_short(turn, count);
    let mut from = earlier.len();
    for group in groups(earlier) {
        used = used.saturating_add(tokens_when_short(group, count));
        let messages = earlier.len() - from + group.len() + turn.len();
        let is_within = limits.max_tokens.is_none_or(|most| used <= most)
            && limits.max_messages.is_none_or(|most| messages <= most);
        if !is_within {
            break;
        }
        from -= group.len();
    }
    from
}
