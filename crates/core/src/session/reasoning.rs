//! Stores the reasoning text of a model's answer for people; later requests never include it.

use serde::{Deserialize, Serialize};

/// The maximum length of the reasoning that the journal stores for one answer, in bytes.
pub const MAX_REASONING: usize = 64 * 1024;

/// The reasoning of one answer, possibly truncated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// At most [`MAX_REASONING`] bytes.
    pub text: String,
    /// Time from the first piece of reasoning to the first piece of other output; `None` = not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Bytes truncated from the end of the text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_bytes: u64,
}

impl Reasoning {
    /// Truncates the text to [`MAX_REASONING`] bytes; `None` if the text is empty.
    pub fn of(mut text: String, duration_ms: Option<u64>) -> Option<Self> {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(MAX_REASONING));
        (whole > 0).then(|| Self {
            left_out_bytes: (whole - text.len()) as u64,
            text,
            duration_ms,
        })
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands fields over by reference"
)]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

#[cfg(test)]
mod tests {
    use super::{MAX_REASONING, Reasoning};

    fn check(bytes: usize, letter: &str, kept: usize) {
        let text = letter.repeat(bytes / letter.len());
        let (whole, reasoning) = (text.len(), Reasoning::of(text, None).unwrap());
        assert_eq!(reasoning.text.len(), kept, "{bytes} of `{letter}`");
        assert_eq!(reasoning.left_out_bytes, (whole - kept) as u64);
    }

    #[test]
    fn what_is_kept_ends_with_a_whole_letter() {
        assert_eq!(Reasoning::of(String::new(), Some(3)), None);
        check(10, "a", 10);
        check(MAX_REASONING, "a", MAX_REASONING);
        check(MAX_REASONING + 1, "a", MAX_REASONING);
        check(MAX_REASONING + 2, "…", MAX_REASONING - 1);
    }

    #[test]
    fn one_that_is_whole_and_not_measured_is_its_text() {
        let reasoning = Reasoning::of("hm".to_owned(), None).unwrap();
        let stored = serde_json::to_string(&reasoning).unwrap();
        assert_eq!(stored, r#"{"text":"hm"}"#);
        assert_eq!(
            serde_json::from_str::<Reasoning>(&stored).unwrap(),
            reasoning
        );
    }
}
