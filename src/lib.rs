//! Sepal: a self-hosted, multi-tenant agent gateway in which every tool call waits for a yes.
//!
//! The modules stand in reading order; each may use only what stands after it (`ARCHITECTURE.md`).

pub mod history;
pub mod mcp;
pub mod sandbox;

pub mod store;

pub mod session;

pub mod domain;
