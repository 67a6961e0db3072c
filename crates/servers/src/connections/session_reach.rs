//! Tracks the hosts that one session's own sandbox may reach beside those of the settings: hosts that rules
//! of the session allow to the commands that were shown with them.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::catalogue::entry::BUNDLED;
use sepal_core::domain::{
    AllowedHost, AllowedHosts, HostMatch, HostRefusal, McpNetwork, RefusedHost, Timestamp,
};
use sepal_core::session::Control;
use sepal_net::{Grant, Grants, Reach, Witness};
use sepal_store::clock::now;

/// The most refused hosts that a session is told of before it answers; a program can invent any number of
/// hosts.
const MAX_TOLD: usize = 32;
/// The most refusals that are kept for the results of calls; the latest remain.
const MAX_RECENT: usize = 32;

/// Tells the session of a refused host; returns false if the session could not be told.
type Report = Box<dyn Fn(HostRefusal) -> bool + Send + Sync>;

/// The network access of one session's sandbox on this gateway.
pub struct SessionReach {
    /// True if the settings name hosts for every session.
    has_hosts: bool,
    /// The hosts that people may allow for their own sessions.
    on_request: Arc<AllowedHosts>,
    /// The grants by which the proxy judges each connection.
    grants: Grants,
    /// True if the sandbox that was started last has a tunnel to the proxy.
    has_tunnel: AtomicBool,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    grants: Vec<Grant>,
    /// The refused hosts that the session was told of and has not answered.
    told: BTreeSet<(String, u16)>,
    recent: VecDeque<RefusedHost>,
    report: Option<Report>,
}

impl fmt::Debug for SessionReach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("SessionReach");
        shown.field("grants", &self.grants).finish_non_exhaustive()
    }
}

impl SessionReach {
    /// The access of a session that was allowed nothing yet. `network` holds the hosts that the settings
    /// allow to all sessions.
    pub fn new(network: &McpNetwork, on_request: Arc<AllowedHosts>) -> Self {
        Self {
            has_hosts: !network.hosts().is_empty(),
            on_request,
            grants: Grants::default(),
            has_tunnel: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Takes over the hosts that the session's journal allows now. A host applies to a running command only
    /// if the command was shown with it: what was shown is what runs.
    pub fn follow(&self, control: &Control) {
        let running = control.calls().filter(|call| call.is_executing());
        let facts = running.filter_map(|call| call.facts.as_ref());
        let own = facts.filter(|facts| facts.tool.server == BUNDLED);
        let shown: BTreeSet<&str> = own
            .flat_map(|facts| &facts.runs_in.hosts)
            .map(String::as_str)
            .collect();
        let mut grants = Vec::new();
        for given in control.rules.given() {
            let Some(network) = &given.rule.network else {
                continue;
            };
            let until = given.rule.until_ms;
            let until = until.map(|until| Timestamp(i64::try_from(until).unwrap_or(i64::MAX)));
            for host in &network.hosts {
                // Invalid hosts were refused when the rule was made.
                let Ok(host) = host.parse::<AllowedHost>() else {
                    continue;
                };
                let cover = self.on_request.cover(&host);
                if network.on_request && cover.is_none() {
                    continue;
                }
                grants.push(Grant {
                    // The operator's own entries may be at private addresses, as may those of
                    // `sandbox.network`.
                    reach: match cover {
                        Some(HostMatch::Exactly) => Reach::Private,
                        Some(HostMatch::Below) | None => Reach::Public,
                    },
                    until,
                    is_shown: shown.contains(host.to_string().as_str()),
                    host,
                });
            }
        }
        let mut state = self.state();
        let refused = &control.refused_hosts;
        state.told.retain(|told| refused.contains(told));
        state.grants.clone_from(&grants);
        drop(state);
        self.grants.replace(grants);
    }

    /// Returns the hosts that are allowed now; a new command is shown with them.
    pub fn hosts(&self) -> Vec<String> {
        let (now, mut hosts) = (now(), Vec::new());
        for grant in &self.state().grants {
            let host = grant.host.to_string();
            if grant.until.is_none_or(|until| now < until) && !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }

    /// Returns true if a sandbox that starts now needs a tunnel: some host can be reached or requested.
    pub fn needs_tunnel(&self) -> bool {
        self.has_hosts || !self.on_request.is_empty() || !self.hosts().is_empty()
    }

    /// Returns true if a tunnel is needed and the running sandbox has none, because it started before any
    /// host could be reached.
    pub fn lacks_tunnel(&self) -> bool {
        !self.has_tunnel.load(Ordering::Relaxed) && self.needs_tunnel()
    }

    /// Called at the start of a sandbox: returns the grants for its tunnel, or `None` if it needs no tunnel.
    pub(super) fn begin(&self) -> Option<Grants> {
        let needs = self.needs_tunnel();
        self.has_tunnel.store(needs, Ordering::Relaxed);
        needs.then(|| self.grants.clone())
    }

    /// Sets the function that tells the session of refused hosts from now on.
    pub fn report_to(&self, report: impl Fn(HostRefusal) -> bool + Send + Sync + 'static) {
        self.state().report = Some(Box::new(report));
    }

    /// Returns the recent refusals since then, for the model that reads the result of a command.
    pub fn refused_since(&self, since: Timestamp) -> Vec<RefusedHost> {
        let state = self.state();
        let recent = state.recent.iter().filter(|it| it.at >= since);
        recent.cloned().collect()
    }

    /// Makes the refusal that the session is told, with the host entry of a rule that would allow it, and
    /// whether people may allow that entry themselves.
    fn refusal(&self, refused: &RefusedHost) -> HostRefusal {
        let port = refused.port;
        let exactly = format!("{}:{port}", refused.host);
        let can_be_asked = |entry: &String| {
            let entry = entry.parse::<AllowedHost>();
            entry.is_ok_and(|entry| self.on_request.cover(&entry).is_some())
        };
        let entries = refused.entry.iter().cloned();
        let entries = entries.flat_map(|entry| [entry, exactly.clone()]);
        let asked = entries.into_iter().find(can_be_asked);
        HostRefusal {
            host: refused.host.clone(),
            port,
            on_request: asked.is_some(),
            entry: asked.or_else(|| refused.entry.clone()),
            reason: refused.reason.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for SessionReach {
    fn refused(&self, refused: &RefusedHost) {
        let key = (refused.host.clone(), refused.port);
        let mut state = self.state();
        state
            .recent
            .retain(|it| (&it.host, it.port) != (&key.0, key.1));
        if state.recent.len() >= MAX_RECENT {
            state.recent.pop_front();
        }
        state.recent.push_back(refused.clone());
        if state.told.len() >= MAX_TOLD || state.told.contains(&key) {
            return;
        }
        let report = state.report.as_ref();
        // A session that could not be told is told when the host is refused again.
        if report.is_some_and(|report| report(self.refusal(refused))) {
            state.told.insert(key);
        }
    }
}
