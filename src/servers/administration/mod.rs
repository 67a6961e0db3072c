//! What people do to the registry: add, change, remove, try, read, and decide about single tools.

pub(super) mod fitness;
pub(super) mod manage;
pub(super) mod masking;
pub(super) mod permission;
pub(super) mod report;
pub(super) mod restart;
pub(super) mod retarget;
pub(super) mod secrets;
