//! How the servers are: from their real use, from tests, and from a light look at remote ones.

pub(super) mod health_history;
pub(super) mod probe_limits;
pub(super) mod probe_schedule;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::health_history::{HealthHistory, HealthStep};
use super::catalogue::entry::ServerEntry;
use crate::domain::{TenantId, Timestamp};

/// How a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It answered last time.
    Healthy,
    /// It did not.
    Unhealthy,
    /// It is being connected to again.
    Reconnecting,
    /// It went away while it was in use.
    Disconnected,
    /// It answers, and wants its people to connect to it.
    Unauthorized,
    /// It was not used yet.
    Unknown,
}

impl Status {
    /// Every state, in the order of the summary.
    pub const ALL: [Self; 6] = [
        Self::Healthy,
        Self::Unhealthy,
        Self::Reconnecting,
        Self::Disconnected,
        Self::Unauthorized,
        Self::Unknown,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::Reconnecting => "reconnecting",
            Self::Disconnected => "disconnected",
            Self::Unauthorized => "unauthorized",
            Self::Unknown => "unknown",
        }
    }
}

/// What is known of a server's health.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    pub status: Status,
    /// When somebody last looked or used it.
    pub last_check: Option<Timestamp>,
    /// When that last went well.
    pub last_success: Option<Timestamp>,
    /// How often in a row it did not.
    pub consecutive_failures: u32,
    /// How long the last answer took.
    pub latency_ms: Option<u64>,
    /// What went wrong last, without secrets.
    pub error: Option<String>,
}

impl Health {
    const UNKNOWN: Self = Self {
        status: Status::Unknown,
        last_check: None,
        last_success: None,
        consecutive_failures: 0,
        latency_ms: None,
        error: None,
    };
}

/// Whose experience it is: what one tenant saw of a shared server is not told to another.
type Key = (Option<TenantId>, String);

/// What is known of one server.
struct Page {
    health: Health,
    /// What was seen of it lately.
    day: HealthHistory,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            health: Health::UNKNOWN,
            day: HealthHistory::default(),
        }
    }
}

/// The health of all servers, as this gateway sees it.
#[derive(Default)]
pub(crate) struct HealthRecords(Mutex<HashMap<Key, Page>>);

/// What somebody saw.
pub(crate) enum Seen {
    /// It answered.
    Well(Duration),
    /// It did not, or not well.
    Badly(Status, String),
}

impl HealthRecords {
    fn all(&self) -> MutexGuard<'_, HashMap<Key, Page>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of it; the new state if it is another than before.
    pub(crate) fn note(
        &self,
        whose: Option<&TenantId>,
        name: &str,
        seen: Seen,
        now: Timestamp,
    ) -> Option<(Status, Option<String>)> {
        let mut all = self.all();
        let key = (whose.cloned(), name.to_owned());
        let page = all.entry(key).or_default();
        let health = &mut page.health;
        let before = (health.status, health.error.clone());
        health.last_check = Some(now);
        match seen {
            Seen::Well(took) => {
                page.day.count(true, now);
                health.status = Status::Healthy;
                health.last_success = Some(now);
                health.consecutive_failures = 0;
                health.latency_ms = u64::try_from(took.as_millis()).ok();
                health.error = None;
            }
            Seen::Badly(status, error) => {
                health.status = status;
                if status != Status::Reconnecting {
                    page.day.count(false, now);
                    health.consecutive_failures = health.consecutive_failures.saturating_add(1);
                }
                health.error = Some(error);
            }
        }
        let after = (health.status, health.error.clone());
        (before != after).then_some(after)
    }

    /// Takes over what another gateway saw; whether it is another state than before. How long the
    /// answer took, and how often it failed in a row, is known where it was seen.
    pub(crate) fn adopt(
        &self,
        (whose, name): (Option<&TenantId>, &str),
        (status, error): (Status, Option<String>),
        now: Timestamp,
    ) -> bool {
        let mut all = self.all();
        let key = (whose.cloned(), name.to_owned());
        let health = &mut all.entry(key).or_default().health;
        let is_news = (health.status, &health.error) != (status, &error);
        health.last_check = Some(now);
        if status == Status::Healthy {
            health.last_success = Some(now);
            health.consecutive_failures = 0;
        }
        (health.status, health.error) = (status, error);
        is_news
    }

    /// The newest that this tenant or the installation knows of a server.
    pub(crate) fn of(&self, tenant: &TenantId, entry: &ServerEntry) -> Health {
        let all = self.all();
        let of = |whose: Option<&TenantId>| {
            let page = all.get(&(whose.cloned(), entry.name.clone()));
            page.map(|page| &page.health)
        };
        let own = of(Some(tenant));
        let shared = entry.tenant().is_none().then(|| of(None)).flatten();
        let newest = own.into_iter().chain(shared);
        let newest = newest.max_by_key(|health| health.last_check.map_or(0, |at| at.0));
        newest.cloned().unwrap_or(Health::UNKNOWN)
    }

    /// What this tenant and the installation saw of a server in the last 24 hours.
    pub(crate) fn day_of(
        &self,
        tenant: &TenantId,
        entry: &ServerEntry,
        now: Timestamp,
    ) -> Vec<HealthStep> {
        let all = self.all();
        let of = |whose: Option<&TenantId>| {
            let page = all.get(&(whose.cloned(), entry.name.clone()));
            page.map(|page| page.day.clone()).unwrap_or_default()
        };
        let own = of(Some(tenant));
        let day = match entry.tenant() {
            None => own.joined(&of(None)),
            Some(_) => own,
        };
        day.steps(now)
    }

    /// Forgets a server that is gone.
    pub(crate) fn forget(&self, whose: Option<&TenantId>, server: &str) {
        self.all()
            .retain(|(of, name), _| name != server || (whose.is_some() && of.as_ref() != whose));
    }
}
