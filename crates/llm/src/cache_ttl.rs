//! The lifetime of entries in a vendor's prompt cache, where it can be chosen.

use serde::{Deserialize, Serialize};

/// A cache lifetime that the vendor offers; writing for the longer one costs more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheTtl {
    /// Five minutes, the vendor's default.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    Hour,
}

impl CacheTtl {
    /// Parses the name of a lifetime.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::FiveMinutes, Self::Hour];
        all.into_iter().find(|ttl| ttl.as_str() == text)
    }

    /// The name in settings, records and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5m",
            Self::Hour => "1h",
        }
    }

    /// Returns true for the vendor's default. Takes a reference because serde passes one.
    pub fn is_usual(&self) -> bool {
        *self == Self::FiveMinutes
    }
}
