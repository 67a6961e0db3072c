//! Integration tests on the real parts, one binary.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helper functions of tests are not covered by the test allowance"
)]

mod architecture;
mod burst;
mod generated;
mod model_stub;
mod rest;
mod stores;
mod story;
mod support;
mod tenancy;
