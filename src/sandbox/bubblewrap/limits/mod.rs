//! What holds a sandbox to its limits: control groups, project quotas, and a watch where there are neither.

pub(super) mod cgroup;
pub(super) mod project_quota;
pub(super) mod watchdog;
