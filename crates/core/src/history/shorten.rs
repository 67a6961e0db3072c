//! Shortens tool results to their two ends, with a hint how to read the rest.

use std::sync::Arc;

use crate::domain::{CallId, CountedEntry, Entry, READ_MORE};

/// Bytes kept of a result that the model has read before, if room is short.
pub(super) const SHORT: usize = 2_000;
/// Bytes kept of a result if [`SHORT`] is still too much for the running turn.
pub(super) const SHORTEST: usize = 400;
/// Upper limit of the hint's length, so that shortening never makes a result longer.
const WORDS: usize = 400;

/// The result with only `most` bytes of its ends and without pictures; `None` = not a result, or nothing to
/// remove.
pub(super) fn shorten(entry: &CountedEntry, most: usize) -> Option<Arc<CountedEntry>> {
    let Entry::ToolResult {
        call_id,
        provider_id,
        name,
        text,
        is_error,
        attachments,
    } = &**entry
    else {
        return None;
    };
    // Pictures are removed too, because they take the most room.
    let short = match (ends(call_id, text, most), attachments.len()) {
        (short, 0) => short?,
        (short, pictures) => {
            let text = short.unwrap_or_else(|| text.clone());
            format!("{text}\n[pictures that were left out here: {pictures}]")
        }
    };
    Some(entry.reworded(Entry::ToolResult {
        call_id: call_id.clone(),
        provider_id: provider_id.clone(),
        name: name.clone(),
        text: short,
        is_error: *is_error,
        attachments: vec![],
    }))
}

/// Length of a result in bytes; `None` = not a result.
pub(super) fn length(entry: &Entry) -> Option<usize> {
    match entry {
        Entry::ToolResult { text, .. } => Some(text.len()),
        Entry::User { .. } | Entry::Assistant { .. } | Entry::Note { .. } => None,
    }
}

fn ends(call: &CallId, text: &str, most: usize) -> Option<String> {
    if text.len() <= most.saturating_add(WORDS) {
        return None;
    }
    let half = most / 2;
    let head = text.get(..text.floor_char_boundary(half))?;
    let tail = text.get(text.ceil_char_boundary(text.len() - half)..)?;
    let left_out = text.len() - head.len() - tail.len();
    let whole = text.len();
    Some(format!(
        "{head}\n[This result was shortened: {left_out} of its {whole} bytes are left out here. To read \
         on, call `{READ_MORE}` with call `{call}` and offset {}, or ask for a range of the file or for \
         less output.]\n{tail}",
        head.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::{SHORT, SHORTEST, WORDS};
    use crate::domain::CallId;

    fn ends(text: &str, most: usize) -> Option<String> {
        super::ends(&CallId::new(1_700_000_000_000, 0), text, most)
    }

    #[test]
    fn a_short_form_has_both_ends_and_says_how_to_read_on() {
        let long = format!("begin {} end", "ä".repeat(40_000));
        for most in [SHORT, SHORTEST, 0, 1] {
            let short = ends(&long, most).unwrap();
            assert!(
                short.len() < most + WORDS,
                "{} bytes of {most}",
                short.len()
            );
            let head = short.find("\n[This result").unwrap();
            let way = format!("call `call_1700000000000_0` and offset {head}");
            assert!(short.contains(&way), "{short}");
            assert!(short.contains("of its 80010 bytes"), "{short}");
            assert_eq!(ends(&short, most), None, "it is short already");
        }
        let short = ends(&long, SHORT).unwrap();
        assert!(short.starts_with("begin ä") && short.ends_with("ä end"));
        assert_eq!(ends(&"x".repeat(SHORT + WORDS), SHORT), None);
    }
}
