//! Messages on the way to and from a server: their bytes, their framing, and how long one may be.

pub(super) mod lines;
pub(super) mod message;
pub(super) mod oversized;
