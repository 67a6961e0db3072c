//! Opens connections to servers, tracks the open ones, and keeps their latest log lines and refused hosts.

pub(super) mod logs;
pub(super) mod opening;
pub(super) mod refused_hosts;
pub(super) mod running;
pub(super) mod session_reach;

pub use self::logs::LogLine;
pub use self::opening::{Clients, Opened, Phase};
pub use self::session_reach::SessionReach;
