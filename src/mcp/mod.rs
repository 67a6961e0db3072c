//! Tools from MCP servers: their definitions, and the connections over which they are called.
//!
//! A connection takes any byte stream; where the server runs is not this layer's business.

mod bundled;
mod connection;
mod error;
mod result;
mod toolbox;

pub use bundled::{BUNDLED_SERVER, bundled_tools};
pub use connection::{Connection, ToolCall, ToolProgress};
pub use error::Error;
pub use result::ToolAnswer;
pub use toolbox::{Toolbox, ToolboxError, ToolboxTool};
