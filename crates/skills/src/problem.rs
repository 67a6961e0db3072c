//! Describes problems of skills, with remedies.

use std::fmt;

/// A problem of a skill, or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The place: a field of the front matter, or the path of a file, with invisible characters written out.
    pub at: String,
    /// The problem: lowercase, no full stop.
    pub message: String,
    /// The remedy, as a sentence.
    pub remedy: String,
    /// True if the skill can be used all the same.
    pub is_warning: bool,
}

impl Problem {
    /// Makes a problem that keeps the skill from being used.
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

    /// Makes a warning.
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
