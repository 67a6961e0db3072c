//! Reports the usage of sessions: derives rows from journals, keeps them complete, and sums them for people
//! who may see them.

pub(super) mod completion;
pub(super) mod fold;
mod request;

pub use request::{UsageAccess, UsageGroups, UsageReport, UsageRequest};
