//! What is known of the file that a call would write.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Lines are counted in files of so many bytes at most.
const MAX_COUNTED_BYTES: u64 = 4 * 1024 * 1024;
/// `Number.MAX_SAFE_INTEGER` (ECMA-262, 21.1.2.6): a page reads no larger size exactly.
const MOST_EXACT: u64 = (1 << 53) - 1;

/// The file that a call would write, as it was when the model asked for the call. A hint for people:
/// it comes from inside the sandbox, where commands of the model could forge it, so no rule and no
/// digest knows of it. It has one form from the sandbox to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileFacts {
    /// Whether the file is there. Otherwise the rest says nothing.
    pub exists: bool,
    /// Its lines, counted only in text of at most 4 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    pub bytes: u64,
    /// Whether it is text.
    pub is_text: bool,
}

impl FileFacts {
    /// Of a file that is not there.
    pub const NEW: Self = Self {
        exists: false,
        lines: None,
        bytes: 0,
        is_text: false,
    };

    /// Whether there can be such a file: what somebody else says of one may be anything.
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

/// The file that the arguments of the sandbox's `write_file` name.
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
