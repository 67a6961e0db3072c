//! Hosts that a program may reach beside its list, granted and revoked while it runs.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{Reach, now};
use sepal_core::domain::{AllowedHost, HostMatch, Timestamp};

/// A granted host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub host: AllowedHost,
    /// Tells whether the host, listed by its exact name, may have a private address.
    pub reach: Reach,
    /// The end of the grant; `None` = until it is revoked.
    pub until: Option<Timestamp>,
    /// True if the running command was shown with this grant; otherwise the command may not use it.
    pub is_shown: bool,
}

/// The current grants. Clones share one list; each connection is checked against the current list.
#[derive(Debug, Clone)]
pub struct Grants(Arc<watch::Sender<Arc<[Grant]>>>);

/// The result of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantLookup {
    Yes(HostMatch, Reach),
    /// The host is granted, but the running command was shown without the grant.
    Unshown,
    No,
}

impl Default for Grants {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Arc::default())))
    }
}

impl Grants {
    /// Replaces the grants. Connections that no grant allows any longer are closed.
    pub fn replace(&self, grants: Vec<Grant>) {
        self.0.send_if_modified(|known| {
            let is_other = **known != *grants;
            if is_other {
                *known = grants.into();
            }
            is_other
        });
    }

    /// The hosts that can be reached now, in the form of list entries.
    pub fn hosts(&self) -> Vec<String> {
        let now = now();
        let grants = self.grants();
        let given = grants.iter().filter(|grant| grant.is_now(now));
        given
            .filter(|grant| grant.is_shown)
            .map(|grant| grant.host.to_string())
            .collect()
    }

    /// The grant of a host, by its canonical name.
    pub(super) fn find(&self, host: &str, port: u16) -> GrantLookup {
        let now = now();
        let mut found = GrantLookup::No;
        for grant in self.grants().iter().filter(|grant| grant.is_now(now)) {
            let Some(listed) = grant.host.finds(host, port) else {
                continue;
            };
            let is_free = listed == HostMatch::Exactly && grant.reach == Reach::Private;
            found = match found {
                // No other grant can allow more.
                _ if grant.is_shown && is_free => return GrantLookup::Yes(listed, grant.reach),
                _ if grant.is_shown => GrantLookup::Yes(listed, grant.reach),
                GrantLookup::No => GrantLookup::Unshown,
                GrantLookup::Yes(..) | GrantLookup::Unshown => found,
            };
        }
        found
    }

    /// Returns true if connections to a host, by its canonical name, may carry any protocol now.
    pub(super) fn is_raw(&self, host: &str, port: u16) -> bool {
        let now = now();
        self.grants().iter().any(|grant| {
            let is_given = grant.is_now(now) && grant.is_shown && grant.host.is_raw();
            is_given && grant.host.finds(host, port).is_some()
        })
    }

    /// Returns once the host is no longer granted: the grant was revoked or expired.
    pub(super) async fn withdrawn(&self, host: &str, port: u16) {
        let mut changes = self.0.subscribe();
        loop {
            changes.mark_unchanged();
            if !matches!(self.find(host, port), GrantLookup::Yes(..)) {
                return;
            }
            tokio::select! {
                // `self` keeps the sender alive, so this cannot fail.
                _ = changes.changed() => {}
                () = self.next_end() => {}
            }
        }
    }

    /// Returns when the next grant expires.
    async fn next_end(&self) {
        let now = now();
        let ends: Vec<_> = self.grants().iter().filter_map(|it| it.until).collect();
        match ends.into_iter().filter(|until| *until > now).min() {
            Some(until) => tokio::time::sleep(Duration::from_millis(until.since_ms(now))).await,
            None => pending().await,
        }
    }

    fn grants(&self) -> Arc<[Grant]> {
        Arc::clone(&self.0.borrow())
    }
}

impl Grant {
    fn is_now(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Grant, GrantLookup, Grants};
    use crate::Reach;
    use crate::egress::now;
    use sepal_core::domain::{HostMatch, Timestamp};

    fn grant(host: &str) -> Grant {
        Grant {
            host: host.parse().unwrap(),
            reach: Reach::Public,
            until: None,
            is_shown: true,
        }
    }

    #[test]
    fn only_what_is_given_now_and_was_shown_is_reached() {
        let grants = Grants::default();
        let check = |host: &str, expected| assert_eq!(grants.find(host, 443), expected);
        check("a.example", GrantLookup::No);
        let over = Grant {
            until: Some(Timestamp(1)),
            ..grant("over.example")
        };
        let unshown = Grant {
            is_shown: false,
            ..grant("late.example")
        };
        let near = Grant {
            reach: Reach::Private,
            ..grant("near.b.example")
        };
        let wide = grant("*.b.example");
        grants.replace(vec![grant("a.example"), over, unshown, wide, near]);
        let public = |listed| GrantLookup::Yes(listed, Reach::Public);
        check("a.example", public(HostMatch::Exactly));
        check("over.example", GrantLookup::No);
        check("late.example", GrantLookup::Unshown);
        check("c.b.example", public(HostMatch::Below));
        let private = GrantLookup::Yes(HostMatch::Exactly, Reach::Private);
        check("near.b.example", private);
        let hosts = ["a.example", "*.b.example", "near.b.example"];
        assert_eq!(grants.hosts(), hosts);
        grants.replace(Vec::new());
        check("a.example", GrantLookup::No);
    }

    #[tokio::test]
    async fn what_is_taken_back_or_over_is_told_to_open_connections() {
        let grants = Grants::default();
        let soon = Grant {
            until: Some(Timestamp(now().0 + 50)),
            ..grant("soon.example")
        };
        grants.replace(vec![grant("a.example"), soon]);
        let deadline = Duration::from_secs(30);
        let ending = grants.withdrawn("soon.example", 443);
        tokio::time::timeout(deadline, ending).await.unwrap();
        let watching = tokio::time::timeout(deadline, grants.withdrawn("a.example", 443));
        let taking_back = async { grants.replace(vec![grant("b.example")]) };
        tokio::join!(watching, taking_back).0.unwrap();
    }
}
