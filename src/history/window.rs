//! The newest entries that fit the limits; a call is never parted from its results (S2.9).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{Entry, Weighed};

/// What the model may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Tokens of history; `None` = no limit.
    pub max_tokens: Option<u64>,
    /// Entries of history; `None` = no limit.
    pub max_messages: Option<usize>,
}

impl Limits {
    /// These limits in a model that reads `window` tokens, `taken` of which are not history: a tenth
    /// stays free, because counts are estimates (S3.35).
    #[must_use]
    pub fn within(self, window: Option<u64>, taken: u64) -> Self {
        let room = window.map(|window| (window / 10 * 9).saturating_sub(taken));
        Self {
            max_tokens: match (self.max_tokens, room) {
                (Some(most), Some(room)) => Some(most.min(room)),
                (most, room) => most.or(room),
            },
            ..self
        }
    }

    /// Whether everything that these limits let through, `others` let through too.
    pub fn are_within(self, others: Self) -> bool {
        fn is_within<T: Ord>(most: Option<T>, other: Option<T>) -> bool {
            match (most, other) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(most), Some(other)) => most <= other,
            }
        }
        is_within(self.max_tokens, others.max_tokens)
            && is_within(self.max_messages, others.max_messages)
    }
}

/// What the model is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The entries, oldest first.
    pub entries: Vec<Arc<Weighed>>,
    /// How many older ones fell out.
    pub left_out: usize,
    /// Tokens of `entries`, by the counter.
    pub tokens: u64,
}

impl Window {
    /// `seq` of the oldest message of a person that the model reads.
    pub fn from_seq(&self) -> Option<u64> {
        self.entries.iter().find_map(|entry| match &***entry {
            Entry::User { seq, .. } => Some(*seq),
            Entry::Assistant { .. } | Entry::ToolResult { .. } | Entry::Note { .. } => None,
        })
    }
}

/// How many of the newest entries make up the newest message of a person and what came after it:
/// the least that a request can begin anew with (C2).
pub fn newest_turn(entries: &[Arc<Weighed>]) -> usize {
    let asked = entries
        .iter()
        .rposition(|entry| matches!(&***entry, Entry::User { .. }));
    asked.map_or(entries.len(), |index| entries.len() - index)
}

/// Keeps the newest groups that fit. A group is an assistant's calls with their results, or one
/// other entry. The newest group is kept whatever it costs: without it there is no question.
pub fn window(entries: &[Arc<Weighed>], limits: Limits, count: impl Fn(&Entry) -> u64) -> Window {
    let mut start = entries.len();
    let mut tokens = 0;
    let mut cost = 0;
    for (from, entry) in entries.iter().enumerate().rev() {
        cost += entry.weight(&count);
        if from > 0 && matches!(***entry, Entry::ToolResult { .. }) {
            // Its group begins further up.
            continue;
        }
        let fits = limits.max_tokens.is_none_or(|most| tokens + cost <= most)
            && limits
                .max_messages
                .is_none_or(|most| entries.len() - from <= most);
        if !fits && start < entries.len() {
            break;
        }
        start = from;
        tokens += std::mem::take(&mut cost);
    }
    let kept = entries.get(start..).unwrap_or_default();
    Window {
        entries: kept.to_vec(),
        left_out: start,
        tokens,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::{Limits, newest_turn, window};
    use crate::domain::{CallId, Entry, ModelCall, Weighed};

    fn call_id(index: usize) -> CallId {
        CallId::new(0, index)
    }

    /// `u` a person, `a` an answer, `c` an answer with one call, `r` its result.
    fn entries(shape: &str) -> Vec<Arc<Weighed>> {
        let entry = |(index, kind): (usize, char)| match kind {
            'u' => Entry::User {
                seq: index as u64,
                text: "x".into(),
            },
            'r' => Entry::ToolResult {
                call_id: call_id(index - 1),
                provider_id: String::new(),
                name: "t".into(),
                text: "x".into(),
                is_error: false,
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
        };
        shape
            .chars()
            .enumerate()
            .map(entry)
            .map(Weighed::new)
            .collect()
    }

    fn kept(shape: &str, max_tokens: Option<u64>, max_messages: Option<usize>) -> usize {
        window(
            &entries(shape),
            Limits {
                max_tokens,
                max_messages,
            },
            |_| 10,
        )
        .entries
        .len()
    }

    #[test]
    fn a_window_leaves_a_tenth_and_what_is_taken_free() {
        let check = |max_tokens, window, expected| {
            let limits = Limits {
                max_tokens,
                max_messages: None,
            };
            assert_eq!(limits.within(window, 500).max_tokens, expected);
        };
        check(None, None, None);
        check(Some(100), None, Some(100));
        check(None, Some(10_000), Some(8_500));
        check(Some(30_000), Some(10_000), Some(8_500));
        check(Some(3_000), Some(10_000), Some(3_000));
        check(None, Some(100), Some(0));
    }

    #[test]
    fn wider_limits_are_known() {
        let limits = |max_tokens, max_messages| Limits {
            max_tokens,
            max_messages,
        };
        assert!(limits(Some(1), Some(1)).are_within(limits(None, Some(1))));
        assert!(limits(None, None).are_within(limits(None, None)));
        assert!(!limits(None, Some(1)).are_within(limits(Some(9), Some(1))));
        assert!(!limits(Some(9), Some(2)).are_within(limits(Some(9), Some(1))));
    }

    #[test]
    fn a_fresh_context_begins_with_the_newest_message() {
        assert_eq!(newest_turn(&entries("uaucrcr")), 5);
        assert_eq!(newest_turn(&entries("uau")), 1);
        assert_eq!(newest_turn(&entries("crcr")), 4);
        assert_eq!(newest_turn(&[]), 0);
    }

    #[test]
    fn the_newest_groups_that_fit_are_kept() {
        assert_eq!(kept("uaucr", None, None), 5);
        assert_eq!(kept("uaucr", Some(30), None), 3);
        assert_eq!(kept("uaucr", Some(20), None), 2);
        assert_eq!(kept("uaucr", Some(1), None), 2, "the newest group stays");
        assert_eq!(kept("uaucr", None, Some(1)), 2);
        assert_eq!(
            kept("ucru", None, Some(2)),
            1,
            "a call is not parted from its result"
        );
        assert_eq!(kept("", Some(1), Some(1)), 0);
    }

    proptest! {
        #[test]
        fn a_call_is_never_parted_from_its_results(
            shape in "(u|a|cr|crr){0,30}",
            tokens in 0_u64..300,
            messages in 0_usize..30,
        ) {
            let all = entries(&shape);
            let limits = Limits { max_tokens: Some(tokens), max_messages: Some(messages) };
            let shown = window(&all, limits, |_| 10);
            prop_assert_eq!(shown.left_out + shown.entries.len(), all.len());
            prop_assert_eq!(&shown.entries[..], &all[shown.left_out..]);
            let starts_with_result =
                matches!(shown.entries.first().map(|entry| &***entry), Some(Entry::ToolResult { .. }));
            prop_assert!(!starts_with_result);
            // What is kept in the store is enough for every later request.
            let mut later = shown.entries.clone();
            later.extend(entries("ucr"));
            let mut whole = all.clone();
            whole.extend(entries("ucr"));
            prop_assert_eq!(
                window(&later, limits, |_| 10).entries,
                window(&whole, limits, |_| 10).entries
            );
        }
    }
}
