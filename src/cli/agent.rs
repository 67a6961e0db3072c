//! `sepal agent`: serves the agent as an MCP server, or asks it one question.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use crate::app::{AgentApp, Purpose};
use crate::config::{ApprovalWay, LoadedSettings, Preset};
use crate::domain::SessionKey;
use crate::gateway::mcp::{Door, DoorReply, Ending, News, Verdict, shown};
use crate::jobs::Pool;
use crate::session::{Call, Refusal};
use crate::telemetry::redact_args;
use anyhow::bail;
use async_trait::async_trait;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::serve::{serve, until_signal};
use super::{complain, say};

/// The way in which the agent is reached.
#[derive(Args, Default)]
pub(super) struct AgentArgs {
    /// Listen on HTTP: `/mcp`, and `/sse` with `/message` for old clients.
    #[arg(long, conflicts_with = "call")]
    daemon: bool,
    /// Ask one question; the answer is printed as JSON.
    #[arg(long, value_name = "TEXT")]
    call: Option<String>,
    /// The decider of calls of tools: this terminal, nobody, or everything may run.
    #[arg(long, value_enum, requires = "call", default_value_t = Approve::Ask)]
    approve: Approve,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Approve {
    /// Ask on the terminal; without one, nothing may run.
    #[default]
    Ask,
    /// Everything may run.
    Auto,
    /// Nothing may run.
    Deny,
}

impl AgentArgs {
    /// Returns the preset for the defaults of the settings.
    pub(super) fn preset(&self) -> Preset {
        if self.daemon {
            Preset::Daemon
        } else {
            Preset::Agent
        }
    }

    /// Switches to HTTP; returns `false` with `--call`, which needs no listener.
    pub(super) fn become_daemon(&mut self) -> bool {
        self.daemon = self.call.is_none();
        self.daemon
    }

    /// True if standard output is reserved for a client or the answer, so that the log has to go elsewhere.
    pub(super) fn needs_stdout(&self) -> bool {
        !self.daemon
    }
}

pub(super) async fn run(args: AgentArgs, loaded: &LoadedSettings) -> anyhow::Result<ExitCode> {
    if args.daemon {
        return serve(loaded, Purpose::Daemon).await;
    }
    for notice in &loaded.notices {
        tracing::warn!("{notice}");
    }
    if args.call.is_none() && !loaded.settings.runtime.transports.stdio.enabled {
        bail!(
            "`runtime.transports.stdio.enabled` is off in these settings: set it to true, or use \
             `--daemon` to serve over HTTP, or `--call` to ask one question"
        );
    }
    let app = Box::pin(AgentApp::build(&loaded.settings)).await?;
    let stop = CancellationToken::new();
    let Some(text) = args.call else {
        let serving = Box::pin(app.serve_stdio(stop.clone()));
        until_signal(serving, stop).await?;
        return Ok(ExitCode::SUCCESS);
    };
    let ways = match args.approve {
        Approve::Ask => [ApprovalWay::Elicit],
        Approve::Auto => [ApprovalWay::Auto],
        Approve::Deny => [ApprovalWay::Deny],
    };
    let asking = Box::pin(app.ask(text, &ways, &Terminal, stop.clone()));
    let (code, answer) = match until_signal(asking, stop).await {
        Ok((key, ending)) => answer(&key, ending),
        Err(error) => (ExitCode::FAILURE, refusal(&error.downcast::<Refusal>()?)),
    };
    say(&answer.to_string());
    Ok(code)
}

/// Returns the exit code and the printed JSON of an ended question.
fn answer(key: &SessionKey, ending: Ending) -> (ExitCode, Value) {
    let session = key.session.to_string();
    match ending {
        Ending::Answered(text) => {
            let answer = json!({ "session": session, "isError": false, "result": text });
            (ExitCode::SUCCESS, answer)
        }
        Ending::Failed(code, text) => {
            let answer = json!({
                "session": session, "isError": true, "code": code.as_str(), "error": text,
            });
            (ExitCode::FAILURE, answer)
        }
        Ending::Cancelled => {
            let answer = json!({ "session": session, "isError": true, "code": "cancelled" });
            (ExitCode::FAILURE, answer)
        }
    }
}

/// Returns the printed JSON of a question that was refused.
fn refusal(refusal: &Refusal) -> Value {
    json!({
        "session": null, "isError": true, "code": refusal.code.as_str(), "error": refusal.message,
    })
}

/// The terminal of the person who started the command; messages to them go to standard error.
struct Terminal;

#[async_trait]
impl Door for Terminal {
    /// Shows the whole call, regardless of its length, because a terminal scrolls.
    async fn decide(&self, call: &Call) -> DoorReply {
        if !std::io::stdin().is_terminal() {
            return DoorReply::Nobody;
        }
        let asked = format!("{}Let it run? [y/N, or why not] ", shown(call));
        let answer = Pool::new("terminal", 1)
            .run(move || read_line(&asked))
            .await;
        let Ok(Some(answer)) = answer else {
            return DoorReply::Nobody;
        };
        DoorReply::Verdict(match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => Verdict {
                approved: true,
                reason: None,
            },
            "" | "n" | "no" => Verdict {
                approved: false,
                reason: None,
            },
            _ => Verdict {
                approved: false,
                reason: Some(answer),
            },
        })
    }

    async fn report(&self, news: News<'_>) {
        match news {
            News::Running(tool, args) => {
                complain(&format!(">> Execute tool {tool}({})", redact_args(args)));
            }
            News::Package(server, None) => complain(&format!("{server} can be used.")),
            News::Package(server, Some(why)) => complain(&format!("{server}: {why}")),
            News::Declined(server) => complain(&format!(
                "The server {server} asked a person something, and nobody can be asked here: it was \
                 declined."
            )),
            News::Thinking(_)
            | News::Waiting(_)
            | News::LeftToPage(..)
            | News::ForPage(..)
            | News::Ended(..) => {}
        }
    }
}

fn read_line(asked: &str) -> Option<String> {
    let mut error = std::io::stderr();
    write!(error, "{asked}").and_then(|()| error.flush()).ok()?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim().to_owned())
}
