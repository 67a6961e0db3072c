//! What the vendor says that a request used.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::domain::TokenUsage;

/// What a request used, as far as it is known. The numbers of a stream are sums so far.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Neither read from the cache nor put into it.
    fresh: Option<u64>,
    written: Option<u64>,
    /// Of the written ones those that are kept for an hour.
    written_long: Option<u64>,
    read: Option<u64>,
    output: Option<u64>,
    thought: Option<u64>,
}

#[derive(Default, Deserialize)]
struct UsageForm<'a> {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[serde(borrow)]
    cache_creation: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens_details: Option<&'a RawValue>,
}

/// The finer numbers, which stand one level deeper.
#[derive(Default, Deserialize)]
struct UsageDetails {
    ephemeral_1h_input_tokens: Option<u64>,
    thinking_tokens: Option<u64>,
}

impl UsageDetails {
    /// Details that are none are as if they were absent.
    fn read(raw: Option<&RawValue>) -> Self {
        let details = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        details.unwrap_or_default()
    }
}

impl Usage {
    /// Takes what a later event says; a usage that is none changes nothing.
    pub(super) fn take(&mut self, raw: &RawValue) {
        let Ok(later) = serde_json::from_str::<UsageForm<'_>>(raw.get()) else {
            return;
        };
        let cache = UsageDetails::read(later.cache_creation);
        let output = UsageDetails::read(later.output_tokens_details);
        let pairs = [
            (&mut self.fresh, later.input_tokens),
            (&mut self.written, later.cache_creation_input_tokens),
            (&mut self.written_long, cache.ephemeral_1h_input_tokens),
            (&mut self.read, later.cache_read_input_tokens),
            (&mut self.output, later.output_tokens),
            (&mut self.thought, output.thinking_tokens),
        ];
        for (kept, later) in pairs {
            // Some servers repeat a number as 0.
            *kept = (*kept).max(later);
        }
    }

    /// The same in our own words; none = the server said nothing.
    pub(super) fn tokens(&self) -> Option<TokenUsage> {
        if self.fresh.is_none() && self.output.is_none() {
            return None;
        }
        let read = self.read.unwrap_or_default();
        let written = self.written.unwrap_or_default();
        let fresh = self.fresh.unwrap_or_default();
        let output_tokens = self.output.unwrap_or_default();
        Some(TokenUsage {
            input_tokens: fresh.saturating_add(read).saturating_add(written),
            cached_tokens: read,
            cache_write_tokens: written,
            cache_write_long_tokens: self.written_long.unwrap_or_default().min(written),
            output_tokens,
            // Older servers count thinking as output and do not tell them apart.
            reasoning_tokens: self.thought.unwrap_or_default().min(output_tokens),
            is_estimated: false,
        })
    }
}
