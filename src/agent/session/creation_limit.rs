//! Limits how many sessions one user and one tenant create in a minute: each is stored for good.

use std::hash::Hash;
use std::num::NonZeroU32;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::domain::{Code, Holder, TenantId, UserId};
use crate::session::Refusal;
use crate::telemetry::instruments;

/// The number of remembered keys above which inactive ones are dropped.
const MAX_KEYS: usize = 10_000;

/// Rate limits for new sessions.
pub(in crate::agent) struct CreationLimit {
    of_users: Pace<UserId>,
    of_tenants: Pace<TenantId>,
}

struct Pace<K: Hash + Eq + Clone>(Option<(NonZeroU32, DefaultKeyedRateLimiter<K>)>);

impl CreationLimit {
    /// Takes the limits per minute for one user and for one tenant; `None` = no limit.
    pub(in crate::agent) fn new((user, tenant): (Option<NonZeroU32>, Option<NonZeroU32>)) -> Self {
        Self {
            of_users: Pace::new(user),
            of_tenants: Pace::new(tenant),
        }
    }

    /// Counts a new session, or refuses it if a limit is reached.
    pub(in crate::agent) fn count(&self, holder: &Holder) -> Result<(), Refusal> {
        let refused = |whose: &'static str, who: &str, most: NonZeroU32| {
            instruments().limit_reached("new_sessions", whose);
            let message = format!(
                "{who} began {most} sessions within a minute, as many as may be; wait a moment, or \
                 have the operator raise `runtime.limits.new_sessions_per_{whose}`"
            );
            Refusal::new(Code::TooManyRequests, message)
        };
        let of_user = self.of_users.count(&holder.user);
        of_user.map_err(|most| refused("user", "you", most))?;
        let of_tenant = self.of_tenants.count(&holder.tenant);
        of_tenant.map_err(|most| refused("tenant", "your tenant", most))
    }
}

impl<K: Hash + Eq + Clone> Pace<K> {
    fn new(most: Option<NonZeroU32>) -> Self {
        Self(most.map(|most| (most, RateLimiter::keyed(Quota::per_minute(most)))))
    }

    fn count(&self, key: &K) -> Result<(), NonZeroU32> {
        let Some((most, limiter)) = &self.0 else {
            return Ok(());
        };
        if limiter.len() > MAX_KEYS {
            limiter.retain_recent();
        }
        limiter.check_key(key).map_err(|_| *most)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::CreationLimit;
    use crate::domain::{Holder, TenantId, UserId};

    #[test]
    fn who_began_many_leaves_the_others_theirs() {
        let most = (NonZeroU32::new(3), NonZeroU32::new(5));
        let creation_limit = CreationLimit::new(most);
        let create_nine = |tenant, user| {
            let holder = Holder {
                tenant: TenantId::from_bits(tenant),
                user: UserId::from_bits(user),
            };
            let tries = (0..9).map(|_| creation_limit.count(&holder));
            let refused = tries.filter_map(Result::err).map(|it| it.message);
            let refused: Vec<String> = refused.collect();
            (9 - refused.len(), refused[0].clone())
        };
        let (begun, text) = create_nine(1, 1);
        assert_eq!(begun, 3);
        assert!(text.contains("you began 3") && text.contains("new_sessions_per_user"));
        let (begun, text) = create_nine(1, 2);
        assert_eq!(begun, 2, "what is left to the tenant");
        assert!(text.contains("your tenant began 5"), "{text}");
        assert_eq!(create_nine(2, 3).0, 3);
        assert!(
            CreationLimit::new((None, None))
                .of_users
                .count(&UserId::from_bits(1))
                .is_ok()
        );
    }
}
