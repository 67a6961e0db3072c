//! Holds the arguments that a person changed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::Digest;

/// Arguments that a person changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditedArgs {
    pub args: Value,
    /// Digest of what would run with the new arguments.
    pub digest: Digest,
    /// Hash of server, tool and new arguments.
    pub equal: Digest,
}
