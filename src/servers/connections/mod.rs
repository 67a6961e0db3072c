//! Running servers: how one is started or reached, which are open, and what they wrote on stderr.

pub(super) mod logs;
pub(super) mod opening;
pub(super) mod refused_hosts;
pub(super) mod running;
pub(super) mod session_reach;
