//! What is wrong with a skill, with what helps.

use std::fmt;

/// Something that is wrong with a skill, or only odd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: a field of the front matter, or the path of a file, in visible signs.
    pub at: String,
    /// What is wrong: lowercase, no full stop.
    pub message: String,
    /// What helps, as a sentence.
    pub remedy: String,
    /// Whether the skill can be used all the same.
    pub is_warning: bool,
}

impl Problem {
    /// One that keeps the skill from being used.
    pub fn new(
        at: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            at: at.into(),
            message: message.into(),
            remedy: remedy.into(),
            is_warning: false,
        }
    }

    /// One that people should only know of.
    pub fn warning(
        at: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            is_warning: true,
            ..Self::new(at, message, remedy)
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.at, self.message)
    }
}
