//! Keeps the catalogue: the entries of the registry, the tools that each server offers, and the offerings of
//! tenants' sessions.

pub(super) mod deferred;
pub(super) mod definitions;
pub(super) mod entry;
pub(super) mod installations;
pub(super) mod owners;
pub(super) mod rule_sets;
pub(super) mod tool_history;
pub(super) mod tool_offering;
pub(super) mod tool_report;
