//! The search over sessions: what is indexed of their journals, and how it is found and shown.

pub(super) mod commit_texts;
pub(super) mod finding;
pub(super) mod indexing;
mod snippet;
