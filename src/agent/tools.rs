//! The second effect: run approved calls. Joins the toolbox, the sandbox and its MCP connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::home::{Home, HomeError};
use super::place::SandboxPlace;
use crate::domain::{Code, Digest, RunsIn, RunsInKind, SandboxId, Tool, ToolRef};
use crate::mcp::{self, Connection, ToolAnswer, ToolCall, ToolProgress, Toolbox, ToolboxTool};
use crate::sandbox::{self, Ended, Launch, Life, Program, Running};
use crate::session::{Call, Edit, Outcome, Output, Resolution, ToolFacts};
use crate::telemetry;

/// How much longer than the command's own limit we wait for the server's answer.
const ANSWER_MARGIN: Duration = Duration::from_secs(10);
/// How long a sandbox whose stream ended may take until it is known why.
const END_GRACE: Duration = Duration::from_secs(2);

/// The tools of one session. Its sandbox starts at the first call (USERS 12).
pub struct SessionTools {
    toolbox: Toolbox,
    definitions: Arc<[Tool]>,
    place: Arc<SandboxPlace>,
    home: Home,
    /// Held while a sandbox starts, so that calls side by side share one.
    live: Mutex<Option<Arc<LiveSandbox>>>,
}

struct LiveSandbox {
    connection: Connection,
    /// Taken by whoever ends it. Never held across an await.
    life: SyncMutex<Option<Life>>,
}

impl LiveSandbox {
    /// Ends everything inside and waits for it.
    async fn kill(&self) {
        let life = self
            .life
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(life) = life {
            life.kill().await;
        }
    }

    /// Why it ended, if it has.
    async fn ended(&self) -> Ended {
        let ended = match &*self.life.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(life) => life.ended(),
            None => return Ended::Killed,
        };
        tokio::time::timeout(END_GRACE, ended)
            .await
            .unwrap_or(Ended::Lost)
    }
}

impl SessionTools {
    pub(super) fn new(toolbox: Toolbox, place: Arc<SandboxPlace>, home: Home) -> Self {
        let definitions = toolbox.definitions().cloned().collect();
        Self {
            toolbox,
            definitions,
            place,
            home,
            live: Mutex::new(None),
        }
    }

    /// What the model is told.
    pub(super) fn definitions(&self) -> Arc<[Tool]> {
        Arc::clone(&self.definitions)
    }

    /// How long the session must stay in memory for its sandbox; `None` if it has none.
    pub(super) fn idle_limit(&self) -> Option<Duration> {
        let is_live = self.live.try_lock().map_or(true, |live| live.is_some());
        is_live.then_some(self.place.idle_limit)
    }

    /// Looks a proposed call up and validates it, before anybody is asked.
    pub(super) fn resolve(&self, name: &str, args: &Value) -> Resolution {
        let Some(entry) = self.toolbox.find(name) else {
            let known: Vec<&str> = self
                .definitions
                .iter()
                .map(|tool| tool.name.as_str())
                .collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            return Resolution::Invalid(format!("there is no tool `{name}`; there are: {known}"));
        };
        match entry.problem_with(args) {
            Some(problem) => Resolution::Invalid(problem),
            None => Resolution::Ready(Box::new(self.facts(entry, args))),
        }
    }

    /// Looks changed arguments of a waiting call up.
    pub(super) fn edit(&self, call: &Call, args: Value) -> Edit {
        let Some(entry) = self.toolbox.find(&call.name) else {
            let invalid = Some(format!("the tool `{}` is gone", call.name));
            let nothing = Digest::from_wire("");
            return Edit {
                args,
                digest: nothing.clone(),
                equal: nothing,
                invalid,
            };
        };
        let (digest, equal) = self.digests(entry, &args);
        Edit {
            invalid: entry.problem_with(&args),
            args,
            digest,
            equal,
        }
    }

    fn digests(&self, entry: &ToolboxTool, args: &Value) -> (Digest, Digest) {
        let digest = Digest::of_call(&entry.at, &entry.definition, args, &self.place.image());
        (
            digest,
            Digest::of_call(&entry.at, &Digest::from_wire(""), args, ""),
        )
    }

    fn facts(&self, entry: &ToolboxTool, args: &Value) -> ToolFacts {
        let (digest, equal) = self.digests(entry, args);
        ToolFacts {
            tool: entry.at.clone(),
            title: entry.tool.title.clone(),
            description: entry.tool.description.clone(),
            schema: entry.tool.input_schema.clone(),
            annotations: entry.tool.annotations.clone(),
            is_trusted: entry.is_trusted,
            runs_in: RunsIn {
                kind: RunsInKind::Sandbox,
                hosts: Vec::new(),
            },
            digest,
            equal,
        }
    }

    /// Runs one approved call. What it gives is a value whatever happens.
    #[tracing::instrument(skip_all, fields(call.id = %call.id, tool.name = %call.name))]
    pub(super) async fn run(
        &self,
        call: &Call,
        cancel: &CancellationToken,
        on_progress: impl FnMut(ToolProgress),
    ) -> Outcome {
        let tool = match self.check(call) {
            Ok(tool) => tool,
            Err(outcome) => return *outcome,
        };
        tracing::info!(
            ">> Execute tool {}({})",
            call.name,
            telemetry::redact_args(&call.args)
        );
        let live = tokio::select! {
            live = self.live() => live,
            () = cancel.cancelled() => return Outcome::Cancelled,
        };
        let live = match live {
            Ok(live) => live,
            Err(error) => {
                tracing::warn!(?error, "The sandbox does not start");
                return failed(Code::SandboxUnavailable, error.to_string());
            }
        };
        let limit = self.place.command_limit + ANSWER_MARGIN;
        let request = ToolCall {
            tool: tool.tool,
            args: call.args.clone(),
            limit,
        };
        match live.connection.call(request, cancel, on_progress).await {
            Ok(answer) => ended(answer),
            Err(error) => self.broken(error, &live).await,
        }
    }

    /// What was approved is what runs: the digest is recomputed from what would run now.
    fn check(&self, call: &Call) -> Result<ToolRef, Box<Outcome>> {
        let entry = self.toolbox.find(&call.name);
        let (Some(entry), Some(facts)) = (entry, &call.facts) else {
            return Err(Box::new(failed(
                Code::ToolFailed,
                "the tool is gone".to_owned(),
            )));
        };
        let (digest, _) = self.digests(entry, &call.args);
        if digest == facts.digest {
            return Ok(entry.at.clone());
        }
        tracing::warn!(call.id = %call.id, "What would run is not what was approved");
        let text = "not run: the tool's definition or its sandbox changed since it was approved";
        Err(Box::new(failed(Code::ChangedSinceShown, text.to_owned())))
    }

    /// The session's sandbox, started if need be.
    async fn live(&self) -> Result<Arc<LiveSandbox>, StartError> {
        let mut live = self.live.lock().await;
        if let Some(live) = live.as_ref().filter(|live| !live.connection.is_closed()) {
            return Ok(Arc::clone(live));
        }
        *live = None;
        let launch = self.launch(self.home.sandbox().await?);
        let Running {
            stdin,
            stdout,
            mut stderr,
            life,
        } = self.place.runtime.start(launch).await?;
        let opened = Connection::open(mcp::BUNDLED_SERVER, stdout, stdin).await;
        let connection = match opened {
            Ok(connection) => connection,
            Err(error) => {
                let ended = life.kill().await;
                // What it said last is the likely reason.
                while let Ok(line) = stderr.try_recv() {
                    tracing::warn!(mcp.server = mcp::BUNDLED_SERVER, %ended, "{line}");
                }
                return Err(error.into());
            }
        };
        let started = Arc::new(LiveSandbox {
            connection,
            life: SyncMutex::new(Some(life)),
        });
        *live = Some(Arc::clone(&started));
        Ok(started)
    }

    fn launch(&self, sandbox: SandboxId) -> Launch {
        Launch {
            sandbox,
            server: mcp::BUNDLED_SERVER.to_owned(),
            program: Program::Bundled {
                command_timeout: self.place.command_limit,
            },
            environment: BTreeMap::new(),
            workspace: sandbox::Access::ReadWrite,
            bounds: self.place.bounds,
        }
    }

    async fn broken(&self, error: mcp::Error, live: &LiveSandbox) -> Outcome {
        match error {
            mcp::Error::Cancelled { is_confirmed } => {
                if !is_confirmed {
                    // The server does not listen: what it runs ends with it.
                    self.close().await;
                }
                Outcome::Cancelled
            }
            mcp::Error::Timeout { .. } => {
                self.close().await;
                let text = format!("{error}; the sandbox was started afresh, files are kept");
                failed(Code::ToolTimeout, text)
            }
            mcp::Error::Gone { .. } => {
                let why = live.ended().await;
                self.close().await;
                failed(
                    Code::ToolFailed,
                    format!("the sandbox ended during the call: {why}"),
                )
            }
            mcp::Error::Refused(_) | mcp::Error::Handshake { .. } => {
                failed(Code::ToolFailed, error.to_string())
            }
        }
    }

    /// Ends the sandbox; its workspace stays.
    pub(super) async fn close(&self) {
        let live = self.live.lock().await.take();
        if let Some(live) = live {
            live.kill().await;
        }
    }
}

/// The sandbox or its server does not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Sandbox(#[from] sandbox::Error),
    #[error(transparent)]
    Server(#[from] mcp::Error),
}

fn ended(answer: ToolAnswer) -> Outcome {
    let ToolAnswer {
        text,
        structured,
        truncated_bytes,
        is_error,
    } = answer;
    let output = Output {
        text,
        structured,
        truncated_bytes,
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

fn failed(code: Code, text: String) -> Outcome {
    Outcome::Failed {
        code,
        output: Output {
            text,
            ..Output::default()
        },
    }
}
