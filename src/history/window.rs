//! The newest entries that fit the limits; a call is never parted from its results (S2.9).

use std::sync::Arc;

use crate::domain::Entry;

/// What the model may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Tokens of history; `None` = no limit.
    pub max_tokens: Option<u64>,
    /// Entries of history; `None` = no limit.
    pub max_messages: Option<usize>,
}

/// What the model is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The entries, oldest first.
    pub entries: Vec<Arc<Entry>>,
    /// How many older ones fell out.
    pub left_out: usize,
    /// Tokens of `entries`, by the counter.
    pub tokens: u64,
}

/// Keeps the newest groups that fit. A group is an assistant's calls with their results, or one
/// other entry. The newest group is kept whatever it costs: without it there is no question.
pub fn window(entries: &[Arc<Entry>], limits: Limits, count: impl Fn(&Entry) -> u64) -> Window {
    let mut start = entries.len();
    let mut tokens = 0;
    for (from, to) in groups(entries).into_iter().rev() {
        let group = entries.get(from..to).unwrap_or_default();
        let cost: u64 = group.iter().map(|entry| count(entry)).sum();
        let fits = limits.max_tokens.is_none_or(|most| tokens + cost <= most)
            && limits
                .max_messages
                .is_none_or(|most| entries.len() - from <= most);
        if !fits && start < entries.len() {
            break;
        }
        start = from;
        tokens += cost;
    }
    let kept = entries.get(start..).unwrap_or_default();
    Window {
        entries: kept.to_vec(),
        left_out: start,
        tokens,
    }
}

/// Start and end of every group, oldest first.
fn groups(entries: &[Arc<Entry>]) -> Vec<(usize, usize)> {
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        match (&**entry, groups.last_mut()) {
            (Entry::ToolResult { .. }, Some((_, end))) => *end = index + 1,
            _ => groups.push((index, index + 1)),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::{Limits, window};
    use crate::domain::{CallId, Entry, ModelCall};

    fn call_id(index: usize) -> CallId {
        CallId::new(0, index)
    }

    /// `u` a person, `a` an answer, `c` an answer with one call, `r` its result.
    fn entries(shape: &str) -> Vec<Arc<Entry>> {
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
        shape.chars().enumerate().map(entry).map(Arc::new).collect()
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
                matches!(shown.entries.first().map(|entry| &**entry), Some(Entry::ToolResult { .. }));
            prop_assert!(!starts_with_result);
        }
    }
}
