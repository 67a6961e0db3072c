//! Models what an MCP server offers beside tools: resources, resource templates and prompts.

use serde::{Deserialize, Serialize};

use super::ResourceLink;

/// The resources, templates and prompts of a server, as last listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerOffer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceLink>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<ResourceTemplate>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<PromptOffer>,
    /// Reasons the lists are incomplete, for people: a list was too long, or was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// True if the server notifies of changed resources.
    pub can_subscribe: bool,
    /// True if the server completes arguments.
    pub can_complete: bool,
}

/// A template for addresses of resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The template, in the syntax of RFC 6570.
    pub uri_template: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptOffer {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt; its value is always a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptArgument {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub required: bool,
}
