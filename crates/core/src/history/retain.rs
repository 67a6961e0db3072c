//! Decides which entries a session keeps in memory for later requests.

use std::sync::Arc;

use super::compaction::form;
use super::groups::{groups, tokens_when_short};
use super::limits::Limits;
use super::past::Past;
use crate::domain::CountedEntry;
use crate::session::Gap;

/// The entries to keep, and the gap between them.
#[derive(Debug, Clone, PartialEq)]
pub struct RetainedEntries {
    pub entries: Vec<Arc<CountedEntry>>,
    pub gap: Gap,
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
    let gap = past.gap;
    let mut head = gap.index(made.head).min(earlier.len());
    if gap.entries > 0 {
        head = head.min(gap.after);
    }
    let newest = newest_within(earlier, turn, limits, &count);
    let from = gap.index(made.from).min(newest).min(earlier.len());
    let from = from
        .max(head)
        .max(if gap.entries > 0 { gap.after } else { 0 });
    // The limits also apply to models with a wider window, so that results stay short.
    let is_short = limits.keep(made);
    let stays = earlier.iter().enumerate();
    let stays = stays.filter(|(index, _)| *index < head || *index >= from);
    let stays = stays.map(|(index, entry)| {
        if is_short {
            form(entry, gap.place(index), made)
        } else {
            Arc::clone(entry)
        }
    });
    Some(RetainedEntries {
        entries: stays.chain(turn.iter().cloned()).collect(),
        gap: Gap {
            after: head,
            entries: gap.entries + (from - head) as u64,
        },
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
