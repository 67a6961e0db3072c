//! A compaction strategy of one's own: what a person marked with an exclamation mark stays, the rest of the
//! earlier conversation leaves first.
//!
//! `cargo run --example custom_compaction`
#![expect(clippy::print_stdout, reason = "it prints what a model would read")]

use std::sync::Arc;

use sepal::domain::{CountedEntry, Entry, StrategyName};
use sepal::history::{CompactionStrategy, EarlierHistory, Group, Limits, Past, window};
use sepal::session::Gaps;

/// Keeps messages that begin with an exclamation mark, as far as there is room.
struct KeepMarked;

impl CompactionStrategy for KeepMarked {
    fn name(&self) -> &'static str {
        "keep-marked"
    }

    // `None` says that there is nothing to do here, and the next strategy is asked.
    fn select(&self, history: &EarlierHistory<'_>) -> Option<Vec<bool>> {
        let kept: Vec<bool> = history.groups.iter().map(is_marked).collect();
        kept.contains(&true).then_some(kept)
    }
}

fn is_marked(group: &Group<'_>) -> bool {
    group
        .entries
        .iter()
        .any(|entry| matches!(&***entry, Entry::User { text, .. } if text.starts_with('!')))
}

fn main() {
    let said = [
        ("user", "Hello"),
        ("assistant", "How can I help?"),
        ("user", "!The shop is closed on Mondays"),
        ("assistant", "Noted."),
        ("user", "And the one in Ulm?"),
        ("assistant", "It is open."),
        ("user", "When can I come?"),
    ];
    let entries: Vec<_> = said
        .map(|(role, text)| CountedEntry::new(Entry::message(role, text)))
        .into();
    let past = Past {
        entries: &entries,
        question: None,
        gaps: Gaps::NONE,
        compaction: None,
        compactor: None,
    };
    let limits = Limits {
        max_tokens: Some(40),
        max_messages: None,
    };
    // In the gateway, `Extensions::strategies` come before those that the settings name.
    let strategies: [Arc<dyn CompactionStrategy>; 2] =
        [Arc::new(KeepMarked), Arc::new(StrategyName::DeleteOld)];
    let shown = window(past, limits, &strategies, |_: &CountedEntry| 10);
    for entry in &shown.entries {
        println!("{entry:?}");
    }
}
