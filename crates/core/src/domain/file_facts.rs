//! Describes the file that a call would write.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum size of files whose lines are counted, in bytes.
const MAX_COUNTED_BYTES: u64 = 4 * 1024 * 1024;
/// `Number.MAX_SAFE_INTEGER` (ECMA-262, 21.1.2.6): the page cannot represent larger sizes exactly.
const MOST_EXACT: u64 = (1 << 53) - 1;

/// The file that a call would write, at the time of the request. It is a hint for people: it comes from
/// inside the sandbox, where the model's commands could forge it, so rules and digests ignore it. It has
/// the same form from the sandbox to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileFacts {
    /// True if the file exists. Otherwise the other fields have no meaning.
    pub exists: bool,
    /// Number of lines, counted only in text of at most 4 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    pub bytes: u64,
    /// True if the content is text.
    pub is_text: bool,
}

impl FileFacts {
    /// The facts of a missing file.
    pub const NEW: Self = Self {
        exists: false,
        lines: None,
        bytes: 0,
        is_text: false,
    };

    /// Returns true if such a file is possible; facts from inside the sandbox may be anything.
    pub fn is_sound(&self) -> bool {
        if !self.exists {
            return *self == Self::NEW;
        }
        let is_counted = |lines| self.is_text && lines <= self.bytes;
        self.bytes <= MOST_EXACT
            && self
                .lines
                .is_none_or(|lines| self.bytes <= MAX_COUNTED_BYTES && is_counted(lines))
    }
}

/// The path in the arguments of the sandbox's `write_file`.
pub fn written_path(args: &Value) -> Option<&str> {
    args.get("path").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::FileFacts;

    const THERE: FileFacts = FileFacts {
        exists: true,
        lines: Some(120),
        bytes: 840,
        is_text: true,
    };

    fn check(expected: bool, change: impl Fn(&mut FileFacts)) {
        let mut facts = THERE;
        change(&mut facts);
        assert_eq!(facts.is_sound(), expected, "{facts:?}");
    }

    #[test]
    fn only_facts_that_can_be_true_are_sound() {
        check(true, |_| {});
        check(true, |it| *it = FileFacts::NEW);
        check(true, |it| (it.lines, it.bytes) = (Some(0), 0));
        check(true, |it| (it.lines, it.bytes) = (None, 5 << 20));
        check(false, |it| it.exists = false);
        check(false, |it| {
            *it = FileFacts {
                bytes: 1,
                ..FileFacts::NEW
            }
        });
        check(false, |it| it.lines = Some(841));
        check(false, |it| it.is_text = false);
        check(false, |it| it.bytes = 5 << 20);
        check(false, |it| (it.lines, it.bytes) = (None, 1 << 53));
    }
}
