//! What must hold of a run: transcripts against what was acknowledged, and what must stay flat.

pub(super) mod archive;
pub(super) mod audit;
pub(super) mod end;
pub(super) mod flat;
pub(super) mod ledger;
pub(super) mod replay;
