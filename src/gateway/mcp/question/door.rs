//! Whoever asked the agent, and what they are told and asked meanwhile.

use async_trait::async_trait;
use serde_json::Value;

use crate::domain::{Iteration, Timestamp};
use crate::gateway::mcp::approval::Heard;
use crate::gateway::mcp::missing::Missing;
use crate::session::{Call, Elicitation, ElicitationAnswer};

/// Something that a client wants to know while it waits.
#[derive(Debug, Clone, Copy)]
pub enum News<'a> {
    /// The model is asked for the `n`th time.
    Thinking(Iteration),
    /// A call waits for a decision.
    Waiting(&'a Call),
    /// A call is left to the page, because its characters (the first number) are more than can be shown
    /// at the door.
    LeftToPage(&'a Call, usize, usize),
    /// A call is left to the page, because nobody at the door can say the yes that it needs.
    ForPage(&'a Call, Missing),
    /// A call runs: its tool and arguments.
    Running(&'a str, &'a Value),
    /// A call has its result: its tool and whether it went well.
    Ended(&'a str, bool),
    /// The package of that server, before anything is asked; none = it can be started, else why it cannot.
    Package(&'a str, Option<&'a str>),
    /// That server asked a person, and nobody can be asked here: it was declined.
    Declined(&'a str),
}

impl News<'_> {
    /// It as a line for people.
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

/// Whoever asked.
#[async_trait]
pub trait Door: Send + Sync {
    /// Asks the person there about a call, showing all of it.
    async fn decide(&self, call: &Call) -> Heard;

    /// Asks the person there what a server wants to know; `None` = nobody can be asked, or nobody
    /// answered.
    async fn fill_in(&self, _asked: &Elicitation) -> Option<ElicitationAnswer> {
        None
    }

    /// When the last thing happened of what is known.
    fn seen(&self, _at: Timestamp) {}

    /// All of what happened before is known.
    fn caught_up(&self) {}

    /// Tells what goes on.
    async fn tell(&self, news: News<'_>);
}
