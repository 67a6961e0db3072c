//! From what was said to what the model is shown: the system prompt and the window. Pure.

mod compaction;
mod groups;
mod limits;
mod past;
mod prompt;
mod retain;
mod shorten;
mod turn;
mod window;

pub use compaction::summary::{Due, Flaws};
pub use limits::{ContextRules, Limits};
pub use past::Past;
pub use prompt::{Input, PromptError, SystemPrompt, last_input};
pub use retain::{Retained, retain};
pub use window::{Window, window};
