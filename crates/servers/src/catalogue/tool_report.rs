//! Defines the report about a tool of a server, for people.

use std::sync::Arc;

use serde_json::Value;

use sepal_core::domain::{Digest, Timestamp, ToolAnnotations, ToolView};
use sepal_core::session::PolicyEffect;

/// A tool as people see it.
#[derive(Debug, Clone)]
pub struct ToolReport {
    /// The server's own name for it.
    pub name: String,
    /// The name that the model uses; `None` if the model is not told of it.
    pub model_name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// Its description, as the model reads it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// The server's claims about it.
    pub annotations: ToolAnnotations,
    pub hash: Digest,
    /// True if the tool is enabled.
    pub enabled: bool,
    /// True if it works only as a task, which its server does not support; then the model is not told of it,
    /// enabled or not.
    pub needs_tasks: bool,
    /// Its declaration of a view.
    pub view: Option<Arc<ToolView>>,
    /// The effect on its calls: allow, ask or deny.
    pub effect: PolicyEffect,
    /// Since when it differs from the definition that the tenant accepted.
    pub drift: Option<Timestamp>,
}
