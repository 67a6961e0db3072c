//! Tools as servers offer them: their definitions, which are offered on, and what they answered.

pub(super) mod bundled;
pub(super) mod content;
pub(super) mod filter;
pub(super) mod listing;
pub(super) mod result;
pub(super) mod toolbox;
