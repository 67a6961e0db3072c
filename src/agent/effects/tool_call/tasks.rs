//! Follows calls that run as tasks of their servers: the session's runner resumes them, and never calls the
//! tool again.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::outcome::{failed, lost};
use super::waiting::PersonWaits;
use super::{SessionTools, called};
use crate::domain::{Code, Digest, Timestamp, ToolRef};
use crate::mcp::{CallNews, Error, Standstill, TaskTerms, ToolCall, ToolProgress};
use crate::servers::{BUNDLED, Opened, ServerEntry};
use crate::session::{Call, CallTask, Outcome};
use crate::telemetry;

/// The first pause before an unreachable server is asked again; it doubles each time.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The time for which a server may be away before its task is given up.
const PATIENCE: Duration = Duration::from_mins(5);
/// The time that a server may take to be reached once the call is to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// The task that a server created for a call that runs here.
#[derive(Default)]
pub(super) struct CreatedTask(OnceLock<CallTask>);

impl CreatedTask {
    /// Passes news on, and remembers the task.
    pub(super) fn noting<'a>(
        &'a self,
        on_news: &'a mut impl FnMut(CallNews),
    ) -> impl FnMut(CallNews) + 'a {
        |news| {
            if let CallNews::Task(new) = &news {
                self.0.get_or_init(|| CallTask {
                    id: new.id.clone(),
                    server: new.server.clone(),
                    ttl_ms: new.ttl_ms,
                    since: Timestamp::default(),
                });
            }
            on_news(news);
        }
    }

    pub(super) fn task(&self) -> Option<CallTask> {
        self.0.get().cloned()
    }
}

/// A call that its server runs as a task.
#[derive(Clone, Copy)]
pub(super) struct TaskCall<'a> {
    pub(super) call: &'a Call,
    pub(super) task: &'a CallTask,
}

/// The connection over which a call failed.
pub(super) struct FailedConnection<'a> {
    pub(super) server: &'a ServerEntry,
    pub(super) opened: &'a Arc<Opened>,
    pub(super) error: Error,
}

/// Continues after an error of a call that its server runs as a task. The tool is never called again for it.
pub(super) async fn go_on(
    tools: &SessionTools,
    of: TaskCall<'_>,
    failed: FailedConnection<'_>,
    stop: &CallStop,
    on_news: &mut impl FnMut(CallNews),
) -> Outcome {
    match outlived(tools, of.call, failed, stop).await {
        FollowEnd::Over(outcome) => *outcome,
        FollowEnd::Away(_) => pick_up(tools, of, stop, on_news).await,
    }
}

/// Decides what an error means for a task: that it ended, or that its server has to be asked again.
async fn outlived(
    tools: &SessionTools,
    call: &Call,
    connection: FailedConnection<'_>,
    stop: &CallStop,
) -> FollowEnd {
    let FailedConnection {
        server,
        opened,
        error,
    } = connection;
    let error = match error {
        error @ (Error::Handshake { .. }
        | Error::NoHandshake { .. }
        | Error::Unreachable { .. }
        | Error::Unauthorized { .. }
        | Error::NotTaken { .. }
        | Error::NoAnswer { .. }
        | Error::Gone { .. }) => {
            // A task in a sandbox ended with the sandbox.
            if server.is_remote() && !stop.let_go.is_cancelled() {
                tools.forget(&server.name, opened).await;
                let code = if matches!(error, Error::Unauthorized { .. }) {
                    Code::AuthorizationRequired
                } else {
                    Code::ToolFailed
                };
                return FollowEnd::Away(failed(code, error.to_string()));
            }
            Error::Gone {
                server: server.name.clone(),
            }
        }
        error @ (Error::AddressRequired { .. }
        | Error::TooLarge { .. }
        | Error::Timeout { .. }
        | Error::Cancelled { .. }
        | Error::Task(_)
        | Error::Refused(_)) => error,
    };
    let outcome = tools.broken(error, call, server, opened).await;
    FollowEnd::Over(Box::new(outcome))
}

/// Follows a known task until it is over.
pub(super) async fn pick_up(
    tools: &SessionTools,
    of: TaskCall<'_>,
    stop: &CallStop,
    on_news: &mut impl FnMut(CallNews),
) -> Outcome {
    let TaskCall { call, task } = of;
    tracing::info!(mcp.server = call.server(), task.id = %task.id.escape_debug(), "Pick up the task of a call");
    let (mut pause, mut since) = (PAUSE, Instant::now());
    let mut waits = PersonWaits::new(&stop.cancel);
    loop {
        let mut was_heard = false;
        let hearing = |news| {
            was_heard = true;
            on_news(news);
        };
        let away = match follow(tools, of, stop, hearing).await {
            FollowEnd::Over(outcome) => return *outcome,
            FollowEnd::Away(why) => why,
        };
        if was_heard {
            (pause, since) = (PAUSE, Instant::now());
        }
        if waits.connects(tools, call, &away, on_news).await {
            continue;
        }
        let is_given_up = since.elapsed() > PATIENCE;
        if is_given_up || stop.cancel.is_cancelled() {
            return given_up(call, &away, stop);
        }
        on_news(CallNews::Progress(ToolProgress {
            progress: 0.0,
            total: None,
            message: Some(format!(
                "The server `{}` cannot be asked now; its task may go on, and is asked for again.",
                call.server()
            )),
        }));
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(MAX_PAUSE),
            () = stop.cancel.cancelled() => {}
        }
    }
}

enum FollowEnd {
    Over(Box<Outcome>),
    /// The server could not be reached, for this reason.
    Away(Outcome),
}

/// Follows a task over one connection.
async fn follow(
    tools: &SessionTools,
    of: TaskCall<'_>,
    stop: &CallStop,
    mut on_news: impl FnMut(CallNews),
) -> FollowEnd {
    let TaskCall { call, task } = of;
    let offering = tools.refresh().await;
    let over = |outcome| FollowEnd::Over(Box::new(outcome));
    let name = call.server();
    let same = offering
        .entry(name)
        .filter(|_| identity(tools, name).as_ref() == Some(&task.server));
    let Some(server) = same else {
        let cause = format!(
            "the server `{name}` was removed or changed while it worked on the task of this call, \
             so it is not asked for the result"
        );
        return over(lost(call, failed(Code::ToolFailed, cause.clone()), cause));
    };
    if !server.is_remote() && !tools.link(name).is_some_and(|link| link.is_live()) {
        let cause = format!(
            "the server `{name}` ran in the session's sandbox and ended with it; one that is started \
             now knows nothing of the task"
        );
        return over(lost(call, failed(Code::ToolFailed, cause.clone()), cause));
    }
    let opened = tokio::select! {
        opened = tools.open(server) => opened,
        () = cancelled_for(stop, STOP_PATIENCE) => {
            let text = format!("the server `{name}` cannot be reached");
            return FollowEnd::Away(failed(Code::ToolFailed, text));
        }
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(outcome) => return FollowEnd::Away(*outcome),
    };
    let request = of_task(tools, of, server, stop);
    let answer = opened.call(request, &stop.cancel, &mut on_news).await;
    match answer {
        Ok(answer) => over(tools.keep(answer, call, name).await),
        Err(error) => {
            let failed = FailedConnection {
                server,
                opened: &opened,
                error,
            };
            outlived(tools, call, failed, stop).await
        }
    }
}

async fn cancelled_for(stop: &CallStop, time: Duration) {
    stop.cancel.cancelled().await;
    sleep(time).await;
}

/// Returns the outcome of a task whose server was away too long.
fn given_up(call: &Call, away: &Outcome, stop: &CallStop) -> Outcome {
    let why = away.text();
    let why = why.strip_prefix("not run: ").unwrap_or(&why);
    let (what, if_it_only_reads) = if stop.cancel.is_cancelled() {
        ("could not be told to stop", Outcome::Cancelled)
    } else {
        let text = format!("its result could not be asked for: {why}");
        (
            "could not be asked for the result",
            failed(Code::ToolFailed, text),
        )
    };
    let cause = format!(
        "the server `{}` runs this call as a task and {what}: {why}; the task may go on",
        call.server()
    );
    lost(call, if_it_only_reads, cause)
}

/// The signals to a call.
#[derive(Clone, Default)]
pub(in crate::agent) struct CallStop {
    /// Cancelled when the call is to end.
    pub(in crate::agent) cancel: CancellationToken,
    /// Cancelled before `cancel` if the call itself is not to end: a task then continues at its server.
    pub(in crate::agent) let_go: CancellationToken,
}

/// The time to wait beyond the command's own limit for the bundled server's answer.
const ANSWER_MARGIN: Duration = Duration::from_secs(10);
/// The message of a call while its sandbox is paused.
const DISK_IS_FULL: &str = "Paused: the disk is nearly full. This goes on when there is room.";
/// The time limit of a call of another server, unless its entry sets another.
pub(super) const CALL_LIMIT: Duration = Duration::from_mins(1);
/// The time limit of a task, unless the entry sets another.
const TASK_LIMIT: Duration = Duration::from_hours(1);
/// The time for which a server is asked to keep a task beyond its time limit, in case this gateway is away
/// meanwhile.
const KEPT_FOR: Duration = Duration::from_hours(24);

/// Makes the request of an approved call.
pub(super) fn request(
    tools: &SessionTools,
    call: &Call,
    tool: ToolRef,
    server: &ServerEntry,
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
        ..plain(tools, call, tool, server)
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
pub(super) fn plain(
    tools: &SessionTools,
    call: &Call,
    tool: ToolRef,
    server: &ServerEntry,
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
fn of_task(
    tools: &SessionTools,
    TaskCall { call, task }: TaskCall<'_>,
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
fn identity(tools: &SessionTools, server: &str) -> Option<Digest> {
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
