//! Defines the door of a question: the client that asked the agent, with its notifications and prompts.

use async_trait::async_trait;
use serde_json::Value;

use crate::domain::{Iteration, Timestamp};
use crate::gateway::mcp::approval::DoorReply;
use crate::gateway::mcp::missing::Missing;
use crate::session::{Call, Elicitation, ElicitationAnswer};

/// News for a client that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub enum News<'a> {
    /// The model is asked for the given iteration.
    Thinking(Iteration),
    /// A call waits for a decision.
    Waiting(&'a Call),
    /// A call is left to the page, because it is longer (the first number, in characters) than the limit of
    /// what can be shown at the door (the second).
    LeftToPage(&'a Call, usize, usize),
    /// A call is left to the page, because nobody at the door can give the required approval.
    ForPage(&'a Call, Missing),
    /// A call runs: its tool and arguments.
    Running(&'a str, &'a Value),
    /// A call ended: its tool, and whether it succeeded.
    Ended(&'a str, bool),
    /// The state of a server's package before the question: `None` if the server can be started, otherwise
    /// the reason it cannot.
    Package(&'a str, Option<&'a str>),
    /// The elicitation of the named server was declined, because nobody can be asked here.
    Declined(&'a str),
}

impl News<'_> {
    /// Describes the news in a line for people.
    pub(in crate::gateway::mcp) fn words(&self) -> String {
        match self {
            Self::Thinking(iteration) => format!("Ask the model ({iteration})"),
            Self::Waiting(call) => format!("`{}` waits for approval", call.name),
            Self::LeftToPage(call, chars, most) => format!(
                "`{}` is too long to be shown here ({chars} characters, {most} at most): read and \
                 decide it in the page",
                call.name
            ),
            Self::ForPage(call, missing) => format!(
                "{} to `{}`: it is decided in the page, at `/approvals`",
                missing.words(),
                call.name
            ),
            Self::Running(tool, _) => format!("`{tool}` runs"),
            Self::Ended(tool, true) => format!("`{tool}` is done"),
            Self::Ended(tool, false) => format!("`{tool}` gave no result"),
            Self::Package(server, None) => format!("`{server}` can be used"),
            Self::Package(server, Some(why)) => format!("`{server}`: {why}"),
            Self::Declined(server) => format!(
                "the server `{server}` asked a person something, and nobody can be asked here: it \
                 was declined"
            ),
        }
    }
}

/// The client that asked a question.
#[async_trait]
pub trait Door: Send + Sync {
    /// Asks the person at the client about a call, and shows all of it.
    async fn decide(&self, call: &Call) -> DoorReply;

    /// Asks the person at the client to answer a server's elicitation; `None` if nobody can be asked or
    /// nobody answered.
    async fn fill_in(&self, _asked: &Elicitation) -> Option<ElicitationAnswer> {
        None
    }

    /// Records the time of the latest event that was read.
    fn seen(&self, _at: Timestamp) {}

    /// Signals that all past events were read.
    fn caught_up(&self) {}

    /// Reports news.
    async fn report(&self, news: News<'_>);
}
