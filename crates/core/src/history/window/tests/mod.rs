//! Tests by tables which entries fit, and which are dropped.

mod properties;

use std::sync::Arc;

use serde_json::json;

use crate::domain::{CallId, CountedEntry, Entry, ModelCall, Native, StrategyName, TokenUsage};
use crate::history::shorten::{SHORT, SHORTEST};
use crate::history::{CompactionStrategy, EarlierHistory, Group, Limits, Past, Window, window};
use crate::session::{Gaps, SummarisedBy};

use StrategyName::{DeleteMiddle, DeleteOld, None as Keep, PartialSummary};

fn call_id(index: usize) -> CallId {
    CallId::new(0, index)
}

/// Entries by letter: `u` = a user message, `a` = an answer, `t` = an answer with reasoning, `c` = an
/// answer with one call, `r` = its result, `n` = a note; a digit after `r` gives the result that many
/// thousand bytes.
fn entries(shape: &str) -> Vec<Arc<CountedEntry>> {
    entries_from(shape, 0)
}

/// The same entries, numbered from `first`.
fn entries_from(shape: &str, first: usize) -> Vec<Arc<CountedEntry>> {
    let mut entries: Vec<Arc<CountedEntry>> = Vec::new();
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
        entries.push(CountedEntry::new(match kind {
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
                native: (kind == 't').then(|| Native {
                    family: "any".into(),
                    blocks: json!([]),
                    compacts: false,
                }),
            },
        }));
    }
    entries
}

fn past(entries: &[Arc<CountedEntry>]) -> Past<'_> {
    Past {
        entries,
        question: None,
        gaps: Gaps::NONE,
        compaction: None,
        compactor: None,
    }
}

fn limits(max_tokens: Option<u64>, max_messages: Option<usize>) -> Limits {
    Limits {
        max_tokens,
        max_messages,
    }
}

/// One token for each byte of a result, a thousand for reasoning, and ten for anything else.
fn count(entry: &Entry) -> u64 {
    match entry {
        Entry::ToolResult { text, .. } => text.len() as u64,
        Entry::Assistant {
            native: Some(_), ..
        } => 1_010,
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
    check(None, 16_385, 14_246);
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
            question,
            ..past(&entries)
        };
        assert_eq!(past.newest_turn(), expected, "{shape} {question:?}");
    }
    check("uaucrcr", None, 5);
    check("uau", None, 1);
    check("crcr", None, 4);
    check("", None, 0);
    // A message during the turn.
    check("uaucrucr", Some(2), 6);
    check("uaucrucr", None, 3);
    // The question was dropped, or never existed.
    check("uaucr", Some(9), 3);
    check("uaucr", Some(0), 5);
    check("uannucr", None, 5);
}

/// Asserts S0.13, S3.5.
#[test]
fn the_newest_groups_that_fit_are_kept_and_the_newest_turn_always() {
    fn check(shape: &str, (tokens, messages): (Option<u64>, Option<usize>), expected: usize) {
        let limits = limits(tokens, messages);
        let shown = window(past(&entries(shape)), limits, &[DeleteOld], |_| 10);
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
    // A call is not separated from its result.
    check("ucru", (None, Some(2)), 1);
    check("", (Some(1), Some(1)), 0);
}

/// The shape of a window in the letters of [`entries`]; shortened results are `R`, those at their shortest
/// `S`, and longer ones `M`.
fn shape(shown: &Window) -> String {
    let letter = |entry: &Arc<CountedEntry>| match &***entry {
        Entry::User { .. } => 'u',
        Entry::Note { text } if text.contains("left out here") => '…',
        Entry::Note { .. } => 'n',
        Entry::Assistant {
            native: Some(_), ..
        } => 't',
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
        let limits = limits(Some(most), None);
        let shown = window(past(&entries(all)), limits, &[DeleteOld], |entry| {
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
    // Read results are shortened, the oldest first, and no more than necessary.
    check("ucr9cr9cr9", 27_000, "ucRcrcr");
    check("ucr9cr9cr9", 20_000, "ucRcRcr");
    check("uaucr9cr9", 12_000, "uaucRcr");
    // Unread results are shortened last, then everything once more.
    check("ucr9", 8_000, "ucM");
    check("ucr9cr9", 6_000, "ucRcM");
    check("ucr9cr9", 4_300, "ucScR");
    check("ucr9cr9", 1_600, "ucScS");
    check("ucr9cr9", 10, "ucScS");
    // Earlier turns are shortened before they are dropped, and the newest stays whole as long as possible.
    check("ucr9aucr9au", 11_000, "ucRaucRau");
    check("ucr9aucr9au", 13_000, "ucRaucRau");
    check("ucr9aucr9au", 16_000, "ucRaucrau");
    check("ucr9aucr9au", 3_000, "aucRau");
    // A large turn takes no more than half of the room from earlier ones; a small one gives nothing up.
    check("ucr9aucr9aucr9cr9", 14_000, "aucRaucRcr");
    check("ucr5cr5cr5aucr3cr3", 9_000, "cRaucrcr");
}

/// Asserts S0.14, S3.12, S3.13, S4.24.
#[test]
fn the_first_turn_and_the_newest_stay_and_a_note_says_what_is_missing() {
    fn check(all: &str, (tokens, messages): (u64, Option<usize>), expected: &str) {
        let limits = limits(Some(tokens), messages);
        let shown = window(
            past(&entries(all)),
            limits,
            &[DeleteMiddle, DeleteOld],
            |entry| count(entry),
        );
        assert_eq!(shape(&shown), expected, "{all} in {tokens} {messages:?}");
        let made = shown.compacted.unwrap();
        let is_middle = expected.contains('…');
        assert_eq!(made.strategy == "delete-middle", is_middle, "{made:?}");
        assert_eq!(made.after.messages, expected.replace('…', "").len() as u64);
    }
    check("uauauauauau", (100, None), "u…uauau");
    check("uauauauauauauauau", (160, None), "ua…uauauauau");
    check("uauauauauau", (1_000, Some(9)), "ua…uauau");
    // The first turn is large: only its question stays.
    check("ucr9aucr9auauau", (3_000, None), "u…auauau");
    // Not even the question fits.
    check("uauauauauau", (70, None), "uauau");
    check("uauauauauau", (1_000, Some(4)), "uau");
}

/// Asserts S0.16.
#[test]
fn nothing_leaves_and_nothing_becomes_short_where_that_was_chosen() {
    let all = entries("ucr9aucr9");
    let shown = window(past(&all), limits(Some(100), Some(2)), &[Keep], |entry| {
        count(entry)
    });
    assert_eq!(shown.entries, all);
    assert_eq!(
        (shown.left_out, shown.shortened, shown.compacted),
        (0, 0, None)
    );
}

#[test]
fn thoughts_of_earlier_turns_go_before_the_turns_do() {
    let all = entries("utututut");
    let shown = window(
        past(&all),
        limits(Some(2_600), None),
        &[DeleteOld],
        |entry| count(entry),
    );
    assert_eq!(shape(&shown), "uauauaut");
    let made = shown.compacted.unwrap();
    assert_eq!((made.strategy.as_str(), made.left), ("drop-reasoning", 0));
    assert_eq!((made.before.tokens, made.after.tokens), (4_080, 1_080));
}

/// Asserts S0.15.
#[test]
fn a_summary_stands_for_what_left_and_for_the_summary_before_it() {
    let limits = limits(Some(1_000), None);
    let all = entries("uauauauauauau");
    let count = |entry: &CountedEntry| match &**entry {
        Entry::Note { .. } => 90,
        Entry::User { .. } | Entry::Assistant { .. } | Entry::ToolResult { .. } => 100,
    };
    let shown = window(past(&all), limits, &[PartialSummary, DeleteOld], count);
    let due = shown.due.clone().unwrap();
    assert_eq!(
        (due.entries.len(), due.earlier, due.max_tokens),
        (8, None, 122)
    );
    let by = SummarisedBy {
        provider: "p".into(),
        model: "m".into(),
        usage: TokenUsage::default(),
        cost: None,
    };
    let shown = shown.summarised("They greeted.", by.clone(), count);
    assert!(matches!(&**shown.entries[0], Entry::Note { text } if text.contains("They greeted.")));
    assert_eq!(
        (shown.entries.len(), shown.tokens, shown.left_out),
        (6, 590, 8)
    );
    let made = shown.compacted.unwrap();
    assert_eq!((made.strategy.as_str(), made.left), ("partial-summary", 8));
    assert_eq!((made.after.tokens, made.summarised_by), (590, Some(by)));

    // The summary stays unchanged until the next one includes it.
    let more = entries("uauauauauauauauauau");
    let again = |most: &[Arc<CountedEntry>]| {
        let compaction = Some(&made.compaction);
        window(
            Past {
                compaction,
                ..past(most)
            },
            limits,
            &[PartialSummary],
            count,
        )
    };
    let next = again(&more[..17]);
    assert_eq!(
        (next.entries.first(), next.due.is_none()),
        (shown.entries.first(), true)
    );
    let due = again(&more).due.unwrap();
    assert_eq!(due.earlier.as_deref(), Some("They greeted."));
}

#[test]
fn a_compaction_holds_until_the_limits_are_much_wider() {
    let all = entries("uauauauauau");
    let few = window(past(&all), limits(Some(80), None), &[DeleteOld], |entry| {
        count(entry)
    });
    let made = few.compacted.clone().unwrap().compaction;
    let compaction = Some(&made);
    for (most, expected) in [
        (75, few.entries.len()),
        (99, few.entries.len()),
        (101, 7),
        (1_000, 11),
    ] {
        let past = Past {
            compaction,
            ..past(&all)
        };
        let shown = window(past, limits(Some(most), None), &[DeleteOld], |entry| {
            count(entry)
        });
        assert_eq!(shown.entries.len(), expected, "{most}");
    }
}

/// The `seq`s of the messages of people in a window.
fn messages(shown: &Window) -> Vec<u64> {
    shown
        .entries
        .iter()
        .filter_map(crate::history::past::seq)
        .collect()
}

/// Asserts S0.14.
#[test]
fn turns_spread_evenly_over_the_middle_stay_until_the_next_compaction() {
    let all = entries(&format!("{}u", "ua".repeat(20)));
    let limits = limits(Some(260), None);
    let show = |past: Past<'_>| window(past, limits, &[DeleteMiddle], |_| 10);
    let shown = show(past(&all));
    assert_eq!(messages(&shown), [0, 8, 20, 30, 32, 34, 36, 38, 40]);
    let note = shown.entries.iter().find_map(|entry| match &***entry {
        Entry::Note { text } => Some(text.clone()),
        Entry::User { .. } | Entry::Assistant { .. } | Entry::ToolResult { .. } => None,
    });
    let text = note.unwrap();
    assert!(
        text.starts_with("23 messages") && text.contains("between the next ones"),
        "{text}"
    );
    assert_eq!((shown.left_out, shown.from_seq), (23, Some(30)));

    let made = shown.compacted.unwrap().compaction;
    let more = entries(&format!("{}u", "ua".repeat(22)));
    let compaction = Some(&made);
    let later = show(Past {
        compaction,
        ..past(&more)
    });
    assert_eq!(messages(&later)[..3], [0, 8, 20]);
    assert_eq!(later.compacted, None);
    let more = entries(&format!("{}u", "ua".repeat(40)));
    let later = show(Past {
        compaction,
        ..past(&more)
    });
    assert_eq!(later.compacted.unwrap().left, 40);
}

/// A strategy that drops the answers.
struct DropAnswers;

impl CompactionStrategy for DropAnswers {
    fn name(&self) -> &'static str {
        "drop-answers"
    }

    fn select(&self, history: &EarlierHistory<'_>) -> Option<Vec<bool>> {
        Some(history.groups.iter().map(Group::is_message).collect())
    }
}

/// Asserts S0.11, S3.12.
#[test]
fn strategies_of_ones_own_are_applied_one_after_the_other_until_the_rest_fits() {
    let strategies: [Arc<dyn CompactionStrategy>; 2] = [Arc::new(DropAnswers), Arc::new(DeleteOld)];
    for (most, expected, by) in [
        (100, "u…uuuuu", "drop-answers"),
        (70, "…uuuu", "delete-old"),
        (20, "u", "delete-old"),
    ] {
        let all = entries("uauauauauau");
        let limits = limits(Some(most), None);
        let shown = window(past(&all), limits, &strategies, |entry| count(entry));
        assert_eq!(shape(&shown), expected, "{most}");
        assert_eq!(shown.compacted.unwrap().strategy, by);
    }
}
