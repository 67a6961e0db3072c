//! Language models: one [`Provider`] per configured service, each a stream of [`ModelEvent`]s.
//!
//! - [`connect`] makes a provider of its settings; [`ask`] asks one, again where it may work then.
//! - [`openai`], [`anthropic`], [`gemini`] and [`scripted`] speak to one vendor each. Wire forms stay inside;
//!   requests are built from entries, never from prose.
//! - [`catalogue`] is what is known of models, and [`tokens`] counts what a request takes.
//!
//! Nothing here keeps a session, decides about a call or reads a setting by itself.
//! `docs/adding-a-provider.md` says how to add one.

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
pub use catalogue::{Catalogue, Overrides, Vendor, Windows};
pub use compaction::{CompactedBy, CompactedInput, Compacting, CompactionSetting, Compactor};
pub use contents::{Content, Contents, Encoded};
pub use error::{Error, KeyFault, Refusal};
pub use provider::{
    Entries, Finish, ListedModel, ModelEvent, ModelStream, PLACEHOLDER_KEY, Provider, Request,
    Settings, connect, least_threshold,
};
pub use request::cache::RequestCache;
pub use tool_search::Deferral;
pub use transport::retry::{Failed, Progress, RetryConfig, SoFar, ask};

pub use sepal_config::ProviderKind;
