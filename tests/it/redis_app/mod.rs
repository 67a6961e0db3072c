//! The whole product on Redis: while it is away, and at start.

mod away;
mod program;
