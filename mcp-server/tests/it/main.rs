//! The real binary, driven by a real MCP client over its stdin and stdout.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "helper functions are not covered by the allowance for tests"
)]

mod checkpoints;
mod commands;
mod containment;
mod endings;
mod facts;
mod files;
mod harness;
mod people;
mod place;
mod tools;
