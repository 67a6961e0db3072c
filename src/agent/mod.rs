//! One task per live session: commands in, decisions appended, then shown and carried out.
//!
//! [`Sessions`] is the one corridor: every door tells, watches and reads sessions through it.

mod clock;
mod effects;
mod factory;
mod feed;
mod home;
mod journal;
mod live;
mod message;
mod model;
mod place;
mod projection;
pub mod providers;
pub mod servers;
mod sessions;
mod tools;

pub use factory::{AgentFactory, AgentParts};
pub use feed::{
    Delta, DeltaKind, Feed, Frame, Joined, LeftOut, Notice, QueueState, RunningAnswer, SessionView,
    ShownEvent, Signal, TurnView, UsageState, What,
};
pub use message::{Accepted, Ask};
pub use place::SandboxPlace;
pub use providers::Providers;
pub use servers::{Servers, ServersParts};
pub use sessions::{Page, Sessions, SessionsSettings};
pub use tools::SessionTools;
