//! How far a count is from what a provider reports, learned from its reports. Pure.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

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

/// What was learned of one model. Its kept form is numbers only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// Reported tokens by counted ones, in thousandths; the newest last.
    ratios: VecDeque<u64>,
    /// How far the calibrated count was off, in thousandths of the reported one.
    errors: VecDeque<u64>,
    /// How many of the newest ratios and errors are not kept yet.
    #[serde(skip)]
    unkept: (usize, usize),
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
            self.unkept.1 += 1;
        }
        push(&mut self.ratios, ratio);
        self.unkept.0 += 1;
    }

    /// Whether something was learned that is not kept yet.
    pub fn has_news(&self) -> bool {
        self.unkept.0 > 0
    }

    /// What is kept by now, perhaps by another gateway, and after it what was learned here since.
    #[must_use]
    pub fn onto(&self, kept: Option<&Self>) -> Self {
        let mut merged = kept.cloned().unwrap_or_default();
        let (ratios, errors) = self.unkept;
        for ratio in newest(&self.ratios, ratios) {
            push(&mut merged.ratios, *ratio);
        }
        for error in newest(&self.errors, errors) {
            push(&mut merged.errors, *error);
        }
        merged
    }

    /// Whether reports could have taught it.
    pub fn is_sound(&self) -> bool {
        self.ratios.len() <= REMEMBERED
            && self.errors.len() <= REMEMBERED
            && self.ratios.iter().all(|ratio| SENSIBLE.contains(ratio))
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

fn newest(values: &VecDeque<u64>, count: usize) -> impl Iterator<Item = &u64> {
    values.iter().skip(values.len().saturating_sub(count))
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

    #[test]
    fn what_two_gateways_learned_is_put_together_and_nothing_is_counted_twice() {
        let (mut one, mut other) = (Calibration::default(), Calibration::default());
        for _ in 0..2 {
            one.learn(1_000, 1_200);
            other.learn(1_000, 1_300);
        }
        let kept = one.onto(None);
        assert!(one.has_news() && !kept.has_news() && kept.ratio().is_none());
        let kept = other.onto(Some(&kept));
        assert_eq!(kept.ratio(), Some(1_300));
        assert_eq!(kept.onto(Some(&kept)), kept);
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(text, r#"{"ratios":[1200,1200,1300,1300],"errors":[]}"#);
        let read: Calibration = serde_json::from_str(&text).unwrap();
        assert!(read.is_sound() && read == kept);
        let odd: Calibration = serde_json::from_str(r#"{"ratios":[0],"errors":[]}"#).unwrap();
        assert!(!odd.is_sound());
    }
}
