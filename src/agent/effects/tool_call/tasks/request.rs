//! Builds requests to servers for calls, with their time limits.

use std::time::Duration;

use super::CallStop;
use crate::agent::effects::tool_call::{SessionTools, called};
use crate::domain::{Digest, ToolRef};
use crate::mcp::{Standstill, TaskTerms, ToolCall};
use crate::servers::{BUNDLED, ServerEntry};
use crate::session::{Call, CallTask};
use crate::telemetry;

/// The time to wait beyond the command's own limit for the bundled server's answer.
const ANSWER_MARGIN: Duration = Duration::from_secs(10);
/// The message of a call while its sandbox is paused.
const DISK_IS_FULL: &str = "Paused: the disk is nearly full. This goes on when there is room.";
/// The time limit of a call of another server, unless its entry sets another.
pub(in crate::agent::effects::tool_call) const CALL_LIMIT: Duration = Duration::from_mins(1);
/// The time limit of a task, unless the entry sets another.
const TASK_LIMIT: Duration = Duration::from_hours(1);
/// The time for which a server is asked to keep a task beyond its time limit, in case this gateway is away
/// meanwhile.
const KEPT_FOR: Duration = Duration::from_hours(24);

/// Makes the request of an approved call.
pub(in crate::agent::effects::tool_call) fn request(
    tools: &SessionTools,
    (call, tool, server): (&Call, ToolRef, &ServerEntry),
    stop: &CallStop,
) -> ToolCall {
    log(call, server);
    let offering = tools.offering();
    let entry = called(&offering, call);
    let is_asked = entry.is_some_and(|entry| entry.tool.runs_as_task);
    let identity = identity(tools, &server.name);
    let terms = identity.map(|identity| terms(server, identity, stop));
    ToolCall {
        task: terms.map(|terms| TaskTerms { is_asked, ..terms }),
        ..plain(tools, (call, tool, server))
    }
}

/// Logs that a call runs. The arguments are people's or a model's words, which only the level `trace`
/// includes; other levels have their length.
fn log(call: &Call, server: &ServerEntry) {
    if tracing::enabled!(tracing::Level::TRACE) {
        let args = telemetry::redact_args(&call.args);
        tracing::trace!(mcp.server = %server.name, ">> Execute tool {}({args})", call.name);
        return;
    }
    let bytes = call.args.to_string().len();
    tracing::info!(
        mcp.server = %server.name,
        tool.name = %call.name,
        args.bytes = bytes,
        ">> Execute tool {}",
        call.name
    );
}

/// Makes the request of a call whose task nobody would follow.
pub(in crate::agent::effects::tool_call) fn plain(
    tools: &SessionTools,
    (call, tool, server): (&Call, ToolRef, &ServerEntry),
) -> ToolCall {
    let limit = match (server.name.as_str(), server.config.timeout) {
        (BUNDLED, _) => tools.place.command_limit + ANSWER_MARGIN,
        (_, Some(seconds)) => Duration::from_secs(seconds),
        (_, None) => CALL_LIMIT,
    };
    ToolCall {
        tool: tool.tool,
        args: call.args.clone(),
        limit,
        standstill: standstill(tools, server),
        task: None,
    }
}

/// Makes the request for the result of a call that runs as a task. Nothing is called.
pub(super) fn of_task(
    tools: &SessionTools,
    (call, task): (&Call, &CallTask),
    server: &ServerEntry,
    stop: &CallStop,
) -> ToolCall {
    ToolCall {
        tool: call.name.clone(),
        args: call.args.clone(),
        limit: CALL_LIMIT,
        standstill: standstill(tools, server),
        task: Some(TaskTerms {
            picked_up: Some(task.id.clone()),
            ..terms(server, task.server.clone(), stop)
        }),
    }
}

/// The identity of a server, by which another gateway recognizes the server of a task.
pub(super) fn identity(tools: &SessionTools, server: &str) -> Option<Digest> {
    tools.offering().identity(server, &tools.place.image())
}

fn terms(server: &ServerEntry, identity: Digest, stop: &CallStop) -> TaskTerms {
    let limit = server.config.timeout;
    let limit = limit.map_or(TASK_LIMIT, Duration::from_secs);
    TaskTerms {
        is_asked: false,
        limit,
        ttl: limit.saturating_add(KEPT_FOR),
        let_go: stop.let_go.clone(),
        server: identity,
        picked_up: None,
    }
}

fn standstill(tools: &SessionTools, server: &ServerEntry) -> Option<Standstill> {
    (!server.is_remote()).then(|| Standstill {
        is_still: tools.place.disk.pressure(),
        words: DISK_IS_FULL,
    })
}
