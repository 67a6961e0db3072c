//! Keeps a pool of warm sandboxes, which run before a session needs them.
//!
//! Docker can add neither a mount nor a label to an existing container, so a warm container already has its
//! own sandbox id and an empty volume of its own. It therefore cannot go to a session that has a sandbox: a
//! session without one takes the warm id ([`Pool::reserve`]), and the store records which session's sandbox
//! that is. Warm containers thus go only to sessions that call a tool, and the first call of an installation
//! triggers filling the pool.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{Access, ImageId, Launch, Program, Running};
use sepal_core::domain::SandboxId;

/// The time for which a reserved sandbox waits for its start.
const RESERVED_FOR: Duration = Duration::from_mins(1);

/// The pool. Never locked across an await.
#[derive(Debug)]
pub(super) struct Pool {
    size: usize,
    stock: Mutex<Stock>,
}

#[derive(Debug, Default)]
struct Stock {
    /// The launch of the last session; warm containers are started like it.
    template: Option<Launch>,
    /// The requested sandboxes; true if the start has begun.
    starting: BTreeMap<SandboxId, bool>,
    warm: Vec<Warm>,
    reserved: Vec<(Warm, Instant)>,
    is_closed: bool,
}

#[derive(Debug)]
struct Warm {
    launch: Launch,
    running: Running,
}

impl Pool {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            stock: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the launches to start now, after a session started `launch`; at most `room`. Each has to be
    /// returned through [`Pool::put`].
    pub(super) fn refill(&self, launch: &Launch, room: usize) -> Vec<Launch> {
        let mut stock = self.lock();
        if stock.is_closed || !is_ordinary(launch) {
            return Vec::new();
        }
        // A warm container of another launch would never be handed out.
        stock.warm.retain(|warm| is_alike(&warm.launch, launch));
        stock.template = Some(launch.clone());
        let there = stock.warm.len() + stock.starting.len();
        let missing = self.size.saturating_sub(there).min(room);
        let launches: Vec<Launch> = (0..missing)
            .map(|_| Launch {
                sandbox: SandboxId::from_bits(rand::random()),
                // No holder, until a session takes it.
                holder: None,
                ..launch.clone()
            })
            .collect();
        let ids = launches.iter().map(|launch| launch.sandbox.clone());
        stock.starting.extend(ids.map(|id| (id, false)));
        launches
    }

    /// Returns true if a launch of [`Pool::refill`] is still wanted; then its start counts as begun.
    pub(super) fn begin(&self, sandbox: &SandboxId) -> bool {
        let mut stock = self.lock();
        let is_wanted = !stock.is_closed;
        match stock.starting.get_mut(sandbox) {
            Some(has_begun) if is_wanted => {
                *has_begun = true;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Gives up an unreserved sandbox, and its program if it already runs. A sandbox that is just being
    /// started cannot be given up.
    pub(super) fn spare(&self) -> Option<(SandboxId, Option<Running>)> {
        let mut stock = self.lock();
        let waiting = stock.starting.iter().find(|(_, has_begun)| !**has_begun);
        if let Some(sandbox) = waiting.map(|(sandbox, _)| sandbox.clone()) {
            stock.starting.remove(&sandbox);
            return Some((sandbox, None));
        }
        let warm = stock.warm.pop()?;
        Some((warm.launch.sandbox, Some(warm.running)))
    }

    /// Adds a sandbox that [`Pool::refill`] requested; `running` is `None` if it did not start.
    pub(super) fn put(&self, launch: Launch, running: Option<Running>) {
        let mut stock = self.lock();
        stock.starting.remove(&launch.sandbox);
        let is_wanted = stock
            .template
            .as_ref()
            .is_some_and(|it| is_alike(it, &launch));
        if let Some(running) = running
            && is_wanted
            && !stock.is_closed
        {
            stock.warm.push(Warm { launch, running });
        }
    }

    /// Reserves a warm sandbox of this content, whose server has to be started within a minute.
    pub(super) fn reserve(&self, image: Option<&ImageId>) -> Option<SandboxId> {
        let mut stock = self.lock();
        // The engine may have been restarted.
        stock
            .warm
            .retain(|warm| !warm.running.life.has_ended() && warm.running.image.as_ref() == image);
        let warm = stock.warm.pop()?;
        let sandbox = warm.launch.sandbox.clone();
        stock.reserved.push((warm, Instant::now()));
        Some(sandbox)
    }

    /// Returns the running server of that launch and content, if it was reserved.
    pub(super) fn take(&self, launch: &Launch, image: Option<&ImageId>) -> Option<Running> {
        let mut stock = self.lock();
        let place = stock.reserved.iter().position(|(warm, _)| {
            warm.launch.sandbox == launch.sandbox
                && matches!(launch.program, Program::Bundled { .. })
        })?;
        let (warm, _) = stock.reserved.swap_remove(place);
        let fits = is_alike(&warm.launch, launch)
            && warm.running.image.as_ref() == image
            && !warm.running.life.has_ended();
        // A container that does not fit ends here; the start takes over its name.
        fits.then_some(warm.running)
    }

    /// Returns the sandboxes that no session has yet.
    pub(super) fn sandboxes(&self) -> BTreeSet<SandboxId> {
        let mut stock = self.lock();
        stock
            .reserved
            .retain(|(_, since)| since.elapsed() < RESERVED_FOR);
        stock.all()
    }

    /// Ends all warm containers, and returns the sandboxes whose volumes have to be removed.
    pub(super) fn close(&self) -> BTreeSet<SandboxId> {
        let mut stock = self.lock();
        stock.is_closed = true;
        // A reserved sandbox belongs to its session already.
        stock.reserved.clear();
        let all = stock.all();
        stock.warm.clear();
        all
    }
}

impl Stock {
    fn all(&self) -> BTreeSet<SandboxId> {
        let reserved = self.reserved.iter().map(|(warm, _)| warm);
        let warm = self.warm.iter().chain(reserved);
        let ids = warm.map(|warm| warm.launch.sandbox.clone());
        ids.chain(self.starting.keys().cloned()).collect()
    }
}

/// Returns true for a launch as most sessions start it, without anything specific to one session.
fn is_ordinary(launch: &Launch) -> bool {
    matches!(launch.program, Program::Bundled { .. })
        && launch.egress.is_none()
        && launch.environment.is_empty()
        && launch.workspace == Access::ReadWrite
        && launch.bounds.lifetime.is_none()
}

/// Returns true if one launch can replace the other, apart from the sandbox.
fn is_alike(one: &Launch, other: &Launch) -> bool {
    is_ordinary(one)
        && is_ordinary(other)
        && one.program == other.program
        && one.bounds == other.bounds
        && one.server == other.server
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::sync::{mpsc, watch};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{Bounds, Life, Packages, ProgramEnd};

    fn launch(number: u128) -> Launch {
        Launch {
            sandbox: SandboxId::from_bits(number),
            packages: Packages::None,
            holder: None,
            server: "files".to_owned(),
            program: Program::Bundled {
                command_timeout: Duration::from_secs(30),
                output_bytes: 1 << 20,
            },
            environment: BTreeMap::new(),
            workspace: Access::ReadWrite,
            egress: None,
            bounds: Bounds::default(),
        }
    }

    fn image(number: u8) -> ImageId {
        ImageId::new(format!("sha256:{number}"))
    }

    fn running() -> (
        Running,
        CancellationToken,
        watch::Sender<Option<ProgramEnd>>,
    ) {
        let killed = CancellationToken::new();
        let (ended, end) = watch::channel(None);
        let kill = killed.clone();
        let running = Running {
            stdin: Box::new(tokio::io::sink()),
            stdout: Box::new(tokio::io::empty()),
            stderr: mpsc::channel(1).1,
            image: Some(image(1)),
            life: Life::new(move || kill.cancel(), end),
        };
        (running, killed, ended)
    }

    #[test]
    fn nothing_is_warm_until_somebody_called_a_tool() {
        let pool = Pool::new(2);
        assert_eq!(pool.reserve(Some(&image(1))), None);
        let asked = pool.refill(&launch(1), 9);
        assert_eq!(asked.len(), 2);
        assert!(
            pool.refill(&launch(2), 9).is_empty(),
            "they are on their way"
        );
        assert_eq!(pool.sandboxes().len(), 2);
        for launch in asked {
            pool.put(launch, Some(running().0));
        }
        let sandbox = pool.reserve(Some(&image(1))).unwrap();
        let first = Launch {
            sandbox,
            ..launch(1)
        };
        assert!(pool.take(&first, Some(&image(1))).is_some());
        assert!(
            pool.take(&first, Some(&image(1))).is_none(),
            "one sandbox, one server"
        );
        assert_eq!(pool.refill(&first, 9).len(), 1);
    }

    #[test]
    fn what_is_different_or_dead_is_not_handed_out() {
        let pool = Pool::new(1);
        let warm = pool.refill(&launch(1), 9).remove(0);
        let (server, killed, _ended) = running();
        pool.put(warm, Some(server));
        let sandbox = pool.reserve(Some(&image(1))).unwrap();
        let other = Launch {
            sandbox,
            bounds: Bounds {
                processes: 1,
                ..Bounds::default()
            },
            ..launch(1)
        };
        assert!(pool.take(&other, Some(&image(1))).is_none());
        assert!(killed.is_cancelled(), "its name is needed");

        let warm = pool.refill(&launch(1), 9).remove(0);
        let (server, _killed, ended) = running();
        pool.put(warm, Some(server));
        ended.send_replace(Some(ProgramEnd::Lost));
        assert_eq!(pool.reserve(Some(&image(1))), None);
    }

    #[test]
    fn what_was_started_from_another_content_is_not_handed_out() {
        let pool = Pool::new(1);
        let begin = || {
            let warm = pool.refill(&launch(1), 9).remove(0);
            let (server, killed, ended) = running();
            pool.put(warm, Some(server));
            (killed, ended)
        };
        let (killed, _ended) = begin();
        assert_eq!(pool.reserve(Some(&image(2))), None);
        assert!(killed.is_cancelled());
        // The tag moves between reserving and taking.
        let (killed, _ended) = begin();
        let sandbox = pool.reserve(Some(&image(1))).unwrap();
        let first = Launch {
            sandbox,
            ..launch(1)
        };
        assert!(pool.take(&first, Some(&image(2))).is_none());
        assert!(killed.is_cancelled());
    }

    #[test]
    fn a_launch_of_its_own_warms_nothing() {
        let pool = Pool::new(2);
        let own = Launch {
            environment: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
            ..launch(1)
        };
        assert!(pool.refill(&own, 9).is_empty());
        assert!(Pool::new(0).refill(&launch(1), 9).is_empty());
    }

    #[test]
    fn a_closed_pool_ends_what_comes_late() {
        let pool = Pool::new(1);
        let late = pool.refill(&launch(1), 9).remove(0);
        assert_eq!(pool.close(), BTreeSet::from([late.sandbox.clone()]));
        let (server, killed, _ended) = running();
        pool.put(late, Some(server));
        assert!(killed.is_cancelled());
        assert!(pool.refill(&launch(1), 9).is_empty());
    }

    #[test]
    fn what_needs_the_room_gets_it() {
        let pool = Pool::new(3);
        assert!(pool.refill(&launch(1), 0).is_empty());
        let asked = pool.refill(&launch(1), 2);
        assert_eq!(asked.len(), 2);
        assert!(pool.begin(&asked[0].sandbox));
        assert_eq!(pool.spare().unwrap().0, asked[1].sandbox);
        assert!(!pool.begin(&asked[1].sandbox), "it was given up");
        assert!(pool.spare().is_none(), "it is being started");
        pool.put(asked[0].clone(), Some(running().0));
        let (sandbox, running) = pool.spare().unwrap();
        assert_eq!(sandbox, asked[0].sandbox);
        assert!(running.is_some());
        assert!(pool.sandboxes().is_empty());
    }
}
