//! From what was said to what the model is shown: the system prompt and the window. Pure.

mod prompt;
mod window;

pub use prompt::{Input, PromptError, SystemPrompt, last_input};
pub use window::{Limits, Window, newest_turn, window};
