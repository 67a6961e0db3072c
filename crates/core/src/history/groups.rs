//! Splits entries into groups that stay together: calls with their results, or one other entry.

use std::sync::Arc;

use super::shorten::{SHORT, shorten};
use crate::domain::{CountedEntry, Entry};

/// The groups of these entries, the newest first.
pub(super) fn groups(
    mut entries: &[Arc<CountedEntry>],
) -> impl Iterator<Item = &[Arc<CountedEntry>]> {
    std::iter::from_fn(move || {
        let begins = |entry: &Arc<CountedEntry>| !matches!(***entry, Entry::ToolResult { .. });
        let (rest, group) = match entries.iter().rposition(begins) {
            Some(at) => entries.split_at(at),
            None if entries.is_empty() => return None,
            None => entries.split_at(0),
        };
        entries = rest;
        Some(group)
    })
}

pub(super) fn tokens(entries: &[Arc<CountedEntry>], count: &impl Fn(&CountedEntry) -> u64) -> u64 {
    entries.iter().map(|entry| count(entry)).sum()
}

pub(super) fn tokens_when_short(
    entries: &[Arc<CountedEntry>],
    count: &impl Fn(&CountedEntry) -> u64,
) -> u64 {
    let short = |entry: &Arc<CountedEntry>| {
        let short = shorten(entry, SHORT);
        short.map_or_else(|| count(entry), |short| count(&short))
    };
    entries.iter().map(short).sum()
}
