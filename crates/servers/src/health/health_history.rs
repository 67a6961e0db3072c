//! Counts the successful and failed checks of a server in the last 24 hours, in steps of half an hour, so
//! that its size is bounded.

use std::collections::VecDeque;

use sepal_core::domain::Timestamp;

/// The length of a step.
const STEP_MS: i64 = 30 * 60 * 1000;
/// The time that the history covers.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The number of steps that are kept: those of 24 hours, and the one that has begun.
const STEPS: usize = 49;

/// The checks in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthStep {
    pub from: Timestamp,
    /// The number of times that the server answered.
    pub well: u32,
    /// The number of times that the server did not answer, or answered badly.
    pub badly: u32,
}

impl HealthStep {
    /// The length of a step, in seconds.
    pub const SECONDS: i64 = STEP_MS / 1000;
}

/// The steps with at least one check, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct HealthHistory(VecDeque<HealthStep>);

impl HealthHistory {
    /// Counts one check or use.
    pub(crate) fn count(&mut self, is_well: bool, now: Timestamp) {
        let (well, badly) = (u32::from(is_well), u32::from(!is_well));
        self.add(HealthStep {
            from: begin_of(now),
            well,
            badly,
        });
    }

    fn add(&mut self, seen: HealthStep) {
        if let Some(step) = self.0.iter_mut().find(|step| step.from == seen.from) {
            step.well = step.well.saturating_add(seen.well);
            step.badly = step.badly.saturating_add(seen.badly);
            return;
        }
        let place = self.0.partition_point(|step| step.from < seen.from);
        self.0.insert(place, seen);
        while self.0.len() > STEPS {
            self.0.pop_front();
        }
    }

    /// Merges two histories.
    pub(crate) fn joined(mut self, other: &Self) -> Self {
        other.0.iter().for_each(|step| self.add(*step));
        self
    }

    /// The steps of the last 24 hours.
    pub(crate) fn steps(&self, now: Timestamp) -> Vec<HealthStep> {
        let oldest = begin_of(now).0 - DAY_MS;
        let steps = self.0.iter().filter(|step| step.from.0 >= oldest);
        steps.copied().collect()
    }
}

fn begin_of(at: Timestamp) -> Timestamp {
    Timestamp(at.0 - at.0.rem_euclid(STEP_MS))
}

#[cfg(test)]
mod tests {
    use super::{HealthHistory, STEP_MS, STEPS};
    use sepal_core::domain::Timestamp;

    #[test]
    fn what_is_seen_is_counted_in_steps_and_forgotten_after_a_day() {
        let mut day = HealthHistory::default();
        let at = |step: i64| Timestamp(step * STEP_MS + 7);
        day.count(true, at(0));
        day.count(false, at(0));
        day.count(true, at(3));
        let steps = day.steps(at(3));
        let seen: Vec<_> = steps
            .iter()
            .map(|it| (it.from.0, it.well, it.badly))
            .collect();
        assert_eq!(seen, [(0, 1, 1), (3 * STEP_MS, 1, 0)]);
        assert_eq!(day.steps(at(48)).len(), 2);
        assert_eq!(day.steps(at(49)).len(), 1, "the first is older than a day");
        for step in 0..1_000 {
            day.count(true, at(step));
        }
        assert_eq!(day.steps(at(999)).len(), STEPS);
    }

    #[test]
    fn two_days_are_joined_in_order() {
        let (mut one, mut two) = (HealthHistory::default(), HealthHistory::default());
        one.count(true, Timestamp(STEP_MS));
        two.count(false, Timestamp(0));
        two.count(false, Timestamp(STEP_MS));
        let steps = one.joined(&two).steps(Timestamp(STEP_MS));
        let seen: Vec<_> = steps
            .iter()
            .map(|it| (it.from.0, it.well, it.badly))
            .collect();
        assert_eq!(seen, [(0, 0, 1), (STEP_MS, 1, 1)]);
    }
}
