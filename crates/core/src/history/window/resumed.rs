//! Builds a window that continues from a vendor's own compaction: its block replaces everything before the
//! answer that contains it.

use super::Window;
use crate::domain::CountedEntry;
use crate::history::groups::tokens;
use crate::history::limits::Limits;
use crate::history::past::{Past, seq};
use crate::history::turn::Turn;

/// The window from the newest block's answer on, including all of the newest turn; entries of the turn
/// before the block do not count, because the vendor skips them. `None` if there is no such block, or the
/// window does not fit even with shortened results.
pub(super) fn window(
    past: Past<'_>,
    limits: Limits,
    count: &impl Fn(&CountedEntry) -> u64,
) -> Option<Window> {
    let block = newest_block(past)?;
    let turn = past.entries.len() - past.newest_turn();
    let (read_past, rest) = past.entries.split_at_checked(block)?;
    let (earlier, newest) = rest.split_at_checked(turn.saturating_sub(block))?;
    let read_past = read_past.get(turn..).unwrap_or_default();
    let mut newest = Turn::new(newest, count);
    let (taken, whole) = (tokens(earlier, count), newest.tokens);
    let most = limits.max_tokens.unwrap_or(u64::MAX);
    newest.fit(most.saturating_sub(taken));
    let fitting = taken.saturating_add(newest.tokens);
    if fitting > most {
        return None;
    }
    let left_out = past.gaps.entries() + block.min(turn) as u64;
    let (shortened, shown) = (newest.shortened, newest.entries);
    let entries = read_past.iter().chain(earlier).cloned().chain(shown);
    let entries: Vec<_> = entries.collect();
    Some(Window {
        left_out,
        tokens: fitting,
        whole_tokens: taken.saturating_add(whole),
        shortened,
        has_short_results: shortened > 0,
        from_seq: entries.iter().find_map(seq),
        compacted: None,
        resumed: Some(read_past.len()),
        due: None,
        entries,
    })
}

/// The index of the answer with the newest valid block. A block is invalid if Sepal has since left its
/// answer out, or removed its native blocks.
fn newest_block(past: Past<'_>) -> Option<usize> {
    let family = past.compactor?;
    let block = past.entries.iter().rposition(|it| it.compacts(family))?;
    let least = past
        .compaction
        .map_or(0, |made| made.from.max(made.unthinking_before));
    (past.gaps.place(block) >= least).then_some(block)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use crate::domain::{CountedEntry, Entry, Native, StrategyName};
    use crate::history::window::window;
    use crate::history::{Limits, Past, Window};
    use crate::session::{Compaction, Gaps};

    /// Entries of ten tokens each: `u` = a question, `a` = an answer, `b` = an answer with a vendor's
    /// block.
    fn entries(said: &str) -> Vec<Arc<CountedEntry>> {
        let said = (1..).zip(said.chars());
        let entries = said.map(|(seq, kind)| match kind {
            'u' => Entry::User {
                seq,
                text: seq.to_string(),
                attachments: vec![],
            },
            kind => Entry::Assistant {
                text: seq.to_string(),
                calls: vec![],
                native: (kind == 'b').then(|| Native {
                    family: "f".into(),
                    blocks: json!([]),
                    compacts: true,
                }),
            },
        });
        entries.map(CountedEntry::new).collect()
    }

    fn shown(
        said: &str,
        question: Option<u64>,
        (compactor, most): (Option<&str>, u64),
        compaction: Option<&Compaction>,
    ) -> Window {
        let entries = entries(said);
        let past = Past {
            entries: &entries,
            question,
            gaps: Gaps::NONE,
            compaction,
            compactor,
        };
        let limits = Limits {
            max_tokens: Some(most),
            max_messages: None,
        };
        window(past, limits, &[StrategyName::DeleteOld], |_| 10)
    }

    /// Checks the shown entries by number, their tokens, and whether the window continues from a block.
    fn check(said: &str, of: (Option<&str>, u64), expected: (&str, u64, bool)) {
        let window = shown(said, None, of, None);
        let texts = window.entries.iter().map(|entry| match &***entry {
            Entry::User { text, .. } | Entry::Assistant { text, .. } => text.as_str(),
            Entry::Note { .. } => "-",
            Entry::ToolResult { text, .. } => text,
        });
        let texts = texts.collect::<Vec<_>>().join(" ");
        assert_eq!(
            (texts.as_str(), window.tokens, window.resumed.is_some()),
            expected,
            "{said} {of:?}"
        );
    }

    #[test]
    fn the_newest_block_stands_for_everything_before_it() {
        let vendor = (Some("f"), 1_000);
        check("uauau", vendor, ("1 2 3 4 5", 50, false));
        check("uaubu", vendor, ("4 5", 20, true));
        check("ububu", vendor, ("4 5", 20, true));
        check("uabua", vendor, ("3 4 5", 30, true));
        // For another vendor or Sepal everything counts.
        check("uaubu", (Some("g"), 1_000), ("1 2 3 4 5", 50, false));
        check("uaubu", (None, 1_000), ("1 2 3 4 5", 50, false));
    }

    #[test]
    fn the_newest_turn_stays_whole_and_what_is_read_past_costs_nothing() {
        let window = shown("uauaba", Some(3), (Some("f"), 1_000), None);
        let seqs: Vec<_> = window.entries.iter().collect();
        assert_eq!((seqs.len(), window.tokens, window.left_out), (4, 20, 2));
        assert!(window.resumed == Some(2) && window.compacted.is_none());
    }

    #[test]
    fn what_does_not_fit_is_left_to_sepal_and_so_is_a_block_that_sepal_left_out() {
        check("uabuauau", (Some("f"), 40), ("6 7 8", 30, false));
        let made = |from| Compaction {
            from,
            ..Compaction::default()
        };
        for (from, resumes) in [(2, true), (3, true), (4, false)] {
            let window = shown("uaubuau", None, (Some("f"), 1_000), Some(&made(from)));
            assert_eq!(window.resumed.is_some(), resumes, "{from}");
        }
    }
}
