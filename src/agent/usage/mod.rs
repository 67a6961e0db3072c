//! What sessions used: the rows that follow from a journal, how they are kept complete, and who may ask
//! for their sums.

pub(super) mod completion;
pub(super) mod fold;
mod request;

pub use request::{UsageAccess, UsageGroups, UsageReport, UsageRequest};
