//! Learns the ratio between our token counts and those that a provider reports. Pure.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Reports whose median is the ratio: few enough to follow a conversation that changes its kind, and enough
/// that a single outlier has no effect.
const RECENT: usize = 5;
/// Reports whose median is the error.
const REMEMBERED: usize = 32;
/// Reports that are needed before counts are calibrated.
const ENOUGH: usize = 3;
/// The smallest count that is used: below it, the overhead of a message outweighs its text.
const SMALLEST: u64 = 32;
/// Plausible ratios, in thousandths; others do not count the same thing.
const SENSIBLE: std::ops::RangeInclusive<u64> = 100..=10_000;

/// The calibration of one model. Its stored form has only numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// Reported tokens per counted token, in thousandths; the newest last.
    ratios: VecDeque<u64>,
    /// The errors of calibrated counts, in thousandths of the reported count.
    errors: VecDeque<u64>,
    /// The number of newest ratios and errors that are not stored yet.
    #[serde(skip)]
    unkept: (usize, usize),
}

impl Calibration {
    /// Learns from a report: our count and the provider's.
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

    /// Returns true if something was learned that is not stored yet.
    pub fn has_news(&self) -> bool {
        self.unkept.0 > 0
    }

    /// The stored calibration, which another gateway may have changed, followed by what was learned here
    /// since.
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

    /// Returns true if the values are plausible: few enough, with ratios in the allowed range.
    pub fn is_sound(&self) -> bool {
        self.ratios.len() <= REMEMBERED
            && self.errors.len() <= REMEMBERED
            && self.ratios.iter().all(|ratio| SENSIBLE.contains(ratio))
    }

    /// Reported tokens per counted token, in thousandths; `None` if there are too few reports.
    pub fn ratio(&self) -> Option<u64> {
        (self.ratios.len() >= ENOUGH).then(|| median(self.ratios.iter().rev().take(RECENT)))?
    }

    /// The median error of calibrated counts, in thousandths.
    pub fn error(&self) -> Option<u64> {
        median(self.errors.iter())
    }
}

/// The count multiplied by the ratio, rounded up.
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
        // A truncated answer, a tiny count, an empty report, and an implausible ratio.
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
