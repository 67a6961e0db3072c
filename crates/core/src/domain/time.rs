//! Represents points in time in milliseconds since 1970; RFC 3339 on the wire.

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 UTC. Read from a clock by the shell, never in this layer.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// RFC 3339 with milliseconds.
    pub fn to_rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0)
            .map(|at| format!("{at:.3}"))
            .unwrap_or_default()
    }

    /// The day in UTC.
    pub fn date(self) -> jiff::civil::Date {
        let at = jiff::Timestamp::from_millisecond(self.0).unwrap_or_default();
        jiff::tz::TimeZone::UTC.to_datetime(at).date()
    }

    /// Milliseconds from `earlier` to this point; 0 if `earlier` is later.
    pub fn since_ms(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}
