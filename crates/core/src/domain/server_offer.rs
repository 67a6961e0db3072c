//! What an MCP server offers beside tools: resources, templates of their addresses, and prompts.

use serde::{Deserialize, Serialize};

use super::ResourceLink;

/// What a server offers beside tools, as it was last listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerOffer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceLink>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<ResourceTemplate>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<PromptOffer>,
    /// What of it is not whole, in words for people: a list that was too long, or was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Whether it says when a resource changes.
    pub can_subscribe: bool,
    /// Whether it completes arguments.
    pub can_complete: bool,
}

/// A pattern of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// As RFC 6570 writes it.
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

/// An argument of a prompt: always a text.
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
