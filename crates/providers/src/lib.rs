//! Manages model providers: those of the operator, and those that people add, change and remove while the
//! server runs.
//!
//! A session names provider and model; both are looked up at each model request. A running request keeps its
//! provider, so a change never cuts an answer. The crate asks no model, except to try a provider out.
//!
//! Start at [`Providers`]: [`Providers::visible`] says which providers a person may use, and
//! [`Providers::candidates`] which models answer a session's next request. [`Offer`] is a provider as a
//! tenant sees it; `keeping` adds, changes and removes them.

mod access;
mod candidates;
mod cheapest;
mod checks;
mod choice;
mod compaction;
mod defaults;
mod error;
mod further;
mod keeping;
mod local;
mod offer;
mod registry;
mod trial;

pub use self::candidates::Candidate;
pub use self::checks::ThresholdChange;
pub use self::choice::{WantedEffort, WantedModel};
pub use self::defaults::{DefaultFor, DefaultsInForce};
pub use self::error::Error;
pub use self::keeping::{Draft, KeyChange};
pub use self::local::LocalServer;
pub use self::offer::{Fallback, Offer, ProviderSettings, Source};
pub use self::registry::{Providers, Ways};
pub use self::trial::Trial;
