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
pub type Weights = ByEncoding<u64>;

/// What was counted of one thing, once by each encoding.
#[derive(Debug, Clone, PartialEq)]
pub struct ByEncoding<T> {
    four_characters: Memo<T>,
    o200k: Memo<T>,
    cl100k: Memo<T>,
}

impl<T> Default for ByEncoding<T> {
    fn default() -> Self {
        Self {
            four_characters: Memo::default(),
            o200k: Memo::default(),
            cl100k: Memo::default(),
        }
    }
}

impl<T: Clone> ByEncoding<T> {
    /// What was counted before, or is now.
    pub fn get(&self, encoding: Encoding, count: impl FnOnce() -> T) -> T {
        self.of(encoding).get(count).clone()
    }

    /// Whether it was counted before.
    pub fn has(&self, encoding: Encoding) -> bool {
        self.of(encoding).is_known()
    }

    fn of(&self, encoding: Encoding) -> &Memo<T> {
        match encoding {
            Encoding::FourCharacters => &self.four_characters,
            Encoding::O200k => &self.o200k,
            Encoding::Cl100k => &self.cl100k,
        }
    }
}
