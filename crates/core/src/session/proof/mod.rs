//! Proves what a session's journal says: every stored commit carries a link, a hash of the commit and of the
//! link before it, so a change anywhere breaks the chain from there on.

mod chain;
mod document;
mod record;
mod verify;

pub use chain::{Chain, LinkedCommit, StoredLink, link_after, link_of_stored};
pub use document::DecisionDocument;
pub use record::{
    CallRef, DecidedBy, DecisionRecord, EditRecord, RecordForm, Requirement, digest_of_records,
    forms, records,
};
pub use verify::{BrokenCommit, Defect, VerifiedCommit, Verifier, verify};
