//! The wire form of the history of a tool's definition.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::servers::ToolChangeReport;

/// The definitions of a tool that a tenant was offered.
#[derive(Serialize, ToSchema)]
pub(in crate::gateway) struct ToolHistory {
    /// The definitions, newest first.
    items: Vec<ToolVersionItem>,
}

/// One definition of a tool.
#[derive(Serialize, ToSchema)]
struct ToolVersionItem {
    /// The hash of the definition.
    hash: String,
    /// When the definition was first seen (RFC 3339).
    since: String,
    /// The differences from the previous definition; empty for the oldest one that is kept.
    changes: Vec<DefinitionChangeItem>,
}

/// A part of a definition that changed.
#[derive(Serialize, ToSchema)]
struct DefinitionChangeItem {
    /// The position in the definition, as a JSON pointer.
    path: String,
    /// The previous value; absent if the part is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    /// The new value; absent if the part was removed.
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
