//! Follows calls that run as tasks of their servers: the session's runner resumes them, and never calls the
//! tool again.

mod request;
mod stop;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::{Instant, sleep};

pub(super) use self::request::{CALL_LIMIT, plain, request};
use self::request::{identity, of_task};
pub(in crate::agent) use self::stop::CallStop;
use super::SessionTools;
use super::authorizing::connects;
use super::outcome::{failed, lost};
use crate::domain::{Code, Timestamp};
use crate::mcp::{CallNews, Error, ToolProgress};
use crate::servers::{Opened, ServerEntry};
use crate::session::{Call, CallTask, Outcome};

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

/// Continues after an error of a call that its server runs as a task. The tool is never called again for it.
pub(super) async fn go_on(
    tools: &SessionTools,
    (call, task): (&Call, &CallTask),
    (server, opened, error): (&ServerEntry, &Arc<Opened>, Error),
    (stop, on_news): (&CallStop, &mut impl FnMut(CallNews)),
) -> Outcome {
    match outlived(tools, (call, server), (opened, error), stop).await {
        FollowEnd::Over(outcome) => *outcome,
        FollowEnd::Away(_) => pick_up(tools, (call, task), stop, on_news).await,
    }
}

/// Decides what an error means for a task: that it ended, or that its server has to be asked again.
async fn outlived(
    tools: &SessionTools,
    (call, server): (&Call, &ServerEntry),
    (opened, error): (&Arc<Opened>, Error),
    stop: &CallStop,
) -> FollowEnd {
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
    let outcome = tools.broken(error, (call, server), opened).await;
    FollowEnd::Over(Box::new(outcome))
}

/// Follows a known task until it is over.
pub(super) async fn pick_up(
    tools: &SessionTools,
    (call, task): (&Call, &CallTask),
    stop: &CallStop,
    on_news: &mut impl FnMut(CallNews),
) -> Outcome {
    tracing::info!(mcp.server = call.server(), task.id = %task.id.escape_debug(), "Pick up the task of a call");
    let (mut pause, mut since, mut waits) = (PAUSE, Instant::now(), 0);
    loop {
        let mut was_heard = false;
        let hearing = |news| {
            was_heard = true;
            on_news(news);
        };
        let away = match follow(tools, (call, task), stop, hearing).await {
            FollowEnd::Over(outcome) => return *outcome,
            FollowEnd::Away(why) => why,
        };
        if was_heard {
            (pause, since) = (PAUSE, Instant::now());
        }
        if connects(tools, (call, &away), &mut waits, (&stop.cancel, on_news)).await {
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
    (call, task): (&Call, &CallTask),
    stop: &CallStop,
    mut on_news: impl FnMut(CallNews),
) -> FollowEnd {
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
    let request = of_task(tools, (call, task), server, stop);
    let answer = opened.call(request, &stop.cancel, &mut on_news).await;
    match answer {
        Ok(answer) => over(tools.keep(answer, call, name).await),
        Err(error) => outlived(tools, (call, server), (&opened, error), stop).await,
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
