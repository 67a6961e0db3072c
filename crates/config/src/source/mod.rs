//! Where settings come from: the process, the file, and how the sources lie over each other.

pub(super) mod env;
pub(super) mod file;
pub(super) mod layer;
