//! Reads and writes messages of servers: parsing, framing and size limits.

pub(super) mod lenient;
pub(super) mod lines;
pub(super) mod message;
pub(super) mod oversized;
pub(super) mod pending;
