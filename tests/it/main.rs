//! Integration tests on the real parts, one binary.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helper functions of tests are not covered by the test allowance"
)]

mod architecture;
mod generated;
mod stores;
mod tenancy;
