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

/// The resources that a session's servers offer.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct SessionResources {
    /// The servers that offer resources, and those whose lists are incomplete or were never read.
    items: Vec<ServerResources>,
}

/// The resources of one server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ServerResources {
    /// The server's name.
    server: String,
    /// The server's description; `null` if it has none.
    description: Option<String>,
    /// True if the server was ever listed; otherwise its first use or a test lists it.
    listed: bool,
    /// The resources.
    resources: Vec<ResourceItem>,
    /// The templates of addresses.
    templates: Vec<TemplateItem>,
    /// The reasons the lists are incomplete, for people.
    problems: Vec<String>,
    /// True if the server completes the arguments of templates.
    can_complete: bool,
}

/// A resource, as its server describes it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ResourceItem {
    /// The resource's address at the server.
    uri: String,
    /// The resource's name.
    name: String,
    /// The resource's name for people; `null` if the server gives none.
    title: Option<String>,
    /// The resource's description; `null` if the server gives none.
    description: Option<String>,
    /// The media type, as the server states it; `null` if it does not.
    mime_type: Option<String>,
    /// The size in bytes, as the server states it; `null` if it does not.
    size: Option<u64>,
}

/// A template of addresses, as its server describes it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct TemplateItem {
    /// The template, in the form of RFC 6570.
    uri_template: String,
    /// The template's name.
    name: String,
    /// The template's name for people; `null` if the server gives none.
    title: Option<String>,
    /// The template's description; `null` if the server gives none.
    description: Option<String>,
    /// The media type of the resources, as the server states it; `null` if it does not.
    mime_type: Option<String>,
}

/// The resource to read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ReadResourceRequest {
    /// The server's name.
    server: String,
    /// The resource's address at the server, which does not need to be listed.
    #[schema(max_length = 4096)]
    uri: String,
}

/// The content of a resource.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct ResourceContents {
    /// The contents; more than one only if the resource is a folder.
    items: Vec<AttachmentItem>,
}

/// The prompts that a session's servers offer.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct SessionPrompts {
    /// The servers that offer prompts, and those whose lists are incomplete or were never read.
    items: Vec<ServerPrompts>,
}

/// The prompts of one server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct ServerPrompts {
    /// The server's name.
    server: String,
    /// True if the server was ever listed.
    listed: bool,
    /// The prompts.
    prompts: Vec<PromptItem>,
    /// The reasons the list is incomplete, for people.
    problems: Vec<String>,
    /// True if the server completes arguments.
    can_complete: bool,
}

/// A prompt, as its server describes it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct PromptItem {
    /// The prompt's name.
    name: String,
    /// The prompt's name for people; `null` if the server gives none.
    title: Option<String>,
    /// The prompt's description; `null` if the server gives none.
    description: Option<String>,
    /// The arguments of the prompt.
    arguments: Vec<PromptArgumentItem>,
}

/// An argument of a prompt. Its value is a text.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct PromptArgumentItem {
    /// The argument's name.
    name: String,
    /// The argument's name for people; `null` if the server gives none.
    title: Option<String>,
    /// The argument's description; `null` if the server gives none.
    description: Option<String>,
    /// True if the prompt requires the argument.
    required: bool,
}

/// A prompt to get, with its arguments.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct GetPromptRequest {
    /// The server's name.
    pub(super) server: String,
    /// The prompt's name.
    #[schema(max_length = 4096)]
    pub(super) name: String,
    /// The values of the arguments, by name.
    #[serde(default)]
    pub(super) arguments: BTreeMap<String, String>,
}

/// The messages of a prompt.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct Prompt {
    /// The prompt's description; `null` if the server gives none.
    description: Option<String>,
    /// The messages, in order.
    messages: Vec<PromptMessage>,
}

/// One message of a prompt. Exactly one of `text`, `attachment` and `resource` is not `null`.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct PromptMessage {
    /// `user` or `assistant`.
    role: &'static str,
    /// The text.
    text: Option<String>,
    /// The file.
    attachment: Option<AttachmentItem>,
    /// A resource that may be read.
    resource: Option<ResourceItem>,
}

/// An argument that is being typed. Exactly one of `prompt` and `template` names what it belongs to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway::http) struct CompleteArgumentRequest {
    /// The server's name.
    server: String,
    /// The name of the prompt.
    prompt: Option<String>,
    /// The template, as in the list of resources.
    template: Option<String>,
    /// The argument's name.
    argument: String,
    /// The text so far.
    value: String,
    /// The values of the other arguments, by name.
    #[serde(default)]
    others: BTreeMap<String, String>,
}

/// Values that an argument may have.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::gateway::http) struct Completion {
    /// The values, best first, 100 at most.
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
