//! One task per live session: commands in, decisions appended, then shown and carried out.
//!
//! [`Sessions`] is the one corridor: every door tells, watches and reads sessions through it.

mod cluster;
mod mailbox;
mod session;
mod effects;
mod feed;
#[cfg(test)]
mod fuzz;
mod journal;
mod sessions;

pub use feed::running_answer::{Delta, DeltaKind, RunningAnswer, tail};
pub use effects::session_agent::{AgentFactory, SessionAgent};
pub use feed::{
    Feed, Frame, Frames, Joined, LeftOut, Notice, QueueState, SessionView, ShownEvent, Signal,
    TurnView, UsageState, What,
};
pub use sessions::expiry::remove_expired_rows;
pub use mailbox::{Accepted, SessionRequest, damaged, limit_reached};
pub use crate::sandbox::host::SandboxHost;
pub use crate::providers::Providers;
pub use feed::list_update::ListUpdate;
pub use crate::servers::{Servers, ServersParts};
pub use sessions::{Page, Sessions, SessionsSettings};
pub use effects::prompts::Prompts;
pub use effects::tool_call::SessionTools;
