//! How many sandboxes may run at once, and for how long nobody may use one.
//!
//! Each started program counts, because each has the limits of its own. Where there is no room,
//! warm ones go first, then the one that lies idle longest; what somebody uses is never ended, so a
//! start waits a while and then fails.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::task::TaskTracker;
use tracing::info;

use super::{Error, Launch, Life, Limits, Network, Running, Runtime, running::Kill, usage::Usage};
use crate::domain::{SandboxId, SandboxKind};
use crate::telemetry::{Present, instruments};

/// How long a full house is looked at again at the latest: a warm sandbox comes up unseen.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What the operator decides.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Programs that run at once, warm ones included.
    pub max: usize,
    /// How long nobody may use one until it is ended.
    pub idle: Duration,
    /// How long a start waits for room.
    pub patience: Duration,
}

/// A runtime with so much room.
pub struct Capacity {
    inner: Arc<dyn Runtime>,
    room: Room,
    places: Arc<Places>,
    tasks: TaskTracker,
    /// Says in the figures that there is something to run in; none where there is not.
    _ready: Option<Present>,
}

/// What runs or starts. Locked before the pool of warm ones, and never across an await.
#[derive(Default)]
struct Places {
    taken: Mutex<BTreeMap<u64, Option<Guest>>>,
    /// Told when something ended or nobody uses it any more.
    freed: Arc<Notify>,
}

/// Something that runs.
#[derive(Clone)]
struct Guest {
    name: String,
    usage: Arc<Usage>,
    kill: Kill,
}

/// A taken place; dropping it gives it back.
struct Place {
    places: Arc<Places>,
    number: u64,
}

impl Capacity {
    /// Gives `inner` so much room.
    pub fn new(inner: Arc<dyn Runtime>, room: Room) -> Self {
        let is_ready = inner.kind() != SandboxKind::None;
        Self {
            _ready: is_ready.then(|| instruments().sandbox_ready()),
            inner,
            room,
            places: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// A place for a start of `sandbox`, made if need be.
    async fn take_place(&self, sandbox: &SandboxId) -> Result<Place, Error> {
        let deadline = Instant::now() + self.room.patience;
        loop {
            let freed = Arc::clone(&self.places.freed);
            let freed = freed.notified();
            if let Some(place) = self.try_take(sandbox) {
                return Ok(place);
            }
            if self.inner.spare().await || self.end_idlest().await {
                continue;
            }
            let now = Instant::now();
            if now >= deadline {
                return Err(Error::Full(self.room.max));
            }
            let _ = timeout_at(deadline.min(now + LOOK_AGAIN), freed).await;
        }
    }

    fn try_take(&self, sandbox: &SandboxId) -> Option<Place> {
        let mut taken = self.places.taken();
        // A warm one that the session reserved becomes the place.
        let warm = self.inner.warm();
        let warm = warm.iter().filter(|warm| *warm != sandbox).count();
        if taken.len() + warm >= self.room.max {
            return None;
        }
        let number = taken.last_key_value().map_or(0, |(last, _)| last + 1);
        taken.insert(number, None);
        Some(Place {
            places: Arc::clone(&self.places),
            number,
        })
    }

    /// Ends what nobody has used for the longest time; `false` if everything is in use.
    async fn end_idlest(&self) -> bool {
        let idlest = {
            let taken = self.places.taken();
            let guests = taken.values().flatten();
            let idle = guests.filter_map(|guest| Some((guest.usage.idle_since()?, guest)));
            idle.min_by_key(|(since, _)| *since)
                .map(|(since, guest)| (since, guest.clone()))
        };
        let Some((since, guest)) = idlest else {
            return false;
        };
        // Told before it is killed: its end may come at once.
        let freed = self.places.freed.notified();
        if guest.usage.give_up(since) {
            info!(sandbox.id = %guest.name, "Sandbox: ended, because another needs its room");
            (guest.kill)();
            let _ = tokio::time::timeout(self.room.patience, freed).await;
        }
        true
    }

    /// Counts a started program until it has ended.
    fn take_in(&self, place: Place, name: String, life: &mut Life) {
        let (usage, first) = Usage::begin(Arc::clone(&self.places.freed));
        let kill = life.count(Arc::clone(&usage), first);
        let guest = Guest { name, usage, kill };
        place
            .places
            .taken()
            .insert(place.number, Some(guest.clone()));
        let (ended, idle) = (life.ended(), self.room.idle);
        self.tasks.spawn(async move {
            let _place = place;
            tokio::select! {
                _ = ended => {}
                never = end_when_idle(&guest, idle) => match never {},
            }
        });
    }

    /// Starts warm ones where there is room left.
    fn warm_up_beside(&self, launch: &Launch) {
        let taken = self.places.taken();
        let left = self
            .room
            .max
            .saturating_sub(taken.len() + self.inner.warm().len());
        self.inner.warm_up(launch, left);
    }
}

/// Ends what nobody used for that long.
async fn end_when_idle(guest: &Guest, idle: Duration) -> std::convert::Infallible {
    loop {
        // While it is in use, its time is over at the end of that use and `idle` at the earliest.
        let wait = guest
            .usage
            .idle_since()
            .map_or(idle, |since| (since + idle).duration_since(Instant::now()));
        sleep(wait).await;
        if let Some(since) = guest.usage.idle_since()
            && since.elapsed() >= idle
            && guest.usage.give_up(since)
        {
            info!(sandbox.id = %guest.name, "Sandbox: ended, because nobody used it");
            (guest.kill)();
        }
    }
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Guest>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().remove(&self.number);
        self.places.freed.notify_waiters();
    }
}

#[async_trait]
impl Runtime for Capacity {
    fn kind(&self) -> SandboxKind {
        self.inner.kind()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn network(&self) -> Network {
        self.inner.network()
    }

    fn keeper(&self) -> String {
        self.inner.keeper()
    }

    fn lack(&self) -> Option<Error> {
        self.inner.lack()
    }

    fn container(&self, sandbox: &SandboxId) -> Option<String> {
        self.inner.container(sandbox)
    }

    fn reserve(&self) -> Option<SandboxId> {
        self.inner.reserve()
    }

    async fn start(&self, launch: Launch) -> Result<Running, Error> {
        let place = self.take_place(&launch.sandbox).await?;
        let mut running = self.inner.start(launch.clone()).await?;
        let name = format!("{}/{}", launch.sandbox, launch.server);
        self.take_in(place, name, &mut running.life);
        self.warm_up_beside(&launch);
        Ok(running)
    }

    async fn reap(&self) -> Result<usize, Error> {
        self.inner.reap().await
    }

    async fn tidy(&self) -> Result<usize, Error> {
        self.inner.tidy().await
    }

    async fn workspaces(&self) -> Result<Vec<SandboxId>, Error> {
        self.inner.workspaces().await
    }

    async fn remove_workspace(&self, sandbox: &SandboxId) -> Result<(), Error> {
        self.inner.remove_workspace(sandbox).await
    }

    async fn close(&self) {
        self.inner.close().await;
        self.tasks.close();
        self.tasks.wait().await;
    }
}
