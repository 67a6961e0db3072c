//! Sets up the gateway's listeners: its addresses, HTTP connections, and the address of `/metrics`.

pub(super) mod address;
pub(super) mod metrics;
pub(super) mod serving;
