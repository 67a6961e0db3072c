//! Maps the effort to the vendor's words. Pure.

use sepal_core::domain::Effort;

/// The vendor's words for an effort: the exact one first, then its nearest alternatives.
pub(super) fn words(effort: Effort) -> &'static [&'static str] {
    match effort.level() {
        Effort::Off => &["none", "minimal", "low"],
        Effort::Minimal => &["minimal", "low"],
        Effort::Low => &["low"],
        Effort::Medium => &["medium"],
        Effort::High => &["high"],
        Effort::Max | Effort::Budget(_) => &["max", "xhigh", "high"],
    }
}

/// The generation of a vendor's model, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// The model does not think.
    Plain,
    /// `o1` to `o4`.
    O,
    /// `gpt-5` and its smaller variants.
    Gpt5,
    /// `gpt-5.1`.
    Gpt51,
    /// `gpt-5.2` to `gpt-5.5`.
    Gpt52,
    /// A newer model, or one of another maker: its limits are learned from refusals.
    Unknown,
}

impl Generation {
    /// The generation of a model, by the vendor's name for it.
    pub(super) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let name = name.strip_prefix("ft:").unwrap_or(name);
        let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        if begins(&["gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"]) {
            return Self::Plain;
        }
        if begins(&["o1", "o3", "o4"]) {
            return Self::O;
        }
        let Some(rest) = name.strip_prefix("gpt-5") else {
            return Self::Unknown;
        };
        match rest.strip_prefix('.').and_then(|rest| rest.chars().next()) {
            None if rest.is_empty() || rest.starts_with('-') => Self::Gpt5,
            Some('1') => Self::Gpt51,
            Some('2'..='5') => Self::Gpt52,
            Some(_) | None => Self::Unknown,
        }
    }

    /// The effort words that models of this generation refuse.
    pub(super) fn refused_words(self) -> &'static [&'static str] {
        match self {
            Self::Plain | Self::Unknown => &[],
            Self::O => &["none", "minimal", "xhigh", "max"],
            Self::Gpt5 => &["none", "xhigh", "max"],
            Self::Gpt51 => &["minimal", "xhigh", "max"],
            Self::Gpt52 => &["minimal", "max"],
        }
    }
}

/// Effort words that servers of other makers usually do not know.
pub(super) const RARE_WORDS: &[&str] = &["minimal", "xhigh", "max"];

#[cfg(test)]
mod tests {
    use super::{Generation, words};
    use sepal_core::domain::Effort;

    #[test]
    fn a_model_is_known_by_its_name() {
        for (model, expected) in [
            ("gpt-4o", Generation::Plain),
            ("ft:gpt-4.1-mini:acme::1", Generation::Plain),
            ("gpt-3.5-turbo", Generation::Plain),
            ("gpt-5-chat-latest", Generation::Plain),
            ("o3", Generation::O),
            ("o4-mini-2025-04-16", Generation::O),
            ("gpt-5", Generation::Gpt5),
            ("openai/gpt-5-mini", Generation::Gpt5),
            ("gpt-5.1-codex", Generation::Gpt51),
            ("gpt-5.4", Generation::Gpt52),
            ("gpt-5.6", Generation::Unknown),
            ("gpt-50", Generation::Unknown),
            ("gpt-6.2-sol", Generation::Unknown),
            ("gpt-oss-20b", Generation::Unknown),
            ("orca", Generation::Unknown),
            ("", Generation::Unknown),
        ] {
            assert_eq!(Generation::of(model), expected, "{model}");
        }
    }

    #[test]
    fn the_word_that_is_meant_comes_first() {
        let first = Effort::LEVELS.map(|(_, effort)| words(effort)[0]);
        assert_eq!(first, ["none", "minimal", "low", "medium", "high", "max"]);
        assert_eq!(words(Effort::Budget(2_000)), ["low"]);
        assert_eq!(words(Effort::Budget(u32::MAX)), words(Effort::Max));
    }
}
