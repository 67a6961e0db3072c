//! Estimates the usage of a model request while its answer streams. Pure.

use std::sync::Arc;

use crate::domain::{MicroUsd, Need, TokenUsage};
use crate::llm::catalogue::Model;

/// Tokens of an answer that are normally reserved at once. A small chunk lets many requests run side by side,
/// however long their answers may become.
const CHUNK: u64 = 1_024;
/// The fewest tokens of an answer that must be covered before a model is asked.
const LEAST: u64 = 128;
/// The answer is cut this many tokens before the reservation is used up, to pay for tokens under way.
const MARGIN: u64 = 32;
/// The percentage by which providers may count more input than was counted here.
const INPUT_MARGIN: u64 = 5;
/// Bytes per token of an answer: low enough for scripts with multi-byte letters.
const BYTES_PER_TOKEN: u64 = 4;

/// The usage of the running attempt.
#[derive(Debug, Clone)]
pub(super) struct Gauge {
    model: Arc<Model>,
    /// The amount to count if the price is unknown.
    charge: Option<MicroUsd>,
    input_tokens: u64,
    /// The cost of earlier attempts.
    earlier: MicroUsd,
    said_bytes: u64,
    /// The usage that the provider reported for this attempt.
    reported: Option<TokenUsage>,
}

impl Gauge {
    /// Makes the gauge of a request that is about to be sent; `None` if its cost is unknown.
    pub(super) fn new(
        model: Arc<Model>,
        charge: Option<MicroUsd>,
        input_tokens: u64,
        earlier: MicroUsd,
    ) -> Option<Self> {
        let gauge = Self {
            model,
            charge,
            input_tokens,
            earlier,
            said_bytes: 0,
            reported: None,
        };
        gauge.cost(1).map(|_| gauge)
    }

    /// Counts more bytes of the answer.
    pub(super) fn hear(&mut self, bytes: usize) {
        self.said_bytes = self.said_bytes.saturating_add(bytes as u64);
    }

    /// Takes the provider's own count.
    pub(super) fn report(&mut self, usage: TokenUsage) {
        self.reported = Some(usage);
    }

    /// Starts over for a retry of the same request after a failed attempt.
    pub(super) fn again(&mut self, earlier: MicroUsd) {
        self.earlier = earlier;
        self.said_bytes = 0;
        self.reported = None;
    }

    /// Returns the cost of all attempts if the answer gets `more` further tokens.
    pub(super) fn needs(&self, more: u64) -> MicroUsd {
        let own = self.cost(more).unwrap_or_default();
        MicroUsd(self.earlier.0.saturating_add(own.0))
    }

    /// The amounts to reserve next.
    pub(super) fn need(&self) -> Need {
        Need {
            least: self.needs(LEAST),
            usual: self.needs(CHUNK),
            begins: false,
        }
    }

    /// Returns true if more has to be reserved: half a chunk is left.
    pub(super) fn is_low(&self, paid: MicroUsd) -> bool {
        self.needs(CHUNK / 2) > paid
    }

    /// Returns true if the reservation is used up.
    pub(super) fn is_over(&self, paid: MicroUsd) -> bool {
        self.needs(MARGIN) > paid
    }

    /// Returns the number of tokens that the answer can have if all attempts together may cost `left`; `None`
    /// if the longest answer is covered.
    pub(super) fn covered(&self, left: MicroUsd, longest: u32) -> Option<u32> {
        let is_covered = |tokens: u32| self.needs(u64::from(tokens) + MARGIN) <= left;
        if is_covered(longest) {
            return None;
        }
        let (mut covered, mut beyond) = (0, longest);
        while beyond - covered > 1 {
            let middle = covered + (beyond - covered) / 2;
            if is_covered(middle) {
                covered = middle;
            } else {
                beyond = middle;
            }
        }
        Some(covered)
    }

    fn cost(&self, more: u64) -> Option<MicroUsd> {
        let said = self.said_bytes.div_ceil(BYTES_PER_TOKEN);
        let counted = self.input_tokens.saturating_mul(100 + INPUT_MARGIN) / 100;
        let usage = self.reported.unwrap_or(TokenUsage {
            input_tokens: counted,
            // Vendors that price cache writes charge more for them, so assume that all input is written to
            // the cache.
            cache_write_tokens: counted,
            ..TokenUsage::default()
        });
        let usage = TokenUsage {
            output_tokens: usage.output_tokens.max(said).saturating_add(more),
            ..usage
        };
        let plain = TokenUsage {
            cache_write_tokens: 0,
            ..usage
        };
        let costs = [usage, plain].map(|it| self.model.price(&it));
        let cost = costs.into_iter().flatten();
        cost.max().or(self.charge)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{CHUNK, Gauge, LEAST, MARGIN};
    use crate::domain::{MicroUsd, TokenUsage};
    use crate::llm::ProviderKind;
    use crate::llm::catalogue::{self, Model, Overrides, Vendor};

    fn gauge(input_tokens: u64) -> Gauge {
        let model = catalogue::describe(
            Vendor::of(ProviderKind::OpenAi, None),
            "gpt-4o",
            &Overrides::default(),
        );
        Gauge::new(model.into(), None, input_tokens, MicroUsd(0)).unwrap()
    }

    /// 2.50 USD per million input tokens, 10 USD per million output tokens.
    fn cost(input: u64, output: u64) -> MicroUsd {
        MicroUsd((input * 25 + output * 100).div_ceil(10))
    }

    #[test]
    fn a_request_needs_its_input_and_a_piece_of_its_answer() {
        let mut gauge = gauge(1_000);
        assert_eq!(gauge.need().least, cost(1_050, LEAST));
        assert_eq!(gauge.need().usual, cost(1_050, CHUNK));
        let paid = gauge.need().usual;
        assert!(!gauge.is_low(paid) && !gauge.is_over(paid));
        gauge.hear(2_100);
        assert!(gauge.is_low(paid) && !gauge.is_over(paid));
        gauge.hear(2_000);
        assert!(gauge.is_over(paid));
        // The provider's count wins.
        gauge.report(TokenUsage {
            input_tokens: 900,
            output_tokens: 3,
            ..TokenUsage::default()
        });
        assert_eq!(gauge.needs(0), cost(900, 1_025));
        gauge.again(MicroUsd(7));
        assert_eq!(gauge.needs(0).0, cost(1_050, 0).0 + 7);
    }

    #[test]
    fn an_answer_is_as_long_as_what_is_left_covers() {
        let gauge = gauge(1_000);
        let check = |left: MicroUsd, longest: u32, covered: Option<u32>| {
            assert_eq!(gauge.covered(left, longest), covered);
        };
        check(cost(1_050, 5_000 + MARGIN), 5_000, None);
        check(cost(1_050, 4_999 + MARGIN), 5_000, Some(4_999));
        check(cost(1_050, 700 + MARGIN), 16_384, Some(700));
        // A request that is admitted covers at least this much of an answer.
        let least = u32::try_from(LEAST - MARGIN).unwrap();
        check(gauge.need().least, 16_384, Some(least));
    }

    #[test]
    fn a_model_without_a_price_has_a_ceiling_or_no_gauge() {
        let unknown = || -> Arc<Model> {
            catalogue::describe(Vendor::default(), "nobody-knows-it", &Overrides::default()).into()
        };
        assert!(Gauge::new(unknown(), None, 10, MicroUsd(0)).is_none());
        let mut gauge = Gauge::new(unknown(), Some(MicroUsd(50)), 10, MicroUsd(3)).unwrap();
        gauge.hear(1_000_000);
        assert_eq!(gauge.needs(1_000), MicroUsd(53));
        assert!(!gauge.is_over(gauge.need().usual));
        assert_eq!(gauge.covered(MicroUsd(53), 1_000_000), None);
    }
}
