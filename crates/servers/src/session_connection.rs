//! A session's connection to one server: opened at the first call and reopened after it broke, with growing
//! pauses between failed attempts.

use std::ops::Deref;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::catalogue::entry::ServerEntry;
use super::connections::opening::{Failure, Opened};
use super::connections::session_reach::SessionReach;
use super::offers;
use super::registry::Servers;
use super::try_out::open_for;
use sepal_core::domain::{Holder, SandboxId};
use sepal_llm::RetryConfig;
use sepal_sandbox::Using;

/// A session's connection to a server.
#[derive(Default)]
pub struct SessionConnection {
    /// Held while a server starts, so that concurrent calls share one connection.
    state: Mutex<State>,
    /// The open connection, for readers who cannot wait for `state`. Never held across an await.
    open: std::sync::Mutex<Weak<Opened>>,
}

/// An open connection in use: while this exists, the sandbox does not count as idle.
pub struct LiveConnection {
    opened: Arc<Opened>,
    _using: Using,
}

impl Deref for LiveConnection {
    type Target = Arc<Opened>;

    fn deref(&self) -> &Arc<Opened> {
        &self.opened
    }
}

#[derive(Default)]
struct State {
    /// The connection, with the entry that it was opened for.
    opened: Option<(ServerEntry, Arc<Opened>)>,
    /// The number of consecutive failed attempts, and the time of the last one.
    failed: Option<(u32, Instant)>,
}

impl State {
    fn is_open(&self) -> bool {
        let opened = self.opened.as_ref();
        opened.is_some_and(|(_, opened)| !opened.connection.is_closed())
    }
}

impl SessionConnection {
    /// Returns the open connection, and opens it first if needed. Cancel-safe: dropping the future ends a
    /// server that was being started.
    pub async fn connect(
        &self,
        entry: &ServerEntry,
        servers: &Servers,
        holder: &Holder,
        sandbox: &SandboxId,
        reach: Option<&Arc<SessionReach>>,
    ) -> Result<LiveConnection, Failure> {
        let tenant = &holder.tenant;
        let mut state = self.state.lock().await;
        if let Some((of, opened)) = &state.opened
            && of.connects_like(entry)
            && !needs_anew(opened, reach)
            && !opened.connection.is_closed()
            && let Some(using) = opened.hold()
        {
            return Ok(LiveConnection {
                opened: Arc::clone(opened),
                _using: using,
            });
        }
        if let Some((_, old)) = state.opened.take() {
            old.kill().await;
        }
        let retry = servers.retry();
        let mut attempts = 0;
        loop {
            attempts += 1;
            if let Some((failures, at)) = state.failed {
                servers.reconnecting(entry, tenant);
                tokio::time::sleep_until(at + pause(&retry, failures)).await;
            }
            // Boxed: each call comes by here, but few of them open a connection.
            let opened = Box::pin(open_for(servers, entry, (holder, sandbox), reach)).await;
            match opened {
                Ok(opened) => {
                    let opened = Arc::new(opened);
                    servers.follow(entry, &opened);
                    offers::follow(servers, entry, &opened);
                    servers.0.running.note(tenant, &entry.name, &opened);
                    let using = opened.hold().unwrap_or_default();
                    self.note(&opened);
                    state.opened = Some((entry.clone(), Arc::clone(&opened)));
                    state.failed = None;
                    return Ok(LiveConnection {
                        opened,
                        _using: using,
                    });
                }
                Err(failure) => {
                    let failures = state.failed.map_or(0, |(failures, _)| failures);
                    state.failed = Some((failures.saturating_add(1), Instant::now()));
                    // A permanent failure would only repeat; the next call tries again.
                    if !failure.is_transient || attempts > retry.max_retries {
                        return Err(failure);
                    }
                }
            }
        }
    }

    /// Returns the connection if it is open.
    pub fn opened(&self) -> Option<Arc<Opened>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = open.upgrade();
        opened.filter(|opened| !opened.connection.is_closed())
    }

    /// Returns the connection as in use, if it is open. Starts nothing, and waits for no start.
    pub fn live(&self) -> Option<LiveConnection> {
        let opened = self.opened()?;
        let using = opened.hold()?;
        Some(LiveConnection {
            opened,
            _using: using,
        })
    }

    fn note(&self, opened: &Arc<Opened>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        *open = Arc::downgrade(opened);
    }

    /// Returns true if the server runs or is being started.
    pub fn is_live(&self) -> bool {
        self.state.try_lock().map_or(true, |state| state.is_open())
    }

    /// Ends `ended`, and forgets it if it is still the open connection. A call that ends late (its gateway
    /// was frozen, say) must not end a connection that a later call has opened since.
    pub async fn let_go(&self, ended: &Arc<Opened>) {
        let mut state = self.state.lock().await;
        let is_it = |(_, opened): &(ServerEntry, Arc<Opened>)| Arc::ptr_eq(opened, ended);
        if state.opened.as_ref().is_some_and(is_it) {
            state.opened = None;
        }
        drop(state);
        ended.kill().await;
    }

    /// Ends the connection.
    pub async fn close(&self) {
        let opened = self.state.lock().await.opened.take();
        if let Some((_, opened)) = opened {
            opened.kill().await;
        }
    }
}

/// Returns true if the session's own sandbox must be restarted, because it started before the session could
/// reach any host. A sandbox in which a command runs is left alone; the next command restarts it.
fn needs_anew(opened: &Opened, reach: Option<&Arc<SessionReach>>) -> bool {
    reach.is_some_and(|reach| reach.lacks_tunnel()) && opened.is_unused()
}

/// The pause before the next attempt: exponential backoff with a limit (S0.47).
fn pause(retry: &RetryConfig, failures: u32) -> Duration {
    let factor = retry.backoff_multiplier.max(1.0);
    let exponent = i32::try_from(failures.saturating_sub(1).min(64)).unwrap_or(64);
    let seconds = retry.initial_backoff.as_secs_f32() * factor.powi(exponent);
    let most = retry.max_backoff;
    Duration::try_from_secs_f32(seconds).map_or(most, |pause| pause.min(most))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::pause;
    use sepal_llm::RetryConfig;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let retry = RetryConfig::default();
        let seconds = |failures| pause(&retry, failures).as_secs();
        assert_eq!([1, 2, 3, 4].map(seconds), [1, 2, 4, 8]);
        assert_eq!(pause(&retry, 60), Duration::from_secs(30));
        assert_eq!(pause(&retry, u32::MAX), Duration::from_secs(30));
    }
}
