//! Gives the session's owner access to the offers of its MCP servers other than tools: lists from memory,
//! resources and prompts over the session's own connections. No approval is asked, because the person who
//! could approve makes the request; rules that deny still apply.

pub(super) mod calls;
pub(super) mod context;
mod views;

pub use calls::{ViewBody, ViewContent};
pub use views::ServerView;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Sessions, may_act};
use crate::agent::attachments::{Attachments, MAX_OF_MESSAGE};
use crate::agent::effects::tool_call::outcome::given;
use crate::agent::feed::{Feed, FeedItem};
use crate::agent::mailbox::{Message, ServerQuestion, ToolsNow, store_away};
use crate::domain::{Attachment, Caller, Code, Holder, ResourceLink, ResourceRef, SessionKey};
use crate::mcp::{self, AnswerContent, AnswerFile, Completing, Offers};
use crate::servers::LiveConnection;
use crate::servers::offers::{self, ListedOffer};
use crate::session::{Command, Refusal};

/// The most bytes of an address.
const MAX_URI: usize = 4 * 1024;

/// The offers of the servers of one person's sessions.
pub struct SessionOffers<'s>(&'s Sessions);

/// A prompt that a server returned.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptGiven {
    pub description: Option<String>,
    pub messages: Vec<GivenMessage>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenMessage {
    /// True if the message is to be the model's own words.
    pub is_assistant: bool,
    pub part: MessagePart,
}

/// The content of a prompt's message.
#[derive(Debug, Clone, PartialEq)]
pub enum MessagePart {
    Text(String),
    /// A file, stored with the session.
    File(Attachment),
    /// A link to a resource that may be read.
    Link(ResourceLink),
}

/// The open connection of a session to a server.
struct OpenServer {
    held: LiveConnection,
    /// The time limit of an answer.
    limit: Duration,
    feed: Arc<Feed>,
    _guest: Arc<()>,
}

impl<'s> SessionOffers<'s> {
    /// Makes the access for these sessions.
    pub fn of(sessions: &'s Sessions) -> Self {
        Self(sessions)
    }

    /// Lists the offers of the servers that the session may use, as they were last listed. Starts none of
    /// them.
    pub async fn list(
        &self,
        key: &SessionKey,
        caller: &Caller,
    ) -> Result<Vec<ListedOffer>, Refusal> {
        self.0.admit(key, caller).await?;
        let servers = &self.0.0.factory.parts.servers;
        let listed = offers::list(servers, caller.whose()).await;
        let mut listed = listed.map_err(|error| {
            tracing::warn!(?error, "What MCP servers offer cannot be read now");
            store_away()
        })?;
        if let Some(servers) = caller.confined_servers() {
            listed.retain(|offer| servers.contains(&offer.server));
        }
        Ok(listed)
    }

    /// Reads a resource and stores it with the session: a message that names it refers to what was read, even
    /// if the resource changes.
    pub async fn read(
        &self,
        key: &SessionKey,
        caller: &Caller,
        resource: &ResourceRef,
    ) -> Result<Vec<Attachment>, Refusal> {
        if resource.uri.is_empty() || resource.uri.len() > MAX_URI {
            let text = format!("the address of a resource has 1 to {MAX_URI} bytes");
            return Err(Refusal::of_field(Code::InvalidArguments, "uri", text));
        }
        let attachments = self.0.attachments();
        let _share = attachments.begin(Holder {
            tenant: caller.tenant.id.clone(),
            user: caller.user.id.clone(),
        })?;

        let opened = self
            .open(
                key,
                caller,
                &resource.server,
                "resources/read",
                json!({ "uri": resource.uri }),
            )
            .await?;
        let offers = Offers::of(&opened.held.connection);
        let contents = offers.read(&resource.uri, opened.limit).await;
        let contents = contents.map_err(|error| refused(&resource.server, &error))?;
        let mut read = Vec::new();
        for content in contents.into_iter().take(MAX_OF_MESSAGE) {
            let file = file_of(content, Some(&resource.uri));
            read.push(keep(attachments, key, (file, &resource.server)).await?);
        }
        if read.is_empty() {
            let text = format!(
                "`{}` of server `{}` has no content",
                resource.uri, resource.server
            );
            return Err(Refusal::of_field(Code::NotFound, "uri", text));
        }
        self.watch(&opened, resource).await;
        Ok(read)
    }

    /// Asks a server for a prompt. Its files and resources are stored with the session.
    pub async fn prompt(
        &self,
        key: &SessionKey,
        caller: &Caller,
        server: &str,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<PromptGiven, Refusal> {
        let opened = self
            .open(
                key,
                caller,
                server,
                "prompts/get",
                json!({ "name": name, "arguments": arguments }),
            )
            .await?;
        let offers = Offers::of(&opened.held.connection);
        let prompt = offers.prompt(name, arguments, opened.limit).await;
        let prompt = prompt.map_err(|error| refused(server, &error))?;
        let attachments = self.0.attachments();
        let mut messages = Vec::with_capacity(prompt.messages.len());
        for message in prompt.messages {
            let part = match message.content {
                AnswerContent::Text(text) => MessagePart::Text(text),
                AnswerContent::Link(link) => MessagePart::Link(link),
                file @ (AnswerContent::File(_) | AnswerContent::Resource { .. }) => {
                    let file = (file_of(file, None), server);
                    MessagePart::File(keep(attachments, key, file).await?)
                }
            };
            messages.push(GivenMessage {
                is_assistant: message.is_assistant,
                part,
            });
        }
        Ok(PromptGiven {
            description: prompt.description,
            messages,
        })
    }

    /// Asks the server for possible values of an argument.
    pub async fn complete(
        &self,
        key: &SessionKey,
        caller: &Caller,
        server: &str,
        completing: &Completing,
    ) -> Result<Vec<String>, Refusal> {
        let opened = self
            .open(key, caller, server, "completion/complete", json!({}))
            .await?;
        let offers = Offers::of(&opened.held.connection);
        let values = offers.complete(completing, opened.limit).await;
        values.map_err(|error| refused(server, &error))
    }

    /// Opens the session's connection to a server if necessary, unless a rule denies the request.
    async fn open(
        &self,
        key: &SessionKey,
        caller: &Caller,
        server: &str,
        method: &str,
        args: Value,
    ) -> Result<OpenServer, Refusal> {
        may_act(caller)?;
        // The results are stored with the session, so the session has to be stored.
        let store = Command::Open { title: None };
        self.0.submit(key, caller, store.into()).await?;
        let by = caller.user.id.clone();
        let now_there = self
            .0
            .request(key, caller, |reply| Message::Tools { by, reply });
        let ToolsNow {
            tools,
            rules,
            cost,
            feed,
            guest,
        } = now_there.await?;
        let question = ServerQuestion {
            server,
            method,
            args,
            rules: (&*rules, cost),
        };
        let (held, limit) = tools.reach(&question).await?;
        Ok(OpenServer {
            held,
            limit,
            feed,
            _guest: guest,
        })
    }

    /// Subscribes to changes of the resource, if the server supports that, and shows them to everybody who
    /// watches the session.
    async fn watch(&self, opened: &OpenServer, resource: &ResourceRef) {
        let offers = Offers::of(&opened.held.connection);
        let Some(mut changes) = offers.subscribe(&resource.uri).await else {
            return;
        };
        let (feed, server) = (Arc::clone(&opened.feed), resource.server.clone());
        // Ends with the connection.
        self.0.0.tasks.spawn(async move {
            while let Some(uri) = changes.recv().await {
                let server = server.clone();
                feed.announce(FeedItem::ResourceChanged(ResourceRef { server, uri }));
            }
        });
    }
}

/// Converts a content to a file; texts too, under the address that they were read from.
fn file_of(content: AnswerContent, read_from: Option<&str>) -> AnswerFile {
    let text = |text: String, uri: Option<String>, mime_type: Option<String>| AnswerFile {
        name: None,
        uri: uri.or_else(|| read_from.map(ToOwned::to_owned)),
        mime_type,
        is_image: false,
        bytes: text.into_bytes(),
    };
    match content {
        AnswerContent::File(file) => file,
        AnswerContent::Resource {
            uri,
            mime_type,
            text: content,
        } => text(content, Some(uri), mime_type),
        AnswerContent::Text(words) => text(words, None, None),
        AnswerContent::Link(link) => text(link.uri.clone(), Some(link.uri), None),
    }
}

async fn keep(
    attachments: &Attachments,
    key: &SessionKey,
    (file, server): (AnswerFile, &str),
) -> Result<Attachment, Refusal> {
    attachments.keep_of_server(key, given(file, server)).await
}

fn refused(server: &str, error: &mcp::Error) -> Refusal {
    let text = format!("the MCP server `{server}` did not give it: {error}");
    Refusal::new(Code::ToolFailed, text)
}
