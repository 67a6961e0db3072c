//! The request and response bodies of the routes of resources and prompts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::{GivenMessage, MessagePart, PromptGiven};
use crate::domain::{
    Attachment, Code, PromptArgument, PromptOffer, ResourceLink, ResourceRef, ResourceTemplate,
    ServerOffer,
};
use crate::gateway::error::ApiError;
use crate::gateway::http::sessions::attachments::AttachmentItem;
use crate::mcp::{Completing, Reference};
use crate::servers::ListedOffer;

/// The resources of a session's servers.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct SessionResources {
    /// The servers that offer some, and those that were not listed yet.
    items: Vec<ServerResources>,
}

/// The resources of one server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ServerResources {
    /// The server's name.
    server: String,
    description: Option<String>,
    /// Whether the server was ever asked; where it was not, its first use or a test lists it.
    listed: bool,
    resources: Vec<ResourceItem>,
    templates: Vec<TemplateItem>,
    /// What is missing in the lists, and why.
    problems: Vec<String>,
    /// Whether the server completes the arguments of templates.
    can_complete: bool,
}

/// A resource, as its server describes it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ResourceItem {
    /// Its address at the server.
    uri: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    /// What the server says that it is.
    mime_type: Option<String>,
    /// Bytes, as the server says.
    size: Option<u64>,
}

/// A pattern of addresses, as its server describes it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct TemplateItem {
    /// As RFC 6570 writes it.
    uri_template: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
}

/// Which resource is read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ReadResourceRequest {
    /// The server's name.
    server: String,
    /// Its address at the server; one that is not listed may be read too.
    #[schema(max_length = 4096)]
    uri: String,
}

/// What was read.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct ResourceContents {
    /// One where the resource is no folder.
    items: Vec<AttachmentItem>,
}

/// The prompts of a session's servers.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct SessionPrompts {
    /// The servers that offer some, and those that were not listed yet.
    items: Vec<ServerPrompts>,
}

/// The prompts of one server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ServerPrompts {
    /// The server's name.
    server: String,
    /// Whether the server was ever asked.
    listed: bool,
    prompts: Vec<PromptItem>,
    /// What is missing in the list, and why.
    problems: Vec<String>,
    /// Whether the server completes arguments.
    can_complete: bool,
}

/// A prompt, as its server describes it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct PromptItem {
    name: String,
    title: Option<String>,
    description: Option<String>,
    arguments: Vec<PromptArgumentItem>,
}

/// An argument of a prompt: a text.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct PromptArgumentItem {
    name: String,
    title: Option<String>,
    description: Option<String>,
    /// Whether the prompt cannot be had without it.
    required: bool,
}

/// Which prompt, and its arguments.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct GetPromptRequest {
    /// The server's name.
    pub(super) server: String,
    /// The prompt's name.
    #[schema(max_length = 4096)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: BTreeMap<String, String>,
}

/// The messages of a prompt.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct Prompt {
    description: Option<String>,
    messages: Vec<PromptMessage>,
}

/// One message of a prompt: a text, a file or a resource that may be read.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct PromptMessage {
    /// `user` or `assistant`.
    role: &'static str,
    text: Option<String>,
    attachment: Option<AttachmentItem>,
    resource: Option<ResourceItem>,
}

/// An argument that is being typed. Either `prompt` or `template` says whose it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct CompleteArgumentRequest {
    /// The server's name.
    server: String,
    /// A prompt's name.
    prompt: Option<String>,
    /// A template, as the list of resources gives it.
    template: Option<String>,
    /// The argument's name.
    argument: String,
    /// What stands there so far.
    value: String,
    /// The other arguments.
    #[serde(default)]
    others: BTreeMap<String, String>,
}

/// Values that an argument may have.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct Completion {
    /// The best first; 100 at most.
    pub(super) values: Vec<String>,
}

impl CompleteArgumentRequest {
    /// Returns the server's name, and the completion to request from it.
    pub(super) fn completing(self) -> Result<(String, Completing), ApiError> {
        let of = match (self.prompt, self.template) {
            (Some(prompt), None) => Reference::Prompt(prompt),
            (None, Some(template)) => Reference::Template(template),
            (Some(_), Some(_)) | (None, None) => {
                let text = "say either `prompt` or `template`";
                return Err(ApiError::of_field(Code::InvalidArguments, "prompt", text));
            }
        };
        let completing = Completing {
            of,
            argument: self.argument,
            value: self.value,
            others: self.others,
        };
        Ok((self.server, completing))
    }
}

impl From<ReadResourceRequest> for ResourceRef {
    fn from(request: ReadResourceRequest) -> Self {
        let ReadResourceRequest { server, uri } = request;
        Self { server, uri }
    }
}

impl From<Vec<Attachment>> for ResourceContents {
    fn from(read: Vec<Attachment>) -> Self {
        Self {
            items: read.into_iter().map(AttachmentItem::of).collect(),
        }
    }
}

impl From<Vec<ListedOffer>> for SessionResources {
    fn from(listed: Vec<ListedOffer>) -> Self {
        let items = listed.into_iter().filter_map(|server| {
            let listed = server.offer.is_some();
            let ServerOffer {
                resources,
                templates,
                problems,
                can_complete,
                ..
            } = server.offer.unwrap_or_default();
            let has_some = !resources.is_empty() || !templates.is_empty() || !problems.is_empty();
            (!listed || has_some).then(|| ServerResources {
                server: server.server,
                description: server.description,
                listed,
                resources: resources.into_iter().map(ResourceItem::from).collect(),
                templates: templates.into_iter().map(TemplateItem::from).collect(),
                problems,
                can_complete,
            })
        });
        Self {
            items: items.collect(),
        }
    }
}

impl From<Vec<ListedOffer>> for SessionPrompts {
    fn from(listed: Vec<ListedOffer>) -> Self {
        let items = listed.into_iter().filter_map(|server| {
            let listed = server.offer.is_some();
            let ServerOffer {
                prompts,
                problems,
                can_complete,
                ..
            } = server.offer.unwrap_or_default();
            let has_some = !prompts.is_empty() || !problems.is_empty();
            (!listed || has_some).then(|| ServerPrompts {
                server: server.server,
                listed,
                prompts: prompts.into_iter().map(PromptItem::from).collect(),
                problems,
                can_complete,
            })
        });
        Self {
            items: items.collect(),
        }
    }
}

impl From<ResourceLink> for ResourceItem {
    fn from(link: ResourceLink) -> Self {
        Self {
            uri: link.uri,
            name: link.name,
            title: link.title,
            description: link.description,
            mime_type: link.mime_type,
            size: link.size,
        }
    }
}

impl From<ResourceTemplate> for TemplateItem {
    fn from(template: ResourceTemplate) -> Self {
        Self {
            uri_template: template.uri_template,
            name: template.name,
            title: template.title,
            description: template.description,
            mime_type: template.mime_type,
        }
    }
}

impl From<PromptOffer> for PromptItem {
    fn from(prompt: PromptOffer) -> Self {
        let arguments = prompt.arguments.into_iter();
        Self {
            name: prompt.name,
            title: prompt.title,
            description: prompt.description,
            arguments: arguments.map(PromptArgumentItem::from).collect(),
        }
    }
}

impl From<PromptArgument> for PromptArgumentItem {
    fn from(argument: PromptArgument) -> Self {
        Self {
            name: argument.name,
            title: argument.title,
            description: argument.description,
            required: argument.required,
        }
    }
}

impl From<PromptGiven> for Prompt {
    fn from(given: PromptGiven) -> Self {
        Self {
            description: given.description,
            messages: given
                .messages
                .into_iter()
                .map(PromptMessage::from)
                .collect(),
        }
    }
}

impl From<GivenMessage> for PromptMessage {
    fn from(message: GivenMessage) -> Self {
        let role = if message.is_assistant {
            "assistant"
        } else {
            "user"
        };
        let (text, attachment, resource) = match message.part {
            MessagePart::Text(text) => (Some(text), None, None),
            MessagePart::File(attachment) => (None, Some(AttachmentItem::of(attachment)), None),
            MessagePart::Link(link) => (None, None, Some(ResourceItem::from(link))),
        };
        Self {
            role,
            text,
            attachment,
            resource,
        }
    }
}
