//! The proxy in front of a real engine, asked by hand: what a hostile client would send.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helper functions of tests are not covered by the test allowance"
)]

mod calls;
mod creating;
mod foreign;
mod harness;
mod program;
mod quota;
mod streams;
mod wire;
