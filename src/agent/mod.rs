//! One task per live session: commands in, decisions appended, then shown and carried out.
//!
//! [`Sessions`] is the one corridor: every door tells, watches and reads sessions through it.

mod ahead;
mod answer;
mod broken;
mod clock;
mod creations;
mod cut;
mod effects;
mod factory;
mod feed;
mod fence;
mod forgotten;
#[cfg(test)]
mod fuzz;
mod home;
mod journal;
mod lists;
mod live;
mod lives;
mod message;
mod model;
mod outcome;
mod place;
mod presence;
mod projection;
pub mod providers;
mod relay;
mod rows;
pub mod servers;
mod sessions;
mod shown;
mod standing;
mod tools;
mod trace;
mod written;

pub use answer::{Delta, DeltaKind, RunningAnswer, tail};
pub use factory::{AgentFactory, AgentParts};
pub use feed::{
    Feed, Frame, Frames, Joined, LeftOut, Notice, QueueState, SessionView, ShownEvent, Signal,
    TurnView, UsageState, What,
};
pub use forgotten::take_off_the_list;
pub use message::{Accepted, Ask, damaged, limit_reached};
pub use place::SandboxPlace;
pub use providers::Providers;
pub use rows::RowNews;
pub use servers::{Servers, ServersParts};
pub use sessions::{Page, Sessions, SessionsSettings};
pub use standing::Prompts;
pub use tools::SessionTools;
