//! Tools from MCP servers: their definitions, and the connections over which they are called.
//!
//! A connection takes any byte stream; where the server runs is not this layer's business.

mod bundled;
pub mod config;
mod connection;
mod error;
mod file_facts;
mod filter;
#[cfg(test)]
mod fuzz;
mod lines;
mod listing;
mod mask;
mod message;
mod oversized;
mod remote;
mod result;
mod sending;
mod standstill;
mod toolbox;

pub use bundled::{BUNDLED_SERVER, bundled_tools};
pub use connection::{Connection, ToolCall, ToolProgress};
pub use error::Error;
pub use filter::is_offered;
pub use mask::{Cleaner, MASK};
pub use oversized::Size;
pub use remote::Remote;
pub use result::ToolAnswer;
pub use standstill::Standstill;
pub use toolbox::{Naming, Offer, Toolbox, ToolboxError, ToolboxTool};
