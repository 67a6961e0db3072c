//! What is wrong with one field of an entry.

/// What is wrong with one field of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryProblem {
    /// The field's path below the entry.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl EntryProblem {
    /// What is wrong with a field, and what helps.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        Self { field, message }
    }
}
