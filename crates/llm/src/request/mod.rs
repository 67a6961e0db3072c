//! Prepares requests for all vendors: tool names, the order of messages, and values that are cached for the
//! next request.

pub(super) mod cache;
pub(super) mod interleave;
pub(super) mod learned;
pub(super) mod names;
pub(super) mod pairing;
mod refused_tool;
pub(crate) mod schema;
