//! Integration tests on the real parts, one binary.
#![expect(
    clippy::unwrap_used,
    reason = "helper functions of tests are not covered by the test allowance"
)]

mod stores;
mod tenancy;
