//! Limits how many requests one user makes in a minute, and tells clients how many are left
//! (draft-ietf-httpapi-ratelimit-headers).

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use axum::http::{HeaderName, HeaderValue, Response};
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::{StateInformationMiddleware, StateSnapshot};
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use super::error::ApiError;
use crate::domain::{Code, UserId};
use crate::telemetry::instruments;

/// The header with what is left.
pub(super) const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// The header with the limit.
pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The window of the limit, in seconds.
const WINDOW: u32 = 60;
/// The number of remembered users above which inactive ones are dropped.
const MAX_USERS: usize = 10_000;

type Limiter =
    RateLimiter<UserId, DefaultKeyedStateStore<UserId>, DefaultClock, StateInformationMiddleware>;

/// The limit on the requests of each user.
pub struct Pace(Option<(NonZeroU32, Limiter)>);

/// The requests that a user has left, and the time until they have more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    most: u32,
    left: u32,
}

/// A place in a request for what its user has left, for the headers of the response.
#[derive(Debug, Clone, Default)]
pub(super) struct PaceTold(Arc<OnceLock<Left>>);

impl Pace {
    /// Limits each user to so many requests in a minute; `None` = no limit.
    pub fn new(most: Option<NonZeroU32>) -> Self {
        Self(most.map(|most| {
            let limiter = RateLimiter::keyed(Quota::per_minute(most));
            (most, limiter.with_middleware())
        }))
    }

    /// Counts a request, or refuses it.
    pub(super) fn count(&self, user: &UserId, told: Option<&PaceTold>) -> Result<(), ApiError> {
        let Some((most, limiter)) = &self.0 else {
            return Ok(());
        };
        if limiter.len() > MAX_USERS {
            limiter.retain_recent();
        }
        let most = most.get();
        let counted = limiter.check_key(user);
        let left = counted
            .as_ref()
            .map_or(0, StateSnapshot::remaining_burst_capacity);
        if let Some(PaceTold(told)) = told {
            let _ = told.set(Left { most, left });
        }
        let Err(until) = counted else { return Ok(()) };
        instruments().limit_reached("requests", "user");
        let wait = until.wait_time_from(limiter.clock().now());
        let text = format!(
            "you sent {most} requests within a minute, as many as may be; wait a moment, or have the \
             operator raise `runtime.limits.requests_per_minute`"
        );
        Err(ApiError::new(Code::TooManyRequests, text).retry_after(wait))
    }
}

impl PaceTold {
    /// Adds the headers to the response, if the request was counted.
    pub(super) fn add_to<B>(&self, response: &mut Response<B>) {
        let Some(Left { most, left }) = self.0.get().copied() else {
            return;
        };
        let policy = format!("\"user\";q={most};w={WINDOW}");
        // The time until all are free again: they come back one by one.
        let spent = u64::from(most.saturating_sub(left));
        let reset = (spent * u64::from(WINDOW)).div_ceil(u64::from(most));
        let limit = format!("\"user\";r={left};t={reset}");
        for (name, text) in [(POLICY, policy), (LIMIT, limit)] {
            if let Ok(value) = HeaderValue::try_from(text) {
                response.headers_mut().insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use axum::http::Response;

    use super::{Pace, PaceTold};
    use crate::domain::UserId;

    #[test]
    fn a_user_is_told_how_many_requests_are_left() {
        let pace = Pace::new(NonZeroU32::new(2));
        let ask = |user| {
            let told = PaceTold::default();
            let counted = pace.count(&UserId::from_bits(user), Some(&told));
            let mut response = Response::new(());
            told.add_to(&mut response);
            let header = |name| response.headers()[name].to_str().unwrap().to_owned();
            (
                counted.is_ok(),
                header("ratelimit"),
                header("ratelimit-policy"),
            )
        };
        let policy = "\"user\";q=2;w=60".to_owned();
        assert_eq!(ask(1), (true, "\"user\";r=1;t=30".into(), policy.clone()));
        assert_eq!(ask(1), (true, "\"user\";r=0;t=60".into(), policy.clone()));
        assert_eq!(ask(1), (false, "\"user\";r=0;t=60".into(), policy));
        assert!(ask(2).0, "another user has their own");
        let told = PaceTold::default();
        assert!(
            Pace::new(None)
                .count(&UserId::from_bits(1), Some(&told))
                .is_ok()
        );
        let mut response = Response::new(());
        told.add_to(&mut response);
        assert!(response.headers().is_empty());
    }
}
