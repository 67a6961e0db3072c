//! Sepal: a self-hosted, multi-tenant agent gateway in which every tool call waits for approval.
//!
//! The modules are listed from top to bottom; each may use only those after it, and the crates below them,
//! which are exported under the names of modules (`ARCHITECTURE.md`). Numbers such as S2.39, O14 or D12 in
//! comments are those of `docs/requirements.md`.

pub mod cli;

pub mod app;

pub mod gateway;

pub mod agent;

pub use sepal_config as config;
pub use sepal_context as context;
pub use sepal_core::{domain, history, session};
pub use sepal_jobs as jobs;
pub use sepal_llm as llm;
pub use sepal_mcp as mcp;
pub use sepal_net as net;
pub use sepal_oidc as oidc;
pub use sepal_providers as providers;
pub use sepal_sandbox as sandbox;
pub use sepal_servers as servers;
pub use sepal_skills as skills;
pub use sepal_store as store;
pub use sepal_telemetry as telemetry;
pub use sepal_tenancy as tenancy;
