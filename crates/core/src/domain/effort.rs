//! Defines how much a model may think before it answers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The effort that a model may spend on thinking before it answers. Vendors have fewer levels than these; a
/// provider uses the nearest one that its model supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Effort {
    /// No thinking, if the model supports that.
    Off,
    /// The model's minimum.
    Minimal,
    Low,
    Medium,
    High,
    /// The model's maximum.
    Max,
    /// At most this many tokens; at least 1.
    Budget(u32),
}

/// The error for a text that is not an effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an effort is `off`, `minimal`, `low`, `medium`, `high`, `max` or a number of tokens")]
pub struct UnknownEffort;

impl Effort {
    /// The levels by name, from least to most.
    pub const LEVELS: [(&'static str, Self); 6] = [
        ("off", Self::Off),
        ("minimal", Self::Minimal),
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("max", Self::Max),
    ];

    /// Converts to tokens, for models that only accept these: a tenth to the whole of `most`, or 0 for
    /// [`Self::Off`].
    pub fn tokens(self, most: u32) -> u32 {
        match self {
            Self::Off => 0,
            Self::Minimal => most / 10,
            Self::Low => most / 5,
            Self::Medium => most / 2,
            Self::High => most / 5 * 4,
            Self::Max => most,
            Self::Budget(tokens) => tokens.min(most),
        }
    }

    /// Converts to a level, for models that only accept these.
    #[must_use]
    pub fn level(self) -> Self {
        match self {
            Self::Budget(..=1_024) => Self::Minimal,
            Self::Budget(..=4_096) => Self::Low,
            Self::Budget(..=16_384) => Self::Medium,
            Self::Budget(..=32_768) => Self::High,
            Self::Budget(_) => Self::Max,
            Self::Off | Self::Minimal | Self::Low | Self::Medium | Self::High | Self::Max => self,
        }
    }
}

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(text: &str) -> Result<Self, UnknownEffort> {
        let text = text.trim();
        let level = Self::LEVELS
            .into_iter()
            .find(|(name, _)| text.eq_ignore_ascii_case(name));
        if let Some((_, level)) = level {
            return Ok(level);
        }
        let tokens = text.parse::<u32>().ok().filter(|tokens| *tokens > 0);
        tokens.map(Self::Budget).ok_or(UnknownEffort)
    }
}

impl TryFrom<String> for Effort {
    type Error = UnknownEffort;

    fn try_from(text: String) -> Result<Self, UnknownEffort> {
        text.parse()
    }
}

impl From<Effort> for String {
    fn from(effort: Effort) -> Self {
        effort.to_string()
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Budget(tokens) = self {
            return write!(formatter, "{tokens}");
        }
        let level = Self::LEVELS.into_iter().find(|(_, level)| level == self);
        formatter.write_str(level.map_or("", |(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::{Effort, UnknownEffort};

    #[test]
    fn a_level_or_a_number_of_tokens_is_read_and_written() {
        for (text, effort) in Effort::LEVELS {
            assert_eq!(
                (text.parse(), effort.to_string().as_str()),
                (Ok(effort), text)
            );
        }
        assert_eq!(" High ".parse(), Ok(Effort::High));
        assert_eq!("8192".parse(), Ok(Effort::Budget(8_192)));
        assert_eq!(Effort::Budget(8_192).to_string(), "8192");
        for text in ["", "0", "-1", "a lot", "1.5", "99999999999"] {
            assert_eq!(text.parse::<Effort>(), Err(UnknownEffort), "{text}");
        }
        let stored = serde_json::to_string(&Effort::Budget(9)).unwrap();
        assert_eq!(stored, r#""9""#);
        assert_eq!(
            serde_json::from_str::<Effort>(&stored).unwrap(),
            Effort::Budget(9)
        );
    }

    #[test]
    fn levels_become_tokens_and_tokens_levels() {
        let tokens = Effort::LEVELS.map(|(_, effort)| effort.tokens(1_000));
        assert_eq!(tokens, [0, 100, 200, 500, 800, 1_000]);
        assert_eq!(Effort::Budget(5_000).tokens(1_000), 1_000);
        assert_eq!(Effort::Budget(10).tokens(1_000), 10);
        assert_eq!(Effort::Budget(1).level(), Effort::Minimal);
        assert_eq!(Effort::Budget(20_000).level(), Effort::High);
        assert_eq!(Effort::Budget(u32::MAX).level(), Effort::Max);
        assert_eq!(Effort::Off.level(), Effort::Off);
    }
}
