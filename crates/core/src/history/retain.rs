//! What a session has to hold so that no later request misses anything.

use std::sync::Arc;

use super::compaction::form;
use super::groups::{groups, tokens_when_short};
use super::limits::Limits;
use super::past::Past;
use crate::domain::Weighed;
use crate::session::Gap;

/// What is held, and what is missing between.
#[derive(Debug, Clone, PartialEq)]
pub struct Retained {
    pub entries: Vec<Arc<Weighed>>,
    pub gap: Gap,
}

/// What has to be kept for every later window with limits of a session: what its newest compaction
/// shows, and of what it leaves out as much as a model with another window could be shown. `None` =
/// everything, as it is.
pub fn retain(past: Past<'_>, limits: Limits, count: impl Fn(&Weighed) -> u64) -> Option<Retained> {
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
    // A wider window of the model does not bring results back that the session's limits forbid.
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
    Some(Retained {
        entries: stays.chain(turn.iter().cloned()).collect(),
        gap: Gap {
            after: head,
            entries: gap.entries + (from - head) as u64,
        },
    })
}

/// Where the newest earlier groups begin that fit beside the turn when results are short.
fn newest_within(
    earlier: &[Arc<Weighed>],
    turn: &[Arc<Weighed>],
    limits: Limits,
    count: &impl Fn(&Weighed) -> u64,
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
