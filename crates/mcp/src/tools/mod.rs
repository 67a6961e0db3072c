//! Converts the tools that servers offer, their definitions and their answers.

pub(super) mod bundled;
pub(super) mod content;
pub(super) mod filter;
pub(super) mod listing;
pub(super) mod result;
pub(super) mod toolbox;
