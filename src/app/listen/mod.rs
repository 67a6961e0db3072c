//! Where the gateway listens: its addresses, connections of HTTP, and the address of `/metrics`.

pub(super) mod address;
pub(super) mod metrics;
pub(super) mod serving;
