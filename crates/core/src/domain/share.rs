//! Limits how much of a shared resource one user and one tenant may hold at the same time, so that nobody
//! can starve the others.
//!
//! [`Shares`] counts the taken amounts, and [`Share`] gives its amount back on drop. If an amount cannot be
//! taken, the request fails immediately with the limit that was reached; the caller decides whether to
//! wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{TenantId, UserId};

/// The user and tenant that an amount is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    pub tenant: TenantId,
    pub user: UserId,
}

/// The limits of a resource; `None` = no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Most {
    pub all: Option<u64>,
    pub per_tenant: Option<u64>,
    pub per_user: Option<u64>,
}

/// The scope of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShareLevel {
    /// One user.
    User,
    /// One tenant.
    Tenant,
    /// Everybody together.
    All,
}

impl ShareLevel {
    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Tenant => "tenant",
            Self::All => "all",
        }
    }
}

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachedLimit {
    pub whose: ShareLevel,
    /// The limit.
    pub most: u64,
}

/// The texts that describe a shared resource.
#[derive(Debug, Clone, Copy)]
pub struct Resource {
    /// The name in metrics.
    pub name: &'static str,
    /// The plural, as in "you have 5 …".
    pub plural: &'static str,
    /// The advice to a user who has too many.
    pub remedy: &'static str,
    /// The setting of the total; the settings of the shares are derived from [`Self::setting`].
    pub total: &'static str,
    /// The prefix of the shares' settings, without `_per_user` and `_per_tenant`.
    pub setting: &'static str,
}

impl Resource {
    /// The error text: the limit, its value and what to do.
    pub fn refusal(&self, reached: ReachedLimit) -> String {
        let Self {
            plural,
            remedy,
            total,
            setting,
            ..
        } = self;
        let most = reached.most;
        match reached.whose {
            ShareLevel::User => format!(
                "you have {most} {plural}, as many as one person may; {remedy}, or have the operator \
                 raise `{setting}_per_user`"
            ),
            ShareLevel::Tenant => format!(
                "your tenant has {most} {plural}, as many as one tenant may; try again later, or have \
                 the operator raise `{setting}_per_tenant`"
            ),
            ShareLevel::All => format!(
                "this gateway has {most} {plural}, as many as it may; try again later, or have the \
                 operator raise `{total}`"
            ),
        }
    }
}

/// The amounts that users, tenants and everybody hold.
#[derive(Debug, Default)]
pub struct Ledger {
    all: u64,
    tenants: HashMap<TenantId, u64>,
    users: HashMap<UserId, u64>,
}

impl Ledger {
    /// Checks that `holder` may take `amount` more; without a holder only the total counts. The narrowest
    /// scope is reported first, because its holder can act on it.
    pub fn check(
        &self,
        holder: Option<&Holder>,
        amount: u64,
        most: Most,
    ) -> Result<(), ReachedLimit> {
        let (user, tenant) = holder.map_or((0, 0), |holder| self.held(holder));
        let own = holder.is_some();
        let checks = [
            (ShareLevel::User, user, most.per_user.filter(|_| own)),
            (ShareLevel::Tenant, tenant, most.per_tenant.filter(|_| own)),
            (ShareLevel::All, self.all, most.all),
        ];
        for (whose, has, most) in checks {
            if let Some(most) = most.filter(|most| has.saturating_add(amount) > *most) {
                return Err(ReachedLimit { whose, most });
            }
        }
        Ok(())
    }

    /// The amounts that a user and their tenant hold.
    pub fn held(&self, holder: &Holder) -> (u64, u64) {
        let user = self.users.get(&holder.user).copied();
        let tenant = self.tenants.get(&holder.tenant).copied();
        (user.unwrap_or_default(), tenant.unwrap_or_default())
    }

    /// The total amount.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// Adds an amount for `holder`; without a holder only the total grows.
    pub fn add(&mut self, holder: Option<&Holder>, amount: u64) {
        self.all = self.all.saturating_add(amount);
        if let Some(Holder { tenant, user }) = holder {
            add(&mut self.tenants, tenant, amount);
            add(&mut self.users, user, amount);
        }
    }

    /// Subtracts an amount that was added.
    pub fn remove(&mut self, holder: Option<&Holder>, amount: u64) {
        self.all = self.all.saturating_sub(amount);
        if let Some(Holder { tenant, user }) = holder {
            remove(&mut self.tenants, tenant, amount);
            remove(&mut self.users, user, amount);
        }
    }
}

fn add<K: Hash + Eq + Clone>(to: &mut HashMap<K, u64>, key: &K, amount: u64) {
    match to.get_mut(key) {
        Some(has) => *has = has.saturating_add(amount),
        None => drop(to.insert(key.clone(), amount)),
    }
}

/// Removes the entry at zero, so that the map stays small.
fn remove<K: Hash + Eq>(from: &mut HashMap<K, u64>, key: &K, amount: u64) {
    if let Some(has) = from.get_mut(key) {
        *has = has.saturating_sub(amount);
        if *has == 0 {
            from.remove(key);
        }
    }
}

/// The taken amounts of one resource, with its limits.
#[derive(Debug, Default)]
pub struct Shares {
    most: Most,
    /// Never held across an await.
    taken: Mutex<Ledger>,
}

impl Shares {
    /// Creates an empty count with these limits.
    pub fn new(most: Most) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Ledger> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an amount, or returns the limit that was reached.
    pub fn take(self: &Arc<Self>, holder: Holder, amount: u64) -> Result<Share, ReachedLimit> {
        let mut taken = self.taken();
        taken.check(Some(&holder), amount, self.most)?;
        taken.add(Some(&holder), amount);
        drop(taken);
        Ok(self.share(Some(holder), amount))
    }

    /// Counts an amount that exists already, regardless of the limits.
    pub fn count(self: &Arc<Self>, holder: Option<Holder>, amount: u64) -> Share {
        self.taken().add(holder.as_ref(), amount);
        self.share(holder, amount)
    }

    /// The amounts that a user and their tenant hold.
    pub fn held(&self, holder: &Holder) -> (u64, u64) {
        self.taken().held(holder)
    }

    fn share(self: &Arc<Self>, holder: Option<Holder>, amount: u64) -> Share {
        Share {
            shares: Arc::clone(self),
            holder,
            amount,
        }
    }
}

/// A taken amount; dropping it gives the amount back.
#[derive(Debug)]
#[must_use]
pub struct Share {
    shares: Arc<Shares>,
    holder: Option<Holder>,
    amount: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.taken();
        taken.remove(self.holder.as_ref(), self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::{Holder, Most, ReachedLimit, Resource, ShareLevel, Shares};
    use crate::domain::{TenantId, UserId};

    fn holder(tenant: u128, user: u128) -> Holder {
        Holder {
            tenant: TenantId::from_bits(tenant),
            user: UserId::from_bits(user),
        }
    }

    const MOST: Most = Most {
        all: Some(5),
        per_tenant: Some(4),
        per_user: Some(2),
    };

    #[test]
    fn who_has_their_share_leaves_the_rest_to_the_others() {
        let shares = Shares::new(MOST);
        let (ana, ben, cy, dan) = (holder(1, 1), holder(1, 2), holder(1, 3), holder(2, 4));
        let mut held = Vec::new();
        let mut check = |holder: &Holder, expected: Result<(), (ShareLevel, u64)>| {
            let taken = shares.take(holder.clone(), 1);
            let told = taken.as_ref().map(|_| ()).map_err(|it| (it.whose, it.most));
            assert_eq!(told, expected, "{holder:?}");
            held.extend(taken);
        };
        check(&ana, Ok(()));
        check(&ana, Ok(()));
        check(&ana, Err((ShareLevel::User, 2)));
        check(&ben, Ok(()));
        check(&cy, Ok(()));
        check(&ben, Err((ShareLevel::Tenant, 4)));
        check(&dan, Ok(()));
        check(&dan, Err((ShareLevel::All, 5)));
        // The narrowest limit is reported even if a wider one is reached too.
        check(&ana, Err((ShareLevel::User, 2)));
        assert_eq!(shares.held(&ana), (2, 4));

        held.clear();
        assert_eq!(shares.held(&ana), (0, 0));
        let taken = shares.taken();
        assert!(taken.users.is_empty() && taken.tenants.is_empty());
    }

    #[test]
    fn amounts_are_weighed_and_what_is_there_already_is_counted_beyond_every_limit() {
        let shares = Shares::new(MOST);
        let ana = holder(1, 1);
        let two = shares.take(ana.clone(), 2).unwrap();
        assert!(shares.take(ana.clone(), 1).is_err());
        drop(two);
        assert!(shares.take(ana.clone(), 3).is_err(), "more than a share");
        let there = shares.count(Some(ana.clone()), 3);
        let nobodys = shares.count(None, 9);
        assert_eq!(shares.held(&ana), (3, 3));
        let reached = shares.take(holder(2, 2), 1).unwrap_err();
        assert_eq!((reached.whose, reached.most), (ShareLevel::All, 5));
        drop((there, nobodys));
        assert!(shares.take(holder(2, 2), 1).is_ok());
    }

    #[test]
    fn without_limits_nothing_is_refused() {
        let shares = Shares::new(Most::default());
        let all: Vec<_> = (0..1_000).map(|_| shares.take(holder(1, 1), 1)).collect();
        assert!(all.iter().all(Result::is_ok));
    }

    #[test]
    fn a_refusal_says_which_limit_how_much_and_what_to_do() {
        let tabs = Resource {
            name: "sockets",
            plural: "open connections",
            remedy: "close some tabs",
            total: "runtime.limits.sockets",
            setting: "runtime.limits.sockets",
        };
        let check = |whose, pieces: &[&str]| {
            let text = tabs.refusal(ReachedLimit { whose, most: 7 });
            for piece in pieces {
                assert!(text.contains(piece), "`{piece}` is not in: {text}");
            }
        };
        let own = "`runtime.limits.sockets_per_user`";
        check(
            ShareLevel::User,
            &["7 open connections", "close some tabs", own],
        );
        check(
            ShareLevel::Tenant,
            &["7", "`runtime.limits.sockets_per_tenant`"],
        );
        check(ShareLevel::All, &["7", "`runtime.limits.sockets`"]);
    }
}
