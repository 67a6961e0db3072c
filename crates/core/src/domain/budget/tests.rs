//! Tests that grants never exceed a limit and that all reservations are given back.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Budget, BudgetLevel, BudgetPeriod, BudgetSource, BudgetStanding, Days, Grant, Need, grant,
    in_force,
};
use crate::domain::{MicroUsd, Timestamp};

fn standing(level: BudgetLevel, limit: u64, used: u64, reserved: u64) -> BudgetStanding {
    BudgetStanding {
        budget: Budget::of_settings(level, MicroUsd(limit)),
        source: BudgetSource::Settings,
        used: MicroUsd(used),
        reserved: MicroUsd(reserved),
        is_warned: false,
        group: None,
    }
}

fn need(least: u64, usual: u64) -> Need {
    Need {
        least: MicroUsd(least),
        usual: MicroUsd(usual),
        begins: false,
    }
}

fn word(grant: &Grant) -> String {
    match grant {
        Grant::Given(amount) => format!("given {}", amount.0),
        Grant::Held(standing) => format!("held {}", standing.budget.level.as_str()),
        Grant::Exhausted(standing) => format!("exhausted {}", standing.budget.level.as_str()),
    }
}

#[test]
fn a_request_is_given_what_is_left_waits_for_others_or_is_refused() {
    use BudgetLevel::{Person, Session, Tenant};
    let check = |standings: &[BudgetStanding], (least, usual), expected: &str| {
        assert_eq!(word(&grant(standings, need(least, usual))), expected);
    };
    check(&[], (5, 10), "given 10");
    check(&[standing(Tenant, 100, 50, 0)], (5, 10), "given 10");
    check(&[standing(Tenant, 100, 93, 0)], (5, 10), "given 7");
    check(&[standing(Tenant, 100, 95, 0)], (5, 10), "given 5");
    check(&[standing(Tenant, 100, 96, 0)], (5, 10), "exhausted tenant");
    check(&[standing(Tenant, 100, 50, 46)], (5, 10), "held tenant");
    check(&[standing(Tenant, 100, 300, 0)], (0, 0), "given 0");
    let both = [standing(Tenant, 100, 0, 97), standing(Person, 9, 6, 0)];
    check(&both, (3, 10), "given 3");
    check(&both, (4, 10), "exhausted person");
    let begin = |standing: BudgetStanding, expected: &str| {
        let begins = true;
        let need = Need {
            begins,
            ..need(5, 10)
        };
        assert_eq!(word(&grant(&[standing], need)), expected);
    };
    begin(standing(Tenant, 100, 93, 0), "given 7");
    begin(standing(Tenant, 100, 80, 13), "held tenant");
    begin(standing(Tenant, 100, 80, 10), "given 10");
    let soft = |mut standing: BudgetStanding| {
        standing.budget.is_hard = false;
        standing
    };
    check(&[soft(standing(Session, 1, 9, 9))], (5, 10), "given 10");
}

#[test]
fn what_names_its_subject_goes_before_what_is_for_each_and_both_before_the_settings() {
    use BudgetSource::{Each, Settings, Subject};
    let of = |source, limit| BudgetStanding {
        source,
        ..standing(BudgetLevel::Session, limit, 0, 0)
    };
    for (sources, expected) in [
        (vec![Settings, Each, Subject], 3),
        (vec![Each, Settings], 2),
        (vec![Settings], 1),
    ] {
        let standings = sources.into_iter().map(|source| match source {
            Settings => of(source, 1),
            Each => of(source, 2),
            Subject => of(source, 3),
        });
        let own = standing(BudgetLevel::Own, 9, 0, 0);
        let held = in_force(standings.chain([own]).collect());
        let limits: Vec<u64> = held.iter().map(|held| held.budget.limit.0).collect();
        assert_eq!(limits, [9, expected]);
    }
}

#[test]
fn the_budgets_of_all_groups_of_a_person_hold() {
    let of = |level, group: &str, limit| {
        let mut standing = standing(level, limit, 0, 0);
        standing.budget.subject = group.to_owned();
        standing.budget.period = BudgetPeriod::Month;
        standing
    };
    let all = vec![
        of(BudgetLevel::GroupPooled, "a", 50),
        of(BudgetLevel::GroupPooled, "b", 40),
        of(BudgetLevel::GroupEach, "a", 30),
        of(BudgetLevel::GroupEach, "b", 20),
    ];
    let held = in_force(all);
    let limits: Vec<u64> = held.iter().map(|held| held.budget.limit.0).collect();
    assert_eq!(limits, [30, 20, 50, 40]);
    assert_eq!(word(&grant(&held, need(21, 25))), "exhausted group_each");
    assert_eq!(word(&grant(&held, need(5, 25))), "given 20");
}

#[test]
fn periods_are_those_of_utc() {
    let at = |text: &str| Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
    let now = at("2028-02-10T23:59:59Z");
    let days = Days::of(now);
    assert_eq!(days.today - days.month, 9);
    for (period, expected) in [
        (BudgetPeriod::Whole, None),
        (BudgetPeriod::Day, Some(at("2028-02-11T00:00:00Z"))),
        (BudgetPeriod::Month, Some(at("2028-03-01T00:00:00Z"))),
    ] {
        assert_eq!(period.ends(now), expected);
    }
}

#[test]
fn people_are_warned_from_their_part_of_the_limit_on() {
    let standing = standing(BudgetLevel::Tenant, 100, 70, 0);
    assert!(!standing.is_near(MicroUsd(9)));
    assert!(standing.is_near(MicroUsd(10)));
}

/// The reserved amount of each request.
type ReservedAmounts = BTreeMap<u8, u64>;

proptest! {
    /// In any order in which requests begin, continue and end, spending plus reservations never exceed a
    /// hard limit, and at the end nothing is reserved.
    #[test]
    fn nothing_goes_beyond_a_limit_and_all_of_it_comes_back(
        limits in (50_u64..500, 50_u64..2_000),
        steps in prop::collection::vec((0_u8..12, 0_u8..4, 1_u64..60, 0_u64..100), 1..200),
    ) {
        let (mut held, mut used) = (ReservedAmounts::new(), 0_u64);
        let standings = |held: &ReservedAmounts, used: u64, own: u8| {
            let others = held.iter().filter(|(id, _)| **id != own).map(|(_, amount)| amount);
            let others: u64 = others.sum();
            [
                standing(BudgetLevel::Person, limits.0, used, others),
                standing(BudgetLevel::Tenant, limits.1, used, others),
            ]
        };
        for (id, what, amount, part) in steps {
            match what {
                // The request begins or goes on.
                0 | 1 => {
                    let so_far = held.get(&id).copied().unwrap_or(0);
                    let wanted = need(so_far + amount.div_ceil(4), so_far + amount);
                    if let Grant::Given(given) = grant(&standings(&held, used, id), wanted) {
                        prop_assert!(given >= wanted.least && given <= wanted.usual);
                        held.insert(id, given.0);
                    }
                }
                // The request ends and has used a part of its reservation.
                2 => used += held.remove(&id).unwrap_or(0) * part / 100,
                // The request is lost: its lease ends.
                _ => drop(held.remove(&id)),
            }
            let all: u64 = held.values().sum();
            prop_assert!(used + all <= limits.0.min(limits.1));
        }
        held.clear();
        let left = standings(&held, used, 0).map(|standing| standing.left().0);
        prop_assert_eq!(left, [limits.0.saturating_sub(used), limits.1.saturating_sub(used)]);
    }
}
