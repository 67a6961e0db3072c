//! Tools from MCP servers: their definitions, and the connections over which they are called.
//!
//! A connection takes any byte stream; where the server runs is not this layer's business.

pub mod config;
mod connection;
mod elicitation;
mod error;
#[cfg(test)]
mod fuzz;
mod mask;
mod place_attachment;
mod remote;
mod sending;
mod standstill;
mod tools;
mod wire;
mod workspace_files;

pub use connection::{CallNews, Connection, ToolCall, ToolProgress};
pub use elicitation::{Form, FormAnswer, Question};
pub use error::Error;
pub use mask::{Cleaner, MASK};
pub use remote::Remote;
pub use standstill::Standstill;
pub use tools::bundled::bundled_tools;
pub use tools::filter::is_offered;
pub use tools::result::ToolAnswer;
pub use tools::toolbox::{Naming, Offer, Toolbox, ToolboxError, ToolboxTool};
pub use wire::oversized::Size;
pub use workspace_files::InstructionsFile;
