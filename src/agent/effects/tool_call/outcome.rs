//! Converts the results of calls into the form that the session stores.

use std::fmt::Display;

use crate::agent::attachments::{Attachments, ReturnedFile};
use crate::agent::journal::fence::FenceError;
use crate::domain::{
    Attachment, Audience, BlockContent, Code, ResourceRef, ResultBlock, RunsInKind, SessionKey,
};
use crate::mcp::{AnswerBlock, AnswerContent, AnswerFile, ToolAnswer};
use crate::session::{Call, Outcome, Output};

/// Converts a server's answer, and stores its files with the session.
pub(in crate::agent) async fn kept(
    mut answer: ToolAnswer,
    (key, server): (&SessionKey, &str),
    attachments: &Attachments,
) -> Outcome {
    let (mut blocks, mut sent) = (Vec::new(), Vec::new());
    for AnswerBlock { content, audience } in std::mem::take(&mut answer.blocks) {
        let content = match content {
            AnswerContent::Text(text) => BlockContent::Text { text },
            AnswerContent::Resource {
                uri,
                mime_type,
                text,
            } => BlockContent::Resource {
                uri,
                mime_type,
                text,
            },
            AnswerContent::Link(link) => BlockContent::ResourceLink(link),
            AnswerContent::File(file) => {
                let (uri, mime_type) = (file.uri.clone(), file.mime_type.clone());
                let given = given(file, server);
                match attachments.keep_of_server(key, given).await {
                    Ok(attachment) => {
                        if audience != Audience::User {
                            sent.push(attachment.clone());
                        }
                        BlockContent::File {
                            attachment,
                            uri,
                            mime_type,
                        }
                    }
                    Err(refusal) => {
                        let text = format!("[a file was not kept: {refusal}]");
                        answer.text.push('\n');
                        answer.text.push_str(&text);
                        BlockContent::Text { text }
                    }
                }
            }
        };
        blocks.push(ResultBlock { content, audience });
    }
    if !answer.is_rich {
        blocks.clear();
    }
    ended(answer, sent, blocks)
}

/// Converts a file; a resource is named after the end of its address.
pub(in crate::agent) fn given(file: AnswerFile, server: &str) -> ReturnedFile {
    let source = file.uri.map(|uri| ResourceRef {
        server: server.to_owned(),
        uri,
    });
    let name = source.as_ref().map(|source| source.uri.as_str());
    let name = name.and_then(|uri| uri.split(['?', '#']).next());
    let name = name.map(|uri| uri.trim_end_matches('/'));
    ReturnedFile {
        name: name.or(file.name).unwrap_or_default().to_owned(),
        is_image: file.is_image,
        bytes: file.bytes,
        source,
    }
}

fn ended(answer: ToolAnswer, attachments: Vec<Attachment>, blocks: Vec<ResultBlock>) -> Outcome {
    let ToolAnswer {
        text,
        structured,
        truncated_bytes,
        is_error,
        is_rich: _,
        blocks: _,
    } = answer;
    let output = Output {
        text,
        structured,
        truncated_bytes,
        attachments,
        blocks,
    };
    if is_error {
        Outcome::Failed {
            code: Code::ToolFailed,
            output,
        }
    } else {
        Outcome::Completed { output }
    }
}

/// Makes a failed outcome.
pub(in crate::agent) fn failed(code: Code, text: String) -> Outcome {
    Outcome::Failed {
        code,
        output: Output {
            text,
            ..Output::default()
        },
    }
}

/// Returns the outcome of an approved call whose tool is gone.
pub(in crate::agent) fn gone_tool(lack: Option<impl Display>, call: &Call) -> Outcome {
    let runs_in = call.facts.as_ref().map(|facts| facts.runs_in.kind);
    match lack {
        Some(lack) if runs_in != Some(RunsInKind::Remote) => {
            failed(Code::SandboxUnavailable, format!("not run: {lack}"))
        }
        Some(_) | None => failed(Code::ToolFailed, "not run: the tool is gone".to_owned()),
    }
}

/// Returns the outcome of a call that was sent and whose end is unknown: `unknown`, or `if_it_only_reads` for
/// a call that may run again, because nobody has to look into it.
pub(in crate::agent) fn lost(call: &Call, if_it_only_reads: Outcome, cause: String) -> Outcome {
    let facts = call.facts.as_ref();
    if facts.is_some_and(|facts| facts.may_run_again()) {
        return if_it_only_reads;
    }
    Outcome::Unknown { cause: Some(cause) }
}

/// Returns the outcome of a call that its fence kept from being sent.
pub(in crate::agent) fn fenced(fenced: &FenceError) -> Outcome {
    tracing::warn!(error = ?fenced, "A call is not sent");
    match fenced {
        // The gateway that took over has stored an outcome, so this one is dropped as too late.
        FenceError::TakenOver => Outcome::Unknown {
            cause: Some(fenced.to_string()),
        },
        FenceError::Unclear(_) | FenceError::Unreadable(_) => {
            failed(Code::StoreUnavailable, format!("not run: {fenced}"))
        }
    }
}
