//! What people do to the registry: add, change, remove, try, read, and decide about single tools.
//! Nothing here can be called without a [`Caller`], whose permission each verb checks.

pub(super) mod entries;
pub(super) mod fitness;
pub(super) mod masking;
pub(super) mod report;
pub(super) mod retarget;
pub(super) mod secrets;
pub(super) mod tools;
pub(super) mod trial;

use self::report::Reports;
use self::trial::Trials;
use super::error::Error;
use super::person_connections::Connections;
use super::registry::Servers;
use crate::domain::Caller;

/// What a caller may change in the registry.
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

    /// Reads the registry as `caller` may.
    pub fn reports<'a>(&'a self, caller: &'a Caller) -> Reports<'a> {
        Reports {
            servers: self,
            caller,
        }
    }

    /// Connects `caller` to servers that want it.
    pub fn person_connections<'a>(&'a self, caller: &'a Caller) -> Connections<'a> {
        Connections {
            servers: self,
            caller,
        }
    }

    /// Tries servers in the name of `caller`.
    pub fn trials<'a>(&'a self, caller: &'a Caller) -> Trials<'a> {
        Trials {
            servers: self,
            caller,
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::NotFound(name.to_owned())
}
