//! A tool of a server as people see it.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::{Digest, Timestamp, ToolAnnotations, ToolView};
use crate::session::PolicyEffect;

/// A tool as people see it.
#[derive(Debug, Clone)]
pub struct ToolReport {
    /// The server's own name for it.
    pub name: String,
    /// The name that the model uses; none while it is off.
    pub model_name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, as the model reads it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// The server's claims.
    pub annotations: ToolAnnotations,
    pub hash: Digest,
    /// Whether the model is told of it.
    pub enabled: bool,
    /// Whether it works only as a task: then the model is not told of it, enabled or not.
    pub needs_tasks: bool,
    /// What it says of views.
    pub view: Option<Arc<ToolView>>,
    /// What happens to its calls.
    pub effect: PolicyEffect,
    /// Since when it is another than the one the tenant said yes to.
    pub drift: Option<Timestamp>,
}
