//! Lets people manage the registry: add, change, remove, test and read servers, and decide about single
//! tools. Everything here takes a [`Caller`], whose permission each operation checks.

pub(super) mod entries;
pub(super) mod fitness;
pub(super) mod masking;
pub(super) mod report;
pub(super) mod retarget;
pub(super) mod secrets;
pub(super) mod tools;
pub(super) mod trial;

pub use self::fitness::NewServer;
pub use self::report::{Reports, ServerReport, TestReport};
pub use self::tools::ToolChange;
pub use self::trial::Trials;
use super::error::Error;
use super::permission::adds_servers;
use super::person_connections::Connections;
use super::registry::Servers;
use sepal_core::domain::Caller;
use sepal_mcp::config::{Pasted, read_pasted};

/// The operations of a caller that change the registry.
pub struct Administration<'a> {
    servers: &'a Servers,
    caller: &'a Caller,
}

impl Servers {
    /// Changes the registry in the name of `caller`.
    pub fn administration<'a>(&'a self, caller: &'a Caller) -> Administration<'a> {
        Administration {
            servers: self,
            caller,
        }
    }

    /// Reads the registry in the name of `caller`.
    pub fn reports<'a>(&'a self, caller: &'a Caller) -> Reports<'a> {
        Reports {
            servers: self,
            caller,
        }
    }

    /// Manages the connections of `caller` to servers that require them.
    pub fn person_connections<'a>(&'a self, caller: &'a Caller) -> Connections<'a> {
        Connections {
            servers: self,
            caller,
        }
    }

    /// Tests servers in the name of `caller`.
    pub fn trials<'a>(&'a self, caller: &'a Caller) -> Trials<'a> {
        Trials {
            servers: self,
            caller,
        }
    }
}

impl Administration<'_> {
    /// Reads what somebody pasted, for those who may add servers.
    pub fn read_pasted(&self, text: &str) -> Result<Pasted, Error> {
        adds_servers(self.caller, self.servers.0.roles)?;
        Ok(read_pasted(text))
    }
}

fn unknown(name: &str) -> Error {
    Error::NotFound(name.to_owned())
}
