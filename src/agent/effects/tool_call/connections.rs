//! Manages a session's connections to servers: opens them, before the first call if the operator wants that,
//! and tells where its tools run.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::SessionTools;
use super::outcome::failed;
use crate::agent::cluster::presence::HasSite;
use crate::agent::mailbox::{ServerDoor, ServerQuestion};
use crate::domain::{Code, ToolRef};
use crate::servers::{BUNDLED, LiveConnection, Opened, ServerEntry, Source};
use crate::session::{Outcome, Refusal};
use crate::store::clock::now;
use crate::store::live::cluster_bus::Site;

impl HasSite for SessionTools {
    /// The site, as far as the session was used.
    fn site(&self) -> Site {
        let sandbox = self.assignment.settled();
        let files = self.engine().cloned().zip(sandbox.cloned());
        let bundled = self.links().get(BUNDLED).cloned();
        let is_running = bundled.is_some_and(|link| link.is_live());
        let container = sandbox.filter(|_| is_running);
        let container = container.and_then(|sandbox| self.place.runtime.container(sandbox));
        Site { files, container }
    }
}

#[async_trait]
impl ServerDoor for SessionTools {
    async fn reach(
        &self,
        question: &ServerQuestion<'_>,
    ) -> Result<(LiveConnection, Duration), Refusal> {
        let offering = self.refresh().await;
        let server = question.server;
        let Some(entry) = offering.entry(server).cloned() else {
            let text = format!("there is no MCP server `{server}` for this session");
            return Err(Refusal::of_field(Code::NotFound, "server", text));
        };
        let at = ToolRef {
            server: server.to_owned(),
            tool: question.method.to_owned(),
        };
        let rules = self.rules(&self.assignment.holder().user);
        if let Some(ruling) = rules.forbids(question.rules, (&at, &question.args), now()) {
            let rule = ruling.rule;
            let rule = rule.map_or_else(String::new, |rule| format!(" `{}`", rule.name));
            let text = format!("the rule{rule} denies `{}` of server `{server}`", at.tool);
            return Err(Refusal::of_field(Code::NotAllowed, "server", text));
        }
        let limit = entry.config.timeout;
        let limit = limit.map_or(super::tasks::CALL_LIMIT, Duration::from_secs);
        let held = self.open(&entry).await;
        let held = held.map_err(|outcome| not_open(&outcome))?;
        Ok((held, limit))
    }
}

/// Converts the outcome that a call would have had into the refusal for a server that is not open.
fn not_open(outcome: &Outcome) -> Refusal {
    let code = match outcome {
        Outcome::Failed { code, .. } => *code,
        Outcome::Completed { .. }
        | Outcome::Rejected { .. }
        | Outcome::Cancelled
        | Outcome::Unknown { .. } => Code::ToolFailed,
    };
    let text = outcome.text();
    let text = text.strip_prefix("not run: ").unwrap_or(&text);
    Refusal::new(code, text)
}

impl SessionTools {
    /// Begins to connect to every server of the session, if `mcp-config.json` says so
    /// (`settings.autoConnect`). Nobody waits for it: a call that comes earlier shares the connection, and a
    /// failed connection is tried again by the first call.
    pub(in crate::agent) fn connect_ahead(self: &Arc<Self>, tasks: &TaskTracker) {
        let mut begun = self.begun();
        if begun.is_none() && self.servers.connects_ahead() {
            let tools = Arc::clone(self);
            let connecting = tasks.spawn(async move { tools.connect_all().await });
            *begun = Some(AbortOnDropHandle::new(connecting));
        }
    }

    /// Returns the session's connection to a server, opened if necessary.
    pub(in crate::agent) async fn open(
        &self,
        server: &ServerEntry,
    ) -> Result<LiveConnection, Box<Outcome>> {
        let link = Arc::clone(self.links().entry(server.name.clone()).or_default());
        let sandbox = if server.is_remote() {
            self.assignment.first().clone()
        } else {
            let sandbox = self.assignment.sandbox().await;
            sandbox.map_err(|error| {
                tracing::warn!(?error, "The session's files cannot be reached");
                Box::new(failed(
                    Code::SandboxUnavailable,
                    format!("not run: {error}"),
                ))
            })?
        };
        let holder = self.assignment.holder();
        let reach = (server.source == Source::Bundled).then_some(&self.reach);
        let opened = link.connect(server, &self.servers, &holder, &sandbox, reach);
        let opened = opened.await;
        opened.map_err(|failure| {
            tracing::warn!(mcp.server = %server.name, error = failure.text, "A server does not start");
            Box::new(failed(failure.code, format!("not run: {}", failure.told())))
        })
    }

    async fn connect_all(&self) {
        let offering = self.refresh().await;
        let has_place = self.place.is_on();
        let can_run = |server: &&Arc<ServerEntry>| has_place || server.is_remote();
        // Failures are logged.
        let connecting = offering
            .entries()
            .filter(can_run)
            .map(|server| self.open(server));
        futures::future::join_all(connecting).await;
    }

    /// Stops connecting ahead; the next turn may begin again.
    pub(in crate::agent) fn end_ahead(&self) {
        drop(self.begun().take());
    }

    fn begun(&self) -> MutexGuard<'_, Option<AbortOnDropHandle<()>>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops a server that has ended; the next call starts it again.
    pub(in crate::agent) async fn forget(&self, name: &str, ended: &Arc<Opened>) {
        match self.link(name) {
            Some(link) => link.let_go(ended).await,
            // The session has dropped all its servers meanwhile.
            None => ended.kill().await,
        }
    }

    /// Ends everything that runs for the session; its workspace stays.
    pub(in crate::agent) async fn close(&self) {
        self.end_ahead();
        let links = std::mem::take(&mut *self.links());
        let closing = links.values().map(|link| link.close());
        futures::future::join_all(closing).await;
    }
}
