//! What every vendor's request has in common: names, the order of messages, and what
//! is kept for the next one.

pub(super) mod cache;
pub(super) mod interleave;
pub(super) mod learned;
pub(super) mod names;
pub(super) mod pairing;
