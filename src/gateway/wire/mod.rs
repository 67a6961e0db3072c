//! The single table of wire events (docs/protocol.md): converts events and signals to frames, and client
//! commands to session requests. Socket and REST share it.

mod assistant;
pub mod audit;
mod call;
mod command;
mod event;
mod frame;
#[cfg(test)]
mod fuzz;
mod item;
mod news;
mod notification;
mod ready;
mod stamp;
mod state;

pub use assistant::assistant_choice;
pub use call::card::queue_value;
pub use command::{COMMANDS, CommandSpec, ParsedCommand, parse};
pub use event::event_frames;
pub use frame::{Frame, RefusalPayload, refused};
pub use item::{PERSON, SessionItem, asking_frame, missed_frame, row_frame};
pub use news::{news_frame, sandbox_frame};
pub use notification::NotificationWire;
pub use ready::{Ready, ready, transcript_items};
pub use state::{delta_frame, signal_frames, view_frames};

pub(super) use frame::{frame, frame_in};
pub(super) use state::thousandths;
