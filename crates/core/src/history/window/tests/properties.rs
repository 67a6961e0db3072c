//! Tests what holds for any past, limits and strategies.

use std::sync::Arc;

use proptest::prelude::*;

use super::{count, entries, entries_from, limits, past};
use crate::domain::StrategyName::{self, DeleteMiddle, DeleteOld, PartialSummary};
use crate::domain::{CountedEntry, Entry, TokenUsage};
use crate::history::shorten::SHORTEST;
use crate::history::{Past, Window, retain, window};
use crate::session::{Compaction, Gaps, SummarisedBy};

fn any_shape() -> impl Strategy<Value = String> {
    let turn = "n?u(c(r[0-9]?){1,3}|u){0,6}a?";
    prop::collection::vec(turn, 0..6).prop_map(|turns| turns.concat())
}

fn any_strategies() -> impl Strategy<Value = Vec<StrategyName>> {
    let some = prop::sample::subsequence(vec![DeleteMiddle, DeleteOld, PartialSummary], 1..4);
    some.prop_shuffle()
}

/// Checks that results directly follow their calls, that no result lacks its call, and that the entries
/// keep their order.
fn check_pairs(shown: &[Arc<CountedEntry>], all: &[Arc<CountedEntry>]) {
    let mut rest = all.iter();
    let mut open = Vec::new();
    for entry in shown {
        let is_said = |said: &&Arc<CountedEntry>| match (&***entry, &****said) {
            (Entry::ToolResult { call_id: shown, .. }, Entry::ToolResult { call_id: said, .. }) => {
                shown == said
            }
            (
                Entry::Assistant { text, calls, .. },
                Entry::Assistant {
                    text: said_text,
                    calls: said,
                    ..
                },
            ) => text == said_text && calls == said,
            (shown, said) => shown == said,
        };
        let is_own = matches!(&***entry, Entry::Note { text } if text.contains("left out here"));
        assert!(
            is_own || rest.any(|said| is_said(&said)),
            "`{entry:?}` was not said there"
        );
        match &***entry {
            Entry::ToolResult { call_id, .. } => {
                let at = open.iter().position(|call| call == call_id);
                if let Some(at) = at {
                    open.remove(at);
                }
            }
            Entry::Assistant { calls, .. } => {
                open.extend(calls.iter().map(|call| call.id.clone()));
            }
            Entry::User { .. } | Entry::Note { .. } => {}
        }
    }
}

/// Adds a summary if one is due.
fn summarised(shown: Window) -> Window {
    let Some(due) = &shown.due else {
        return shown;
    };
    let by = SummarisedBy {
        provider: "p".into(),
        model: "m".into(),
        usage: TokenUsage::default(),
        cost: None,
    };
    assert!(
        due.max_tokens >= 100,
        "{} tokens are no room",
        due.max_tokens
    );
    let words = format!("{} entries after {:?}", due.entries.len(), due.earlier);
    shown.summarised(&words, by, |entry| count(entry))
}

/// Number of entries of a turn with this shape.
fn added_turn(shape: &str) -> usize {
    shape.chars().filter(|kind| kind.is_alphabetic()).count()
}

proptest! {
    /// Asserts S0.11, S3.41, O15.
    #[test]
    fn the_question_and_all_after_it_are_shown_whatever_the_past_is(
        shape in any_shape(),
        tokens in 0_u64..40_000,
        messages in prop::option::of(0_usize..40),
        question in prop::option::of(0_u64..40),
        strategies in any_strategies(),
    ) {
        let all = entries(&shape);
        let past = Past { question, ..past(&all) };
        let limits = limits(Some(tokens), messages);
        let shown = window(past, limits, &strategies, |entry| count(entry));
        check_pairs(&shown.entries, &all);
        let turn = past.newest_turn();
        prop_assert!(shown.entries.len() >= turn);
        let newest = |entries: &[Arc<CountedEntry>]| {
            let mut seqs = entries.iter().rev().filter_map(crate::history::past::seq);
            seqs.next()
        };
        prop_assert_eq!(newest(&shown.entries), newest(&all), "the newest message is gone");
        if shown.tokens > tokens {
            // Nothing more can be removed: only the turn is left, with all results at their shortest.
            prop_assert_eq!(shown.entries.len(), turn);
            let longest = shown.entries.iter().filter_map(|entry| crate::history::shorten::length(entry));
            prop_assert!(longest.max().unwrap_or_default() <= SHORTEST + 400);
        }
        let said = shown.entries.len() - usize::from(shown.entries.iter().any(|entry| {
            matches!(&***entry, Entry::Note { text } if text.contains("left out here"))
        }));
        prop_assert!(said <= messages.unwrap_or(usize::MAX).max(turn));
        prop_assert_eq!(said as u64 + shown.left_out, all.len() as u64);
        prop_assert_eq!(shown.tokens, shown.entries.iter().map(|entry| count(entry)).sum::<u64>());
    }

    /// Asserts S2.9: entries that a session forgets change no later request, and entries left out of a
    /// request stay left out until room runs out again: between two compactions, each request begins with
    /// the one before.
    #[test]
    fn requests_are_the_same_from_what_is_retained_and_begin_alike(
        turns in prop::collection::vec("u(c(r[0-9]?){1,3}){0,3}a", 1..12),
        tokens in 0_u64..40_000,
        messages in prop::option::of(0_usize..40),
        strategies in any_strategies(),
        forgets in any::<u16>(),
    ) {
        let limits = limits(Some(tokens), messages);
        let (mut whole, mut kept) = (Vec::new(), Vec::new());
        let (mut gaps, mut made) = (Gaps::default(), None::<Compaction>);
        let mut before: Vec<Arc<CountedEntry>> = Vec::new();
        for (index, turn) in turns.iter().enumerate() {
            let added = entries_from(turn, whole.len());
            whole.extend(added.clone());
            kept.extend(added);
            let compaction = made.as_ref();
            let of_whole = Past { compaction, ..past(&whole) };
            let of_kept = Past { gaps: &gaps, compaction, ..past(&kept) };
            let shown = summarised(window(of_whole, limits, &strategies, |entry| count(entry)));
            let from_kept = summarised(window(of_kept, limits, &strategies, |entry| count(entry)));
            let limit = tokens.max(shown.entries.iter().rev().take(added_turn(turn)).map(|entry| count(entry)).sum());
            prop_assert!(shown.tokens <= limit, "{} of {tokens}", shown.tokens);
            prop_assert_eq!(&shown.entries, &from_kept.entries);
            prop_assert_eq!(shown.left_out, from_kept.left_out);
            if shown.compacted.is_none() && shown.shortened == 0 {
                let same = before.iter().zip(&shown.entries);
                prop_assert!(same.filter(|(before, now)| before == now).count() == before.len());
            }
            if let Some(compacted) = shown.compacted {
                made = Some(compacted.compaction);
            }
            before = if shown.shortened == 0 { shown.entries } else { Vec::new() };
            let past = Past { compaction: made.as_ref(), gaps: &gaps, ..past(&kept) };
            let retained = retain(past, limits, |entry| count(entry));
            if let Some(retained) = retained.filter(|_| forgets >> index & 1 == 1) {
                (kept, gaps) = (retained.entries, retained.gaps);
            }
        }
    }
}
