//! The wire form of the history of a tool's definition.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::servers::ToolChangeReport;

/// The definitions of a tool that a tenant was offered.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct ToolHistory {
    /// Newest first.
    items: Vec<ToolVersionItem>,
}

/// One definition.
#[derive(Serialize, ToSchema)]
struct ToolVersionItem {
    /// Names the definition.
    hash: String,
    /// When it was first seen.
    since: String,
    /// What is other than in the definition before; empty for the first that is kept.
    changes: Vec<DefinitionChangeItem>,
}

/// One part of a definition that was changed.
#[derive(Serialize, ToSchema)]
struct DefinitionChangeItem {
    /// Where it is in the definition, as a JSON pointer.
    path: String,
    /// What was there; nothing where it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    /// What is there; nothing where it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Value>,
}

impl From<Vec<ToolChangeReport>> for ToolHistory {
    fn from(history: Vec<ToolChangeReport>) -> Self {
        let items = history.into_iter().map(|version| ToolVersionItem {
            hash: version.hash,
            since: version.since.to_rfc3339(),
            changes: version
                .changes
                .into_iter()
                .map(|change| DefinitionChangeItem {
                    path: change.path,
                    before: change.before,
                    after: change.after,
                })
                .collect(),
        });
        Self {
            items: items.collect(),
        }
    }
}
