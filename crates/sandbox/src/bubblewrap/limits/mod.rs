//! Enforces the limits of a sandbox: control groups, project quotas, and a watchdog where both are missing.

pub(super) mod cgroup;
pub(super) mod project_quota;
pub(super) mod watchdog;
