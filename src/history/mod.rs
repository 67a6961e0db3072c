//! From what was said to what the model is shown: the system prompt and the window. Pure.

mod prompt;
mod shorten;
mod window;

pub use prompt::{Input, PromptError, SystemPrompt, last_input};
pub use window::{Limits, Past, Window, retain, window};
