//! Checks the requirements of a run: transcripts against acknowledgements, and flat resource use.

pub(super) mod archive;
pub(super) mod audit;
pub(super) mod end;
pub(super) mod flat;
pub(super) mod ledger;
pub(super) mod replay;
