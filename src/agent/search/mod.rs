//! Searches sessions: indexes the texts of journals, finds them, and shows them.

pub(super) mod commit_texts;
pub(super) mod finding;
pub(super) mod indexing;
mod snippet;
