//! Scans the workspace around the calls that may change it, so that their changes are recorded and can be
//! undone.

use super::dry_run::taking;
use super::hosts;
use super::tasks::CallStop;
use super::workspace::Workspace;
use super::{ReadyCall, SessionTools};
use crate::agent::journal::fence::Fence;
use crate::domain::McpWorkspace;
use crate::mcp::CallNews;
use crate::servers::{BUNDLED, Source};
use crate::session::{Call, Outcome};
use crate::store::clock::now;

/// The tools of the session's own sandbox that only read.
const READING: [&str; 2] = ["read_file", "list_files"];

/// Runs one approved call, and stores its changes before its outcome is sent.
pub(in crate::agent::effects) async fn run(
    tools: &SessionTools,
    call: &Call,
    fence: Option<&Fence>,
    stop: &CallStop,
    on_news: impl FnMut(CallNews),
) -> Outcome {
    if let Some(result) = &call.taken_result {
        return Box::pin(taking::take(tools, call, result, fence, stop)).await;
    }
    let begun = now();
    let mut outcome = tools.run(call, fence, stop, on_news).await;
    hosts::tell_refused(tools, call, begun, &mut outcome);
    // Start nothing for the scan: changes that cannot be seen now are found before the next call.
    let open = tools.link(BUNDLED).and_then(|link| link.live());
    let connection = open.as_ref().map(|held| &held.connection);
    tools.checkpoints.after_call(&call.id, connection).await;
    outcome
}

/// Stores earlier changes before a call that may change files.
pub(super) async fn before(tools: &SessionTools, call: &Call, ready: &ReadyCall) {
    let ReadyCall {
        tool,
        server,
        opened,
    } = ready;
    if server.source == Source::Bundled {
        if !READING.contains(&tool.tool.as_str()) {
            tools
                .checkpoints
                .before_call(&call.id, &opened.connection)
                .await;
        }
        return;
    }
    let may_write = !server.is_remote() && server.config.workspace == McpWorkspace::Rw;
    if !may_write || !tools.checkpoints.is_on() {
        return;
    }
    // Only our own server scans: others must not learn about people's files.
    let Some(workspace) = Workspace::of(tools) else {
        return;
    };
    match workspace.open().await {
        Ok(own) => {
            tools
                .checkpoints
                .before_call(&call.id, &own.connection)
                .await;
        }
        Err(error) => {
            tracing::warn!(error, "The files are not looked at before a call");
        }
    }
}
