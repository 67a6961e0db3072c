//! Tracks the health of servers from their real use, from tests, and from light probes of remote servers.

pub(super) mod health_history;
pub(super) mod probe_limits;
pub(super) mod probe_schedule;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::health_history::HealthHistory;
pub use self::health_history::HealthStep;
use super::catalogue::entry::ServerEntry;
use sepal_core::domain::{TenantId, Timestamp};

/// The health status of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The last check or use succeeded.
    Healthy,
    /// The last check or use failed.
    Unhealthy,
    /// A session is reconnecting to it.
    Reconnecting,
    /// It disconnected while it was in use.
    Disconnected,
    /// It answers, and requires people to connect to it.
    Unauthorized,
    /// It was neither checked nor used yet.
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

/// The health of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    pub status: Status,
    /// When it was last checked or used.
    pub last_check: Option<Timestamp>,
    /// When a check or use last succeeded.
    pub last_success: Option<Timestamp>,
    /// The number of consecutive failures.
    pub consecutive_failures: u32,
    /// The latency of the last answer.
    pub latency_ms: Option<u64>,
    /// The last error, without secrets.
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

/// The tenant that made the observation, and the server: one tenant's observations of a shared server are not
/// shown to another.
type Key = (Option<TenantId>, String);

/// The records about one server.
struct Page {
    health: Health,
    /// The checks of the last 24 hours.
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

/// The result of a check or use.
pub enum Seen {
    /// The server answered, after this time.
    Well(Duration),
    /// The server did not answer, or answered badly.
    Badly(Status, String),
}

impl HealthRecords {
    fn all(&self) -> MutexGuard<'_, HashMap<Key, Page>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a result; returns the new status and error if they have changed.
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

    /// Takes over the observation of another gateway; returns true if the status or the error has changed.
    /// Latency and the count of failures stay known only where they were observed.
    pub(crate) fn adopt(
        &self,
        whose: Option<&TenantId>,
        name: &str,
        status: Status,
        error: Option<String>,
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

    /// Returns the latest health of a server that this tenant observed, or the installation in the case of a
    /// shared server.
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

    /// Returns the checks of the last 24 hours by this tenant, and those by the installation in the case of a
    /// shared server.
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

    /// Forgets a removed server.
    pub(crate) fn forget(&self, whose: Option<&TenantId>, server: &str) {
        self.all()
            .retain(|(of, name), _| name != server || (whose.is_some() && of.as_ref() != whose));
    }
}
