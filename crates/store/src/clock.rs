//! Reads the system clock for the inputs of the session layer.

use sepal_core::domain::Timestamp;

/// The current time.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}
