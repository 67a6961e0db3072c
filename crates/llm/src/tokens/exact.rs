//! Runs OpenAI's tokenizers in this process. Their tables are built at the first count, because they take 30
//! to 70 MB and a twentieth of a second.

use std::sync::atomic::{AtomicBool, Ordering};

use bpe_openai::{Tokenizer, cl100k_base, o200k_base};

use crate::Vendor;
use sepal_core::domain::Encoding;

static O200K_IS_MADE: AtomicBool = AtomicBool::new(false);
static CL100K_IS_MADE: AtomicBool = AtomicBool::new(false);

/// Name prefixes of models whose tokenizer is published.
const O200K: [&str; 6] = ["gpt-4o", "gpt-4.1", "gpt-5", "o1", "o3", "o4"];
const CL100K: [&str; 2] = ["gpt-4", "gpt-3.5"];

/// The encoding of a model. The tokenizer of GPT-6 is not published.
pub(super) fn encoding(vendor: Vendor, model: &str) -> Encoding {
    if !matches!(vendor.name(), Some("openai" | "azure")) {
        return Encoding::FourCharacters;
    }
    let is_of = |names: &[&str]| {
        names.iter().any(|name| {
            let rest = model.strip_prefix(name);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        })
    };
    if is_of(&O200K) {
        Encoding::O200k
    } else if is_of(&CL100K) {
        Encoding::Cl100k
    } else {
        Encoding::FourCharacters
    }
}

/// The tokens of a text; `None` if the encoding has no table.
pub(super) fn count(encoding: Encoding, text: &str) -> Option<u64> {
    let (tokenizer, is_made): (&Tokenizer, _) = match encoding {
        Encoding::FourCharacters => return None,
        Encoding::O200k => (o200k_base(), &O200K_IS_MADE),
        Encoding::Cl100k => (cl100k_base(), &CL100K_IS_MADE),
    };
    is_made.store(true, Ordering::Relaxed);
    Some(tokenizer.count(text) as u64)
}

/// Returns true if the table is built, so that counting takes no extra time.
pub(super) fn is_ready(encoding: Encoding) -> bool {
    match encoding {
        Encoding::FourCharacters => true,
        Encoding::O200k => O200K_IS_MADE.load(Ordering::Relaxed),
        Encoding::Cl100k => CL100K_IS_MADE.load(Ordering::Relaxed),
    }
}
