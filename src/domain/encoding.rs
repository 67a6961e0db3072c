//! How texts are cut into tokens, and what was counted so.

use serde::{Deserialize, Serialize};

use super::Memo;

/// How a text is cut into tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    /// Four characters are one token: what is taken for models whose vocabulary nobody publishes.
    #[default]
    FourCharacters,
    /// OpenAI's vocabulary since GPT-4o.
    O200k,
    /// The one before.
    Cl100k,
}

/// The tokens of one thing, counted once by each encoding that somebody asked for: a session may
/// change its model and come back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weights {
    four_characters: Memo<u64>,
    o200k: Memo<u64>,
    cl100k: Memo<u64>,
}

impl Weights {
    /// What was counted before, or is now.
    pub fn get(&self, encoding: Encoding, count: impl FnOnce() -> u64) -> u64 {
        *self.of(encoding).get(count)
    }

    /// Whether it was counted before.
    pub fn has(&self, encoding: Encoding) -> bool {
        self.of(encoding).is_known()
    }

    fn of(&self, encoding: Encoding) -> &Memo<u64> {
        match encoding {
            Encoding::FourCharacters => &self.four_characters,
            Encoding::O200k => &self.o200k,
            Encoding::Cl100k => &self.cl100k,
        }
    }
}
