//! Language models: one [`Provider`] per configured service, each a stream of [`ModelEvent`]s.
//!
//! - [`connect`] creates a provider from its settings; [`ask`] sends a request and retries transient
//!   failures.
//! - [`openai`], [`anthropic`], [`gemini`] and [`scripted`] each speak one vendor's API. Wire forms stay
//!   private; requests are built from entries, never from prose.
//! - [`catalogue`] holds the known facts about models, and [`tokens`] counts the tokens of a request.
//!
//! This crate keeps no session, decides about no call and reads no setting itself.
//! `docs/adding-a-provider.md` explains how to add a provider.

pub mod answer;
pub mod anthropic;
mod api;
mod breaker;
pub mod cache_ttl;
pub mod catalogue;
pub mod compaction;
pub mod contents;
pub mod error;
#[cfg(test)]
mod fuzz;
pub mod gemini;
mod key_mask;
mod listing;
pub mod openai;
mod provider;
mod request;
pub mod scripted;
mod stream;
pub mod tokens;
pub mod tool_search;
mod transport;
mod wire_log;

pub use answer::{Answer, AskedCall, Collector, InvalidArguments};
pub use api::{Api, UnknownApi};
pub use breaker::{BreakerConfig, Guarded, Outage};
pub use cache_ttl::CacheTtl;
pub use catalogue::{Overrides, Vendor, Windows};
pub use compaction::{CompactedBy, CompactedInput, Compacting, CompactionSetting, Compactor};
pub use contents::{Content, Contents, Encoded};
pub use error::{Error, KeyFault, Refusal};
pub use listing::ModelListing;
pub use provider::{
    Entries, Finish, ListedModel, ModelEvent, ModelStream, PLACEHOLDER_KEY, Provider, Request,
    Settings, connect, least_threshold,
};
pub use request::cache::RequestCache;
pub use tool_search::Deferral;
pub use transport::endpoint::{bare_key, base_address};
pub use transport::retry::{Failed, Progress, RetryConfig, SoFar, ask};

pub use sepal_config::ProviderKind;
