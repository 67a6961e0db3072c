//! Reads one resource, prompt or completion.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, CompletionContext,
    GetPromptRequest, GetPromptRequestParams, ReadResourceRequest, ReadResourceRequestParams,
    Reference as WireReference, Role, ServerResult,
};
use serde_json::{Map, Value};

use crate::connection::Connection;
use crate::error::Error;
use crate::tools::content::{self, AnswerContent};

/// The most contents of one resource, and the most messages of one prompt.
const MAX_PARTS: usize = 20;
/// The most values of a completion that are shown; the protocol allows as many.
const MAX_VALUES: usize = 100;

/// A prompt as the server returned it.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenPrompt {
    pub description: Option<String>,
    pub messages: Vec<PromptMessage>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// True if the message has the role of the model.
    pub is_assistant: bool,
    pub content: AnswerContent,
}

/// An argument that is being typed.
#[derive(Debug, Clone)]
pub struct Completing {
    pub of: Reference,
    pub argument: String,
    /// The text so far.
    pub value: String,
    /// The other arguments.
    pub others: BTreeMap<String, String>,
}

/// The owner of an argument.
#[derive(Debug, Clone)]
pub enum Reference {
    /// A prompt, by its name.
    Prompt(String),
    /// A URI template.
    Template(String),
}

pub(super) async fn resource(
    connection: &Connection,
    uri: &str,
    limit: Duration,
) -> Result<Vec<AnswerContent>, Error> {
    let params = ReadResourceRequestParams::new(uri);
    let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
    let ServerResult::ReadResourceResult(result) = connection.answer(request, limit).await? else {
        return Err(odd());
    };
    let cleaner = connection.cleaner();
    let contents = result.contents.iter().take(MAX_PARTS);
    Ok(contents
        .map(|it| content::of_resource(it, cleaner))
        .collect())
}

pub(super) async fn prompt(
    connection: &Connection,
    name: &str,
    arguments: Map<String, Value>,
    limit: Duration,
) -> Result<GivenPrompt, Error> {
    let params = GetPromptRequestParams::new(name).with_arguments(arguments);
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let ServerResult::GetPromptResult(result) = connection.answer(request, limit).await? else {
        return Err(odd());
    };
    let cleaner = connection.cleaner();
    let messages = result.messages.iter().take(MAX_PARTS);
    Ok(GivenPrompt {
        description: content::description(result.description.as_deref(), cleaner),
        messages: messages
            .map(|message| PromptMessage {
                is_assistant: message.role == Role::Assistant,
                content: content::piece(&message.content, cleaner),
            })
            .collect(),
    })
}

pub(super) async fn complete(
    connection: &Connection,
    of: &Completing,
    limit: Duration,
) -> Result<Vec<String>, Error> {
    let reference = match &of.of {
        Reference::Prompt(name) => WireReference::for_prompt(name),
        Reference::Template(uri) => WireReference::for_resource(uri),
    };
    let argument = ArgumentInfo::new(&of.argument, &of.value);
    let others = of.others.clone().into_iter().collect();
    let params = CompleteRequestParams::new(reference, argument)
        .with_context(CompletionContext::with_arguments(others));
    let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
    let ServerResult::CompleteResult(result) = connection.answer(request, limit).await? else {
        return Err(odd());
    };
    let cleaner = connection.cleaner();
    let values = result.completion.values.iter().take(MAX_VALUES);
    Ok(values.map(|value| content::short(value, cleaner)).collect())
}

pub(super) fn odd() -> Error {
    Error::Refused("the answer has another form than the question asks for".to_owned())
}
