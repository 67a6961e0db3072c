//! Runs one call until it has ended, is stopped, or is released.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::tool_call::tasks::CallStop;
use super::{Running, WantedEffects, elicitations, tool_call};
use crate::agent::feed::FeedItem;
use crate::domain::CallId;
use crate::mcp::CallNews;
use crate::session::Command;

/// Stops its call on drop: the tool server is told, unless the call runs as a task, which another gateway
/// resumes.
pub(super) struct Stopper {
    stop: CallStop,
    ended: CancellationToken,
}

impl Stopper {
    /// Cancels the call for the person.
    pub(super) fn stop(&self) {
        self.stop.cancel.cancel();
    }

    /// Resolves once the call has ended here.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        if !self.stop.cancel.is_cancelled() {
            self.stop.let_go.cancel();
        }
        self.stop.cancel.cancel();
    }
}

/// Starts an approved call, or resumes the task that it runs as.
pub(super) fn run(running: &Running, wanted: &WantedEffects<'_>, id: &CallId) -> Option<Stopper> {
    let call = Arc::clone(wanted.control.call(id)?);
    let stop = CallStop::default();
    let stopper = Stopper {
        stop: stop.clone(),
        ended: CancellationToken::new(),
    };
    let (outcomes, ended) = (running.outcomes(), stopper.ended.clone().drop_guard());
    let (feed, tools) = (Arc::clone(wanted.feed), Arc::clone(&wanted.agent.tools));
    let version = wanted.control.version;
    let fence = wanted.is_shared.then(|| wanted.journal.fence(version));
    let id = id.clone();
    let (elicitations, created) = (running.asked.clone(), running.created.clone());
    let tracker = running.tracker.clone();
    let asker = elicitations::Asker::new(&call, wanted, (&outcomes, &tracker));
    tool_call::shown::hosts::report(&tools, &outcomes);
    running.tracker.spawn(async move {
        let started = tokio::time::Instant::now();
        let news = |news| match news {
            CallNews::Progress(progress) => feed.announce(FeedItem::Progress(id.clone(), progress)),
            CallNews::Question(question) => elicitations.ask(&asker, *question),
            CallNews::Task(task) => created.submit(&id, *task, (&outcomes, &tracker)),
        };
        let held = (fence.as_ref(), &stop);
        let outcome = tool_call::checkpointed::run(&tools, &call, held, news).await;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let told = Command::CallEnded {
            call: call.id.clone(),
            outcome,
            duration_ms,
        };
        outcomes.submit(told).await;
        drop(ended);
    });
    Some(stopper)
}
