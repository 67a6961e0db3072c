//! Tells of models that their vendors switch off.

use std::fmt;

use jiff::civil::Date;

use super::Model;

/// Days before its end from which on a model's retirement is reported.
const NOTICE_DAYS: i64 = 60;

/// The retirement of a model, in the near future or the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retirement {
    /// The day of the retirement.
    pub at: Date,
    /// Days until the retirement; negative if it is past.
    days: i64,
}

impl Retirement {
    /// The retirement on the given day; `None` if it is further off than the notice period.
    pub fn of(at: Date, today: Date) -> Option<Self> {
        let days = i64::from((at - today).get_days());
        (days <= NOTICE_DAYS).then_some(Self { at, days })
    }

    /// Returns true from the day of the retirement on.
    pub fn is_over(self) -> bool {
        self.days <= 0
    }
}

impl fmt::Display for Retirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, days } = self;
        match days {
            ..=-1 => write!(f, "its vendor retired it on {at}"),
            0 => write!(f, "its vendor retires it today, {at}"),
            1 => write!(f, "its vendor retires it tomorrow, {at}"),
            _ => write!(f, "its vendor retires it on {at}, in {days} days"),
        }
    }
}

impl Model {
    /// The model's retirement, if it is near or past.
    pub fn retirement(&self, today: Date) -> Option<Retirement> {
        Retirement::of(self.retires_at?, today)
    }

    /// Returns true if the vendor still runs the model, as far as is known.
    pub fn is_living(&self, today: Date) -> bool {
        !self.retirement(today).is_some_and(Retirement::is_over)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::{Date, date};

    use super::Retirement;

    #[test]
    fn an_end_is_told_sixty_days_before() {
        fn check(today: Date, expected: Option<&str>) {
            let end = date(2026, 11, 30);
            let said = Retirement::of(end, today).map(|near| near.to_string());
            assert_eq!(said.as_deref(), expected, "{today}");
        }
        check(date(2026, 9, 30), None);
        check(
            date(2026, 10, 1),
            Some("its vendor retires it on 2026-11-30, in 60 days"),
        );
        check(
            date(2026, 11, 29),
            Some("its vendor retires it tomorrow, 2026-11-30"),
        );
        check(
            date(2026, 11, 30),
            Some("its vendor retires it today, 2026-11-30"),
        );
        check(
            date(2028, 2, 1),
            Some("its vendor retired it on 2026-11-30"),
        );
    }
}
