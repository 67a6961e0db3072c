//! Records what people and the gateway do, in a chain for each tenant and one for the installation.
//!
//! Every write of the records goes through the database. A statement carries the [`Act`] that it is,
//! and the transaction appends its record, so that there is no act without one. Each record names the link of
//! the record before, so none can be changed, dropped or moved without breaking the chain.

pub(crate) mod act;
pub mod acting;
mod key;
mod verify;

pub use act::{ActName, ChainHead, FIRST_PREV, StoredRecord};
pub use key::{AuditKey, KeyError, PublicKey};
pub use verify::{Break, ChainReport, Seal, SealedSession, Verifier, sign_head};

pub(crate) use act::{Act, canonical, link_of};
