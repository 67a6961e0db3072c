//! Builds the model's input from a session's entries: the system prompt and the window. Pure.

mod compaction;
mod groups;
mod limits;
mod past;
mod prompt;
mod read_more;
mod retain;
mod shorten;
mod strategies;
mod turn;
mod window;

pub use compaction::summary::{Due, Flaws};
pub use limits::{ContextRules, Limits};
pub use past::Past;
pub use prompt::{Input, PromptError, SystemPrompt, last_input};
pub use read_more::{PartOfResult, definition as read_more_definition, no_result};
pub use retain::{RetainedEntries, retain};
pub use strategies::{CompactionStrategy, EarlierHistory, Group, Room};
pub use window::{Window, window};
