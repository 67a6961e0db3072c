//! Determines the outcome of a call that began and got no answer.

use std::sync::Arc;

use super::SessionTools;
use super::outcome::{failed, lost};
use crate::domain::Code;
use crate::mcp::{self, TaskEnd};
use crate::servers::{BUNDLED, Opened, ServerEntry};
use crate::session::{Call, Outcome};

/// The end of the message about a remote call that may still go on.
const MAY_GO_ON: &str = "was told to stop; it may go on";
/// The end of the message about calls whose server had to be ended because of another call.
const ENDED_BESIDE: &str = "was ended because another call of it did not stop";

impl SessionTools {
    /// Returns the outcome of a call from the error, and drops a server that is no longer usable.
    pub(in crate::agent) async fn broken(
        &self,
        error: mcp::Error,
        (call, server): (&Call, &ServerEntry),
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
