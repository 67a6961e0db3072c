//! The sources of settings: the process, the file, and how they are merged.

pub(super) mod env;
pub(super) mod file;
pub(super) mod layer;
