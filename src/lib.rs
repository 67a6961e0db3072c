//! Sepal: a self-hosted, multi-tenant agent gateway in which every tool call waits for approval.
//!
//! The modules are listed from top to bottom; each may use only those after it (`ARCHITECTURE.md`). Numbers
//! such as S2.39, O14 or D12 in comments are those of `docs/requirements.md`.

pub mod cli;

pub mod app;

pub mod gateway;

pub mod agent;

pub mod servers;

pub mod providers;

pub mod context;

pub mod sandbox;

pub mod skills;

pub mod tenancy;

pub mod store;

pub use sepal_config as config;
pub use sepal_core::{domain, history, session};
pub use sepal_jobs as jobs;
pub use sepal_llm as llm;
pub use sepal_mcp as mcp;
pub use sepal_net as net;
pub use sepal_telemetry as telemetry;
