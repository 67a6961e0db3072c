//! Decides what a session does next, without a clock, randomness or I/O.
//!
//! A session is the fold of its journal. Its inputs are commands with their times, its outputs are events;
//! the rest of Sepal stores the events and carries out the effects. This crate opens no socket and no file:
//! its `Cargo.toml` has no crate that could.
//!
//! - [`domain`]: the nouns that all crates share, such as ids, entries, tools, usage and faults.
//! - [`session`]: the state machine. Start at [`session::decide()`], then read
//!   [`session::SessionState::apply`] and [`session::effects()`].
//! - [`history`]: turns a session's entries into the system prompt and the window of a model request.

pub mod history;

pub mod session;

pub mod domain;
