//! Puts native blocks back at their positions between text and calls. Pure.

use serde::{Deserialize, Serialize};

/// The position of a block in its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Bytes of text before the block.
    pub(crate) text: usize,
    /// Bytes of text that belong to the block itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) length: usize,
    pub(crate) calls: usize,
}

/// A part of an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Part<'a, B> {
    /// Text that is not blank.
    Text(&'a str),
    /// A block and its text.
    Block(B, &'a str),
    /// The index of a call.
    Call(usize),
}

/// The parts of an answer in order. Positions that do not fit the text are moved to the nearest valid ones.
pub(crate) fn interleave<B>(
    text: &str,
    calls: usize,
    blocks: impl Iterator<Item = (Position, B)>,
) -> Vec<Part<'_, B>> {
    let mut parts = Vec::new();
    let (mut told, mut called) = (0, 0);
    for (place, block) in blocks {
        let at = place.text.max(told);
        if let Some(before) = text.get(told..at) {
            push_text(&mut parts, before);
            told = at;
        }
        let until = place.calls.clamp(called, calls.max(called));
        parts.extend((called..until).map(Part::Call));
        called = until;
        let own = text.get(told..told.saturating_add(place.length));
        let own = own.unwrap_or_default();
        told += own.len();
        parts.push(Part::Block(block, own));
    }
    push_text(&mut parts, text.get(told..).unwrap_or_default());
    parts.extend((called..calls).map(Part::Call));
    parts
}

/// Appends text unless it is blank, because vendors refuse blank texts.
fn push_text<'a, B>(parts: &mut Vec<Part<'a, B>>, text: &'a str) {
    if !text.trim().is_empty() {
        parts.push(Part::Text(text));
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_zero(length: &usize) -> bool {
    *length == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Part, Position, interleave};

    fn place(text: usize, length: usize, calls: usize) -> Position {
        Position {
            text,
            length,
            calls,
        }
    }

    /// Compares the parts as `text`, `[block:own]`, `#call`.
    fn check(text: &str, calls: usize, blocks: &[(Position, char)], expected: &str) {
        let blocks = blocks.iter().copied();
        let shown = interleave(text, calls, blocks)
            .iter()
            .map(|part| match part {
                Part::Text(text) => (*text).to_owned(),
                Part::Block(block, own) => format!("[{block}:{own}]"),
                Part::Call(at) => format!("#{at}"),
            })
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(shown, expected);
    }

    #[test]
    fn blocks_return_to_their_places() {
        check("", 0, &[], "");
        check("hi", 2, &[], "hi #0 #1");
        check("hi", 1, &[(place(0, 0, 0), 'a')], "[a:] hi #0");
        let interleaved = [(place(0, 0, 0), 'a'), (place(2, 0, 1), 'b')];
        check("hiyo", 2, &interleaved, "[a:] hi #0 [b:] yo #1");
        check("hiyo", 0, &[(place(2, 2, 0), 'a')], "hi [a:yo]");
        check("hi", 0, &[(place(2, 0, 0), 'a')], "hi [a:]");
        check(" \n", 1, &[(place(2, 0, 0), 'a')], "[a:] #0");
    }

    #[test]
    fn places_that_do_not_fit_lose_nothing() {
        check("hä", 1, &[(place(2, 0, 0), 'a')], "[a:] hä #0");
        check("hi", 1, &[(place(99, 99, 99), 'a')], "#0 [a:] hi");
        let backwards = [(place(2, 0, 1), 'a'), (place(0, 0, 0), 'b')];
        check("hiyo", 1, &backwards, "hi #0 [a:] [b:] yo");
    }

    proptest! {
        #[test]
        fn text_and_calls_stay_whole(
            text in "[aä]{0,8}", calls in 0..4_usize,
            places in prop::collection::vec((0..12_usize, 0..4_usize, 0..6_usize), 0..4),
        ) {
            let places: Vec<Position> = places.iter().map(|&(t, l, c)| place(t, l, c)).collect();
            let (mut told, mut called) = (String::new(), Vec::new());
            for part in interleave(&text, calls, places.iter().map(|place| (*place, ()))) {
                match part {
                    Part::Text(text) | Part::Block((), text) => told.push_str(text),
                    Part::Call(at) => called.push(at),
                }
            }
            prop_assert_eq!(told, text);
            prop_assert_eq!(called, (0..calls).collect::<Vec<_>>());
        }
    }
}
