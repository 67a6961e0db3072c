//! Builds the agent as an MCP server: how it presents itself, and the services without a listener.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::contexts::Extensions;
use super::services::Services;
use super::{Parts, STOP_LIMIT};
use crate::agent::Sessions;
use crate::config::{ApprovalWay, Settings};
use crate::domain::{Caller, SessionKey};
use crate::gateway::mcp::{self, Door, Ending, Exposure, Life, News, Question};
use crate::history::Input;
use crate::servers::{Servers, packages_settled};

/// The purpose of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// `sepal serve`: the page for people, and all other doors.
    Gateway,
    /// `sepal agent --daemon`: MCP clients first; clients on this machine need no key if only this machine
    /// can connect.
    Daemon,
}

/// Returns how the agent presents itself at a listener.
pub(super) fn exposure(settings: &Settings, purpose: Purpose) -> Arc<Exposure> {
    let is_loopback = settings.runtime.transports.http.is_loopback();
    exposed(settings, true, purpose == Purpose::Daemon && is_loopback)
}

fn exposed(settings: &Settings, has_page: bool, admits_local: bool) -> Arc<Exposure> {
    Arc::new(Exposure {
        agent: settings.agent.clone(),
        tool: settings.tool.clone(),
        approval: settings.approval.clone(),
        has_page,
        logs_messages: settings.runtime.transports.debug,
        turn_limit: settings.chat.turn_limit,
        admits_local,
    })
}

/// Returns how prompts may read the question (D17).
pub(super) fn input(settings: &Settings, purpose: Purpose) -> Input<'_> {
    match purpose {
        Purpose::Gateway => Input::Apart(&settings.tool.argument_name),
        Purpose::Daemon => Input::Named(&settings.tool.argument_name),
    }
}

/// The agent for the person who started the process.
pub struct AgentApp {
    sessions: Sessions,
    servers: Servers,
    caller: Caller,
    exposure: Arc<Exposure>,
    parts: Parts,
    questions: TaskTracker,
    buffer: usize,
}

impl AgentApp {
    /// Builds everything but doors.
    pub async fn build(settings: &Settings) -> anyhow::Result<Self> {
        let own = Extensions::default();
        let reads = (input(settings, Purpose::Daemon), &own);
        let services = Services::open(settings, None, reads).await?;
        let entered = services.tenancy.setup().anonymous_caller().await;
        let entered = entered.context("the local user cannot be found")?;
        Ok(Self {
            sessions: services.sessions.clone(),
            servers: services.servers.clone(),
            caller: entered.caller,
            exposure: exposed(settings, false, false),
            questions: TaskTracker::new(),
            buffer: settings.runtime.transports.stdio.buffer_size,
            parts: services.into_parts(CancellationToken::new()),
        })
    }

    /// Serves one client on standard input and output, until it leaves or `stop`.
    pub async fn serve_stdio(self, stop: CancellationToken) -> anyhow::Result<()> {
        let life = Life {
            tasks: self.questions.clone(),
            stop,
        };
        let exposure = Arc::clone(&self.exposure);
        let (sessions, caller) = (self.sessions.clone(), self.caller.clone());
        let served = mcp::serve_stdio(sessions, caller, exposure, life, self.buffer).await;
        self.stop().await;
        served
    }

    /// Answers one question, and stops. Packages of servers are installed first: nobody asks twice, so the
    /// tools have to be there.
    pub async fn ask(
        self,
        text: String,
        ways: &[ApprovalWay],
        door: &dyn Door,
        stop: CancellationToken,
    ) -> anyhow::Result<(SessionKey, Ending)> {
        self.install(door, &stop).await;
        let question = Question {
            sessions: &self.sessions,
            caller: &self.caller,
            ways,
            has_page: false,
            limit: self.exposure.turn_limit,
            stop,
        };
        let asked = question.ask(text, door).await;
        self.sessions.listed().await;
        self.stop().await;
        Ok(asked?)
    }

    /// Waits until the servers can be started, and reports the progress of each.
    async fn install(&self, door: &dyn Door, stop: &CancellationToken) {
        let (told, mut tells) = mpsc::unbounded_channel();
        let installing = packages_settled(&self.servers, move |server, why| {
            // The receiver lives as long.
            let _ = told.send((server.to_owned(), why));
        });
        let telling = async {
            while let Some((server, why)) = tells.recv().await {
                door.report(News::Package(&server, why.as_deref())).await;
            }
        };
        tokio::select! {
            ((), ()) = async { tokio::join!(installing, telling) } => {}
            () = stop.cancelled() => {}
        }
    }

    /// Lets turns finish before everything else stops.
    async fn stop(self) {
        self.questions.close();
        if tokio::time::timeout(STOP_LIMIT, self.questions.wait())
            .await
            .is_err()
        {
            tracing::warn!("A question did not come to rest");
        }
        self.parts.stop().await;
    }
}
