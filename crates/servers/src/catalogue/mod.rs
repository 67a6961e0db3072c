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

pub use self::deferred::asked_for;
pub use self::entry::{BUNDLED, ServerEntry, Source};
pub use self::rule_sets::{ListedRule, RuleGroup, RuleOrigin};
pub use self::tool_history::{DefinitionDifference, ToolChangeReport};
pub use self::tool_offering::{OwnTools, ToolOffer, ToolOffering};
pub use self::tool_report::ToolReport;
