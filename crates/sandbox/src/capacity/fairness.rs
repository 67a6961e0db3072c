//! Decides which start gets the next place, and which idle sandbox ends for it. Pure: only the numbers
//! decide.

use std::cmp::Reverse;

use sepal_core::domain::{Holder, Ledger, Most, ShareLevel};

/// Returns true if `ticket` may have one of the free places; always true if there is no limit in all, or if
/// the ticket is not waiting. The order is: the holder with the fewest places, then the tenant with the
/// fewest, then the oldest ticket. A holder whose share is full waits for that share and blocks nobody.
pub(crate) fn is_next<'a>(
    ticket: u64,
    waiting: impl Iterator<Item = (u64, Option<&'a Holder>)> + Clone,
    ledger: &Ledger,
    most: Most,
) -> bool {
    let Some(all) = most.all else { return true };
    let free = all.saturating_sub(ledger.all());
    let rank = |number: u64, holder: Option<&Holder>| {
        let held = holder.map_or((0, 0), |holder| ledger.held(holder));
        (held, number)
    };
    let mut own = waiting.clone().filter(|(number, _)| *number == ticket);
    let Some((_, holder)) = own.next() else {
        return true;
    };
    let own = rank(ticket, holder);
    let before = waiting
        .filter(|(number, holder)| rank(*number, *holder) < own)
        .filter(|(_, holder)| ledger.check(*holder, 1, most).is_ok());
    u64::try_from(before.count()).is_ok_and(|before| before < free)
}

/// Returns the sandbox to end for a start of `holder` at that limit: of the idle ones that make room there,
/// one of the holder with the most places, and of these the one that has been idle longest.
pub(crate) fn idlest<'a, S: Ord + Copy, G>(
    idle: impl Iterator<Item = (Option<&'a Holder>, S, G)>,
    holder: Option<&Holder>,
    whose: ShareLevel,
    ledger: &Ledger,
) -> Option<(S, G)> {
    let helps = |other: Option<&Holder>| match (whose, holder, other) {
        (ShareLevel::All, ..) => true,
        (ShareLevel::User, Some(own), Some(other)) => own.user == other.user,
        (ShareLevel::Tenant, Some(own), Some(other)) => own.tenant == other.tenant,
        (ShareLevel::User | ShareLevel::Tenant, ..) => false,
    };
    idle.filter(|(other, ..)| helps(*other))
        .min_by_key(|(other, since, _)| {
            let held = other.map_or(0, |other| ledger.held(other).0);
            (Reverse(held), *since)
        })
        .map(|(_, since, guest)| (since, guest))
}

#[cfg(test)]
mod tests {
    use super::{idlest, is_next};
    use sepal_core::domain::{Holder, Ledger, Most, ShareLevel, TenantId, UserId};

    fn holder(tenant: u128, user: u128) -> Holder {
        Holder {
            tenant: TenantId::from_bits(tenant),
            user: UserId::from_bits(user),
        }
    }

    fn ledger(held: &[(&Holder, u64)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (holder, amount) in held {
            ledger.add(Some(holder), *amount);
        }
        ledger
    }

    const MOST: Most = Most {
        all: Some(10),
        per_tenant: Some(8),
        per_user: Some(5),
    };

    /// Returns the tickets that may proceed, of those that wait in this order.
    fn next(waiting: &[&Holder], held: &[(&Holder, u64)]) -> Vec<u64> {
        let ledger = ledger(held);
        let waiting = (0..).zip(waiting.iter().map(|holder| Some(*holder)));
        let tickets = waiting.clone().map(|(number, _)| number);
        let may = |ticket: u64| {
            let mut own = waiting.clone().filter(|(number, _)| *number == ticket);
            own.all(|(_, holder)| ledger.check(holder, 1, MOST).is_ok())
        };
        tickets
            .filter(|ticket| may(*ticket) && is_next(*ticket, waiting.clone(), &ledger, MOST))
            .collect()
    }

    #[test]
    fn who_has_the_least_is_next_and_who_has_the_most_waits() {
        let (ana, ben, cy, dan) = (holder(1, 1), holder(1, 2), holder(2, 3), holder(3, 4));
        let held = [(&ana, 4), (&ben, 1), (&dan, 4)];
        assert_eq!(next(&[&ana, &ben, &cy], &held), [2], "one is free");
        assert_eq!(next(&[&ana, &ana, &ben], &held), [2]);
        assert_eq!(next(&[&ana, &ana], &held), [0], "who came first");
        let held = [(&ana, 4), (&ben, 2), (&dan, 2)];
        assert_eq!(next(&[&ana, &ben, &cy], &held), [1, 2], "two are free");
        // Of two holders without places, the one whose tenant has fewer.
        let (eve, held) = (holder(1, 5), [(&ana, 4), (&dan, 5)]);
        assert_eq!(next(&[&eve, &cy], &held), [1]);
    }

    #[test]
    fn who_has_a_full_share_keeps_nobody_waiting() {
        let (ana, ben, dan) = (holder(1, 1), holder(1, 2), holder(2, 4));
        // Ben's tenant is full, so the free place is Dan's, although Dan has more.
        let held = [(&ana, 5), (&ben, 3), (&dan, 1)];
        assert_eq!(next(&[&ben, &dan], &held), [1]);
        let zero = holder(1, 9);
        assert_eq!(next(&[&zero, &dan], &held), [1]);
    }

    #[test]
    fn the_idle_one_of_whoever_has_the_most_goes_first() {
        let (ana, ben, cy) = (holder(1, 1), holder(1, 2), holder(2, 3));
        let ledger = ledger(&[(&ana, 3), (&ben, 4), (&cy, 5)]);
        let idle = [
            (Some(&ana), 1, "ana's, idle longest"),
            (Some(&ana), 9, "ana's"),
            (Some(&ben), 3, "ben's"),
            (Some(&cy), 8, "cy's"),
            (None, 0, "nobody's"),
        ];
        let goes = |whose, holder: &Holder| {
            let found = idlest(idle.iter().copied(), Some(holder), whose, &ledger);
            found.map(|(_, name)| name)
        };
        assert_eq!(goes(ShareLevel::User, &ana), Some("ana's, idle longest"));
        assert_eq!(goes(ShareLevel::Tenant, &ana), Some("ben's"));
        assert_eq!(goes(ShareLevel::All, &ana), Some("cy's"));
        assert_eq!(goes(ShareLevel::User, &holder(1, 7)), None);
        assert_eq!(goes(ShareLevel::Tenant, &holder(7, 7)), None);
    }
}
