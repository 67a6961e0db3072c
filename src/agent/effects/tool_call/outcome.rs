//! Converts the results of calls into the form that the session stores, and determines the outcome of a call
//! that began and got no answer.

use std::fmt::Display;
use std::sync::Arc;

use super::SessionTools;
use crate::agent::attachments::{Attachments, ReturnedFile};
use crate::agent::journal::fence::FenceError;
use crate::domain::{
    Attachment, Audience, BlockContent, Code, ResourceRef, ResultBlock, RunsInKind, SessionKey,
};
use crate::mcp::{self, AnswerBlock, AnswerContent, AnswerFile, TaskEnd, ToolAnswer};
use crate::servers::{BUNDLED, Opened, ServerEntry};
use crate::session::{Call, Outcome, Output};

/// Converts a server's answer, and stores its files with the session.
pub(in crate::agent) async fn kept(
    mut answer: ToolAnswer,
    key: &SessionKey,
    server: &str,
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

/// Returns the outcome of a call whose server is open only to members of groups, of which the session's owner is in
/// none any more.
pub(in crate::agent) fn closed_tool(call: &Call) -> Outcome {
    let server = call.facts.as_ref().map(|facts| facts.tool.server.as_str());
    let text = format!(
        "not run: the server `{}` is only for members of its groups, and you are in none of them; ask an \
         administrator of your tenant",
        server.unwrap_or_default()
    );
    failed(Code::NotAllowed, text)
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

/// The end of the message about a remote call that may still go on.
const MAY_GO_ON: &str = "was told to stop; it may go on";
/// The end of the message about calls whose server had to be ended because of another call.
const ENDED_BESIDE: &str = "was ended because another call of it did not stop";

impl SessionTools {
    /// Returns the outcome of a call from the error, and drops a server that is no longer usable.
    pub(in crate::agent) async fn broken(
        &self,
        error: mcp::Error,
        call: &Call,
        server: &ServerEntry,
        opened: &Arc<Opened>,
    ) -> Outcome {
        match error {
            mcp::Error::Cancelled { is_confirmed } => {
                let is_over = is_confirmed || self.end(server, opened).await;
                if is_over {
                    return Outcome::Cancelled;
                }
                let cause = format!("the server `{}` {MAY_GO_ON}", server.name);
                lost(call, Outcome::Cancelled, cause)
            }
            mcp::Error::Timeout { is_confirmed, .. } => {
                let is_over = is_confirmed || self.end(server, opened).await;
                let cause = if !is_over {
                    format!("{error}; the server `{}` {MAY_GO_ON}", server.name)
                } else if is_confirmed {
                    format!("{error}; the call was stopped")
                } else if server.name == BUNDLED {
                    format!("{error}; the sandbox was started afresh, files are kept")
                } else {
                    format!("{error}; the server `{}` was stopped", server.name)
                };
                lost(call, failed(Code::ToolTimeout, cause.clone()), cause)
            }
            mcp::Error::Gone { .. } => {
                let cause = self.gone(&error, server, opened).await;
                self.forget(&server.name, opened).await;
                lost(call, failed(Code::ToolFailed, cause.clone()), cause)
            }
            mcp::Error::NoAnswer { .. } => {
                self.forget(&server.name, opened).await;
                let cause = error.to_string();
                self.lost_server(server, &cause);
                lost(call, failed(Code::ToolFailed, cause.clone()), cause)
            }
            mcp::Error::Task(end) => of_task(call, &end),
            mcp::Error::TooLarge { .. } => {
                let text = format!("the call ran, but {error}; ask for less of it");
                failed(Code::ToolFailed, text)
            }
            mcp::Error::Unreachable { .. } | mcp::Error::NotTaken { .. } => {
                self.forget(&server.name, opened).await;
                let text = format!("not run: {error}");
                failed(Code::ToolFailed, text)
            }
            mcp::Error::Unauthorized { .. } => {
                failed(Code::AuthorizationRequired, format!("not run: {error}"))
            }
            mcp::Error::AddressRequired { .. } => failed(
                Code::ToolFailed,
                format!("not run: {error}, and the person has not been there"),
            ),
            mcp::Error::Refused(_)
            | mcp::Error::Handshake { .. }
            | mcp::Error::NoHandshake { .. } => failed(Code::ToolFailed, error.to_string()),
        }
    }

    /// Ends a server that does not stop, with everything that runs in it. Returns true if that was possible.
    async fn end(&self, server: &ServerEntry, opened: &Arc<Opened>) -> bool {
        opened.overrule().await;
        self.forget(&server.name, opened).await;
        !server.is_remote()
    }

    /// Returns the reason a server went away during a call, with its last output.
    async fn gone(&self, error: &mcp::Error, server: &ServerEntry, opened: &Arc<Opened>) -> String {
        if opened.is_restarted() {
            return format!(
                "an admin restarted the server `{}` during the call; what the call had done by then \
                 stays done",
                server.name
            );
        }
        if opened.is_overruled() {
            return format!("the server `{}` {ENDED_BESIDE}", server.name);
        }
        let text = self.last_words(error, server, opened).await;
        self.lost_server(server, &text);
        text
    }

    async fn last_words(
        &self,
        error: &mcp::Error,
        server: &ServerEntry,
        opened: &Arc<Opened>,
    ) -> String {
        let why = opened.ended().await;
        opened.kill().await;
        let why = match why {
            Some(why) if server.name == BUNDLED => {
                return format!("the sandbox ended during the call: {why}");
            }
            Some(why) => format!("the server `{}` ended during the call: {why}", server.name),
            None => error.to_string(),
        };
        let said = opened.last_words();
        let from = said.len().saturating_sub(10);
        match said.get(from..) {
            Some(last) if !last.is_empty() => {
                format!("{why}\nIts last words on stderr:\n{}", last.join("\n"))
            }
            Some(_) | None => why,
        }
    }
}

/// Returns the outcome of a task that has no result.
fn of_task(call: &Call, end: &TaskEnd) -> Outcome {
    let text = end.to_string();
    match end {
        TaskEnd::Failed(_) | TaskEnd::Unreadable(_) => failed(Code::ToolFailed, text),
        TaskEnd::Cancelled(_) => {
            let text = format!("{text}; what it had done by then stays done");
            failed(Code::ToolFailed, text)
        }
        TaskEnd::Forgotten | TaskEnd::Odd(_) => {
            lost(call, failed(Code::ToolFailed, text.clone()), text)
        }
    }
}
