//! How long a vendor's prompt cache keeps what it is given, where that can be chosen.

use serde::{Deserialize, Serialize};

/// A time of the vendor's: writing for the longer one costs more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheTtl {
    /// Five minutes, which is what the vendor does by itself.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    Hour,
}

impl CacheTtl {
    /// Reads the name of a time.
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

    /// Whether it is what the vendor does by itself; serde asks by reference.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands out references"
    )]
    pub fn is_usual(&self) -> bool {
        *self == Self::FiveMinutes
    }
}
