//! Tables and properties for this file.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::{Limits, Past, Window, retain, window};
use crate::domain::{CallId, Entry, ModelCall, Weighed};
use crate::history::shorten::{SHORT, SHORTEST};

fn call_id(index: usize) -> CallId {
    CallId::new(0, index)
}

/// `u` a person, `a` an answer, `c` an answer with one call, `r` its result, `n` a remark; a digit
/// after `r` makes that many thousand bytes of it.
fn entries(shape: &str) -> Vec<Arc<Weighed>> {
    entries_from(shape, 0)
}

/// The same, counted from `first`.
fn entries_from(shape: &str, first: usize) -> Vec<Arc<Weighed>> {
    let mut entries: Vec<Arc<Weighed>> = Vec::new();
    for kind in shape.chars() {
        let index = first + entries.len();
        if let Some(digit) = kind.to_digit(10) {
            if let Some(Entry::ToolResult { text, .. }) = entries
                .last_mut()
                .map(|last| Arc::make_mut(last).entry_mut())
            {
                *text = "x".repeat(digit as usize * 1_000);
            }
            continue;
        }
        entries.push(Weighed::new(match kind {
            'u' => Entry::User {
                seq: index as u64,
                text: "x".into(),
                attachments: vec![],
            },
            'n' => Entry::Note { text: "x".into() },
            'r' => Entry::ToolResult {
                call_id: call_id(index - 1),
                provider_id: String::new(),
                name: "t".into(),
                text: "x".into(),
                is_error: false,
                attachments: vec![],
            },
            kind => Entry::Assistant {
                text: "x".into(),
                calls: (kind == 'c')
                    .then(|| ModelCall {
                        id: call_id(index),
                        provider_id: String::new(),
                        name: "t".into(),
                        args: json!({}),
                    })
                    .into_iter()
                    .collect(),
                native: None,
            },
        }));
    }
    entries
}

fn past(entries: &[Arc<Weighed>]) -> Past<'_> {
    Past {
        entries,
        question: None,
    }
}

fn limits(max_tokens: Option<u64>, max_messages: Option<usize>) -> Limits {
    Limits {
        max_tokens,
        max_messages,
    }
}

/// A token for each byte of a result, and ten for anything else.
fn count(entry: &Entry) -> u64 {
    match entry {
        Entry::ToolResult { text, .. } => text.len() as u64,
        Entry::User { .. } | Entry::Assistant { .. } | Entry::Note { .. } => 10,
    }
}

/// Asserts S0.33, S2.63, S3.35.
#[test]
fn a_window_leaves_a_tenth_and_what_is_taken_free() {
    let check = |max_tokens, window, expected| {
        let limits = limits(max_tokens, None);
        assert_eq!(limits.within(window, 500).max_tokens, Some(expected));
    };
    check(None, 10_000, 8_500);
    check(Some(30_000), 10_000, 8_500);
    check(Some(3_000), 10_000, 3_000);
    check(None, 100, 0);
}

#[test]
fn wider_limits_are_known() {
    assert!(limits(Some(1), Some(1)).are_within(limits(None, Some(1))));
    assert!(limits(None, None).are_within(limits(None, None)));
    assert!(!limits(None, Some(1)).are_within(limits(Some(9), Some(1))));
    assert!(!limits(Some(9), Some(2)).are_within(limits(Some(9), Some(1))));
}

#[test]
fn the_newest_turn_begins_with_its_question() {
    fn check(shape: &str, question: Option<u64>, expected: usize) {
        let entries = entries(shape);
        let past = Past {
            entries: &entries,
            question,
        };
        assert_eq!(past.newest_turn(), expected, "{shape} {question:?}");
    }
    check("uaucrcr", None, 5);
    check("uau", None, 1);
    check("crcr", None, 4);
    check("", None, 0);
    // Said while the turn ran.
    check("uaucrucr", Some(2), 6);
    check("uaucrucr", None, 3);
    // The question is gone, or was never here.
    check("uaucr", Some(9), 3);
    check("uaucr", Some(0), 5);
    check("uannucr", None, 5);
}

/// Asserts S0.13, S3.5.
#[test]
fn the_newest_groups_that_fit_are_kept_and_the_newest_turn_always() {
    fn check(shape: &str, (tokens, messages): (Option<u64>, Option<usize>), expected: usize) {
        let shown = window(past(&entries(shape)), limits(tokens, messages), |_| 10);
        assert_eq!(
            shown.entries.len(),
            expected,
            "{shape} {tokens:?} {messages:?}"
        );
    }
    check("uaucr", (None, None), 5);
    check("uaucr", (Some(49), None), 4);
    check("uaucr", (Some(30), None), 3);
    check("uaucr", (Some(20), None), 3);
    check("uaucr", (Some(1), None), 3);
    check("uaucr", (None, Some(1)), 3);
    // A call is not parted from its result.
    check("ucru", (None, Some(2)), 1);
    check("", (Some(1), Some(1)), 0);
}

/// The shape of a window: small letters, and `R` for a result in short form, `S` for the shortest.
fn shape(shown: &Window) -> String {
    let letter = |entry: &Arc<Weighed>| match &***entry {
        Entry::User { .. } => 'u',
        Entry::Note { .. } => 'n',
        Entry::Assistant { calls, .. } if calls.is_empty() => 'a',
        Entry::Assistant { .. } => 'c',
        Entry::ToolResult { text, .. } if !text.contains("was shortened") => 'r',
        Entry::ToolResult { text, .. } if text.len() < 2 * SHORTEST => 'S',
        Entry::ToolResult { text, .. } if text.len() < SHORT + 400 => 'R',
        Entry::ToolResult { .. } => 'M',
    };
    shown.entries.iter().map(letter).collect()
}

/// Asserts S2.9.
#[test]
fn results_are_shortened_before_the_question_or_half_of_the_past_goes() {
    fn check(all: &str, most: u64, expected: &str) {
        let shown = window(past(&entries(all)), limits(Some(most), None), |entry| {
            count(entry)
        });
        assert_eq!(
            shape(&shown),
            expected,
            "{all} in {most}: {} tokens",
            shown.tokens
        );
        let short = shown.entries.iter().map(|entry| count(entry)).sum::<u64>();
        assert_eq!(shown.tokens, short, "{all}");
        assert!(shown.whole_tokens >= shown.tokens);
    }
    check("ucr9cr9", 20_000, "ucrcr");
    // What was read is shortened, the oldest first, and only as many as have to be.
    check("ucr9cr9cr9", 27_000, "ucRcrcr");
    check("ucr9cr9cr9", 20_000, "ucRcRcr");
    check("uaucr9cr9", 12_000, "uaucRcr");
    // What was not read yet is shortened last, then everything once more.
    check("ucr9", 8_000, "ucM");
    check("ucr9cr9", 6_000, "ucRcM");
    check("ucr9cr9", 4_300, "ucScR");
    check("ucr9cr9", 1_600, "ucScS");
    check("ucr9cr9", 10, "ucScS");
    // Earlier turns: short before they are gone, the newest whole as long as they can be.
    check("ucr9aucr9au", 11_000, "ucRaucRau");
    check("ucr9aucr9au", 13_000, "ucRaucrau");
    check("ucr9aucr9au", 3_000, "aucRau");
    // A large turn takes no more than half from them, a small one gives nothing away.
    check("ucr9aucr9aucr9cr9", 14_000, "aucRaucRcr");
    check("ucr5cr5cr5aucr3cr3", 9_000, "cRaucrcr");
}

fn any_shape() -> impl Strategy<Value = String> {
    let turn = "n?u(c(r[0-9]?){1,3}|u){0,6}a?";
    prop::collection::vec(turn, 0..6).prop_map(|turns| turns.concat())
}

/// Every call has its results right behind it, and no result is without its call.
fn check_pairs(shown: &Window, all: &[Arc<Weighed>]) {
    let first = shown.entries.first().map(|entry| &***entry);
    assert!(!matches!(first, Some(Entry::ToolResult { .. })) || shown.left_out == 0);
    let whole = &all[shown.left_out..];
    assert_eq!(whole.len(), shown.entries.len());
    for (shown, whole) in shown.entries.iter().zip(whole) {
        match (&***shown, &***whole) {
            (
                Entry::ToolResult { call_id: shown, .. },
                Entry::ToolResult { call_id: whole, .. },
            ) => assert_eq!(shown, whole),
            (shown, whole) => assert_eq!(shown, whole, "only results change"),
        }
    }
}

proptest! {
    /// Asserts S3.41, O15.
    #[test]
    fn the_question_and_all_after_it_are_shown_whatever_the_past_is(
        shape in any_shape(),
        tokens in 0_u64..40_000,
        messages in prop::option::of(0_usize..40),
        question in prop::option::of(0_u64..40),
    ) {
        let all = entries(&shape);
        let past = Past { entries: &all, question };
        let limits = limits(Some(tokens), messages);
        let shown = window(past, limits, |entry| count(entry));
        check_pairs(&shown, &all);
        prop_assert!(shown.entries.len() >= past.newest_turn());
        let newest = all.iter().rposition(|entry| matches!(***entry, Entry::User { .. }));
        if let Some(newest) = newest {
            prop_assert!(shown.left_out <= newest, "the newest message is gone");
        }
        if shown.tokens > tokens {
            // Nothing more could be done: only the turn is left, every result as short as can be.
            prop_assert_eq!(shown.entries.len(), past.newest_turn());
            let longest = shown.entries.iter().filter_map(|entry| crate::history::shorten::length(entry));
            prop_assert!(longest.max().unwrap_or_default() <= SHORTEST + 400);
        }
        prop_assert_eq!(shown.tokens, shown.entries.iter().map(|entry| count(entry)).sum::<u64>());
    }

    /// Asserts S2.9.
    #[test]
    fn what_is_retained_is_enough_for_every_later_window(
        shape in any_shape(),
        more in "(c(r[0-9]?){1,3}){0,3}a?",
        later in prop::option::of("u(c(r[0-9]?){1,3}){0,3}a?"),
        tokens in 0_u64..40_000,
        messages in prop::option::of(0_usize..40),
    ) {
        let all = entries(&shape);
        let newest = all.iter().rev().find_map(|entry| match ***entry {
            Entry::User { seq, .. } => Some(seq),
            Entry::Assistant { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => None,
        });
        let limits = limits(Some(tokens), messages);
        let retained = retain(Past { entries: &all, question: newest }, limits, |entry| count(entry));
        let mut whole = all.clone();
        let mut kept = retained.clone();
        for added in [Some(more), later].into_iter().flatten() {
            let added = entries_from(&added, whole.len());
            whole.extend(added.clone());
            kept.extend(added);
            let shown = window(past(&whole), limits, |entry| count(entry));
            let from_kept = window(past(&kept), limits, |entry| count(entry));
            prop_assert_eq!(shown.entries, from_kept.entries);
            prop_assert_eq!(shown.shortened, from_kept.shortened);
        }
    }
}
