//! Names the tokenizer encodings and caches counts by encoding.

use serde::{Deserialize, Serialize};

use super::Memo;

/// A tokenizer encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    /// Four characters per token, an estimate for models whose vocabulary is not published.
    #[default]
    FourCharacters,
    /// OpenAI's vocabulary since GPT-4o.
    O200k,
    /// OpenAI's vocabulary before GPT-4o.
    Cl100k,
}

/// Token counts of one text, cached per encoding, because a session may change its model and back.
pub type Weights = ByEncoding<u64>;

/// Values computed from one text, cached per encoding.
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
    /// The cached value, or the one that `count` computes now.
    pub fn get(&self, encoding: Encoding, count: impl FnOnce() -> T) -> T {
        self.of(encoding).get(count).clone()
    }

    /// Returns true if the value is cached.
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
