//! Reads the token usage that the vendor reports.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::stream::text::Text;
use sepal_core::domain::TokenUsage;

/// The usage of one request, as far as it is known. The numbers in a stream are cumulative.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Input tokens that were neither read from the cache nor written to it.
    fresh: Option<u64>,
    written: Option<u64>,
    /// The part of the written tokens that is cached for an hour.
    written_long: Option<u64>,
    read: Option<u64>,
    output: Option<u64>,
    thought: Option<u64>,
    /// The passes of the model within this request, if the vendor compacted the input; empty = there was one
    /// pass.
    passes: Vec<Pass>,
}

/// One of several passes of the model in one request.
#[derive(Debug, Clone, Copy)]
struct Pass {
    /// True if the pass only compacted the input.
    is_compaction: bool,
    usage: TokenUsage,
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
    #[serde(borrow)]
    iterations: Option<&'a RawValue>,
}

/// One entry of `iterations`.
#[derive(Deserialize)]
struct PassForm<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Text<'a>,
}

/// Finer usage numbers, which are nested one level deeper.
#[derive(Default, Deserialize)]
struct UsageDetails {
    ephemeral_1h_input_tokens: Option<u64>,
    thinking_tokens: Option<u64>,
}

impl UsageDetails {
    /// Parses details; invalid ones count as absent.
    fn read(raw: Option<&RawValue>) -> Self {
        let details = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        details.unwrap_or_default()
    }
}

impl Pass {
    /// Parses passes; invalid ones count as absent.
    fn read(raw: Option<&RawValue>) -> Vec<Self> {
        let list = raw.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        let passes = list.unwrap_or_default().into_iter().filter_map(|raw| {
            let form: PassForm<'_> = serde_json::from_str(raw.get()).ok()?;
            let mut own = Usage::default();
            own.take(raw);
            Some(Self {
                is_compaction: form.kind.0 == "compaction",
                usage: own.total()?,
            })
        });
        passes.collect()
    }
}

impl Usage {
    /// Merges the usage of a later event; an invalid one is ignored.
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
        let passes = Pass::read(later.iterations);
        if !passes.is_empty() {
            self.passes = passes;
        }
    }

    /// The usage as [`TokenUsage`]; `None` if the server reported nothing. The vendor's totals leave out
    /// compaction passes, which it bills too, so they are added.
    pub(super) fn tokens(&self) -> Option<TokenUsage> {
        let has_answer = self.passes.iter().any(|pass| !pass.is_compaction);
        let total = self.total();
        if self.passes.is_empty() {
            return total;
        }
        let answer = if has_answer { None } else { total };
        let passes = self.passes.iter().map(|pass| pass.usage);
        let sum = passes.chain(answer).reduce(TokenUsage::and)?;
        let thought = self.thought.unwrap_or_default();
        Some(TokenUsage {
            reasoning_tokens: thought.min(sum.output_tokens),
            ..sum
        })
    }

    /// The part of the usage that compaction took; `None` if nothing was compacted or the vendor does not
    /// report it.
    pub(super) fn compaction(&self) -> Option<TokenUsage> {
        let passes = self.passes.iter().filter(|pass| pass.is_compaction);
        passes.map(|pass| pass.usage).reduce(TokenUsage::and)
    }

    /// Input tokens of the last compaction pass, and of the pass that followed it.
    pub(super) fn sizes(&self) -> (Option<u64>, Option<u64>) {
        let last = self.passes.iter().rposition(|pass| pass.is_compaction);
        let input = |at: usize| Some(self.passes.get(at)?.usage.input_tokens);
        (last.and_then(input), last.and_then(|last| input(last + 1)))
    }

    /// The total that the vendor reports.
    fn total(&self) -> Option<TokenUsage> {
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
            // Older servers count thinking as output without reporting it separately.
            reasoning_tokens: self.thought.unwrap_or_default().min(output_tokens),
            is_estimated: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::Usage;

    /// Checks input, cached and output tokens of all passes and of compaction alone, and both sizes.
    #[test]
    fn what_was_compacted_is_counted_beside_the_totals_to_the_token() {
        fn check(told: &[&str], all: [u64; 3], compacting: Option<[u64; 3]>, sizes: [u64; 2]) {
            let mut usage = Usage::default();
            for json in told {
                let raw: &RawValue = serde_json::from_str(json).unwrap();
                usage.take(raw);
            }
            let three = |it: sepal_core::domain::TokenUsage| {
                [it.input_tokens, it.cached_tokens, it.output_tokens]
            };
            assert_eq!(usage.tokens().map(three), Some(all), "{told:?}");
            assert_eq!(usage.compaction().map(three), compacting, "{told:?}");
            let (before, after) = usage.sizes();
            let got = [before, after].map(Option::unwrap_or_default);
            assert_eq!(got, sizes, "{told:?}");
        }
        let compaction = r#"{"type":"compaction","input_tokens":180000,"cache_read_input_tokens":7,"output_tokens":3500}"#;
        let message = r#"{"type":"message","input_tokens":23000,"output_tokens":1000}"#;
        let told = |passes: &str| {
            format!(r#"{{"input_tokens":23000,"output_tokens":1000,"iterations":[{passes}]}}"#)
        };
        let both = told(&format!("{compaction},{message}"));
        let spent = Some([180_007, 7, 3_500]);
        check(&[&both], [203_007, 7, 4_500], spent, [180_007, 23_000]);
        // The head may report the size before compaction.
        let head = r#"{"input_tokens":180000,"output_tokens":1}"#;
        check(
            &[head, &both],
            [203_007, 7, 4_500],
            spent,
            [180_007, 23_000],
        );
        let alone = told(compaction);
        check(&[&alone], [203_007, 7, 4_500], spent, [180_007, 0]);
        check(&[&told(message)], [23_000, 0, 1_000], None, [0, 0]);
        check(&[&told(r#"7, {}, "x""#)], [23_000, 0, 1_000], None, [0, 0]);
        check(
            &[r#"{"input_tokens":2,"output_tokens":3,"iterations":null}"#],
            [2, 0, 3],
            None,
            [0, 0],
        );
    }
}
