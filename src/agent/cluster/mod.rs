//! The other gateways on the same store: who lives, what is told to them, and what is in use here.

pub(super) mod broadcaster;
pub(super) mod list_broadcast;
pub(super) mod membership;
pub(super) mod presence;
