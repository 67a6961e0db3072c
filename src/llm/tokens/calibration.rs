//! How far a count is from what a provider reports, learned from its reports. Pure.

use std::collections::VecDeque;

/// Reports that the ratio is the median of: few, so that it follows a conversation that changes its
/// kind, and enough that a single odd one says nothing.
const RECENT: usize = 5;
/// Reports that the error is the median of.
const REMEMBERED: usize = 32;
/// Reports before which nothing is calibrated.
const ENOUGH: usize = 3;
/// Counts below this say more about what surrounds a message than about its text.
const SMALLEST: u64 = 32;
/// Ratios beyond these are no counts of the same thing, in thousandths.
const SENSIBLE: std::ops::RangeInclusive<u64> = 100..=10_000;

/// What was learned of one model.
#[derive(Debug, Clone, Default)]
pub struct Calibration {
    /// Reported tokens by counted ones, in thousandths; the newest last.
    ratios: VecDeque<u64>,
    /// How far the calibrated count was off, in thousandths of the reported one.
    errors: VecDeque<u64>,
}

impl Calibration {
    /// Takes a report: so many were counted, and the provider says so many.
    pub fn learn(&mut self, counted: u64, reported: u64) {
        if counted < SMALLEST || reported == 0 {
            return;
        }
        let ratio = reported.saturating_mul(1_000) / counted;
        if !SENSIBLE.contains(&ratio) {
            return;
        }
        if let Some(known) = self.ratio() {
            let expected = scaled(counted, known);
            let off = expected.abs_diff(reported).saturating_mul(1_000) / reported;
            push(&mut self.errors, off);
        }
        push(&mut self.ratios, ratio);
    }

    /// Reported tokens by counted ones, in thousandths; none = too little is known.
    pub fn ratio(&self) -> Option<u64> {
        (self.ratios.len() >= ENOUGH).then(|| median(self.ratios.iter().rev().take(RECENT)))?
    }

    /// How far calibrated counts were off, in thousandths: half of them less.
    pub fn error(&self) -> Option<u64> {
        median(self.errors.iter())
    }
}

/// So many tokens at that ratio.
pub(super) fn scaled(counted: u64, thousandths: u64) -> u64 {
    counted.saturating_mul(thousandths).div_ceil(1_000)
}

fn push(kept: &mut VecDeque<u64>, value: u64) {
    if kept.len() >= REMEMBERED {
        kept.pop_front();
    }
    kept.push_back(value);
}

fn median<'a>(values: impl Iterator<Item = &'a u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.copied().collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::Calibration;

    #[test]
    fn a_ratio_follows_the_reports_and_one_odd_one_changes_nothing() {
        let mut known = Calibration::default();
        for _ in 0..3 {
            assert_eq!(known.ratio(), None);
            known.learn(1_000, 1_250);
        }
        assert_eq!((known.ratio(), known.error()), (Some(1_250), None));
        // Cut short, cut off, of nothing, and of something else.
        for (counted, reported) in [(1_000, 5_000), (10, 90), (1_000, 0), (1_000, 90_000)] {
            known.learn(counted, reported);
            assert_eq!(known.ratio(), Some(1_250));
        }
        for _ in 0..40 {
            known.learn(2_000, 2_000);
        }
        assert_eq!((known.ratio(), known.error()), (Some(1_000), Some(0)));
    }
}
