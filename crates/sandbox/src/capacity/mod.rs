//! Limits how many sandboxes run at once, and how long one may stay idle.
//!
//! Each started program counts, because each has its own limits; it counts for its user and tenant too. If
//! there is no room, warm sandboxes end first, then idle ones, of the holder with the most; a sandbox in use
//! is never ended, so a start waits a while and then fails. Of the waiting starts, the holder with the fewest
//! is next.

pub(super) mod fairness;

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

use self::fairness::{idlest, is_next};
use super::runtime::running::Kill;
use super::usage::Usage;
use super::{
    Access, CopyOrder, CopyResult, DiskMonitor, Error, Image, ImageId, Launch, Life, Limits,
    Network, Running, Runtime,
};
use sepal_core::domain::{
    EngineId, Holder, Ledger, Most, ReachedLimit, SandboxId, SandboxKind, ShareLevel,
};
use sepal_telemetry::{Present, instruments};

/// The longest interval between checks of a full machine: a warm sandbox starts without a notification.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The operator's limits.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// The most programs that run at once: in all, warm ones included, of one tenant and of one user.
    pub most: Most,
    /// The time for which a program may be idle until it is ended.
    pub idle: Duration,
    /// The time for which a start waits for room.
    pub patience: Duration,
}

/// A runtime with limited room.
pub struct Capacity {
    inner: Arc<dyn Runtime>,
    room: Room,
    /// The disk monitor: nothing that may write starts while the disk is nearly full.
    disk: DiskMonitor,
    places: Arc<Places>,
    tasks: TaskTracker,
    /// Reports in the metrics that a runtime is ready; `None` if there is none.
    _ready: Option<Present>,
}

/// The running and starting programs. Locked before the pool of warm sandboxes, and never across an await.
#[derive(Default)]
struct Places {
    occupancy: Mutex<Occupancy>,
    /// Notified when a program ended or became idle.
    freed: Arc<Notify>,
}

#[derive(Default)]
struct Occupancy {
    /// The taken places; the guest is `None` during the start.
    taken: BTreeMap<u64, (Option<Holder>, Option<Guest>)>,
    ledger: Ledger,
    /// Starts without a place, in the order of arrival.
    waiting: BTreeMap<u64, Option<Holder>>,
    /// The last number that was given to a place or a ticket.
    last: u64,
}

/// A running program.
#[derive(Clone)]
struct Guest {
    name: String,
    usage: Arc<Usage>,
    kill: Kill,
}

/// A taken place; dropping it frees the place.
struct Permit {
    places: Arc<Places>,
    number: u64,
}

/// A start that has no place yet.
struct Ticket<'a> {
    places: &'a Places,
    number: u64,
}

/// The reason that a start gets no place.
enum Obstacle {
    /// A limit is reached.
    Full(ReachedLimit),
    /// The free places belong to other waiting starts.
    NotNext,
}

impl Capacity {
    /// Wraps `inner` with these limits.
    pub fn new(inner: Arc<dyn Runtime>, room: Room, disk: DiskMonitor) -> Self {
        let is_ready = inner.kind() != SandboxKind::None;
        Self {
            _ready: is_ready.then(|| instruments().sandbox_ready()),
            inner,
            room,
            disk,
            places: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Takes a place for a start of `launch`, and makes room if needed.
    async fn take_place(&self, launch: &Launch) -> Result<Permit, Error> {
        let deadline = Instant::now() + self.room.patience;
        let ticket = Ticket::draw(&self.places, launch.holder.clone());
        loop {
            let freed = Arc::clone(&self.places.freed);
            let freed = freed.notified();
            let reached = match self.try_take(launch, &ticket) {
                Ok(place) => return Ok(place),
                Err(Obstacle::Full(reached)) => {
                    if self.make_room(launch.holder.as_ref(), reached.whose).await {
                        continue;
                    }
                    reached
                }
                Err(Obstacle::NotNext) => ReachedLimit {
                    whose: ShareLevel::All,
                    most: self.room.most.all.unwrap_or_default(),
                },
            };
            let now = Instant::now();
            if now >= deadline {
                instruments().limit_reached("sandboxes", reached.whose.as_str());
                return Err(Error::Full(reached));
            }
            let _ = timeout_at(deadline.min(now + LOOK_AGAIN), freed).await;
        }
    }

    fn try_take(&self, launch: &Launch, ticket: &Ticket<'_>) -> Result<Permit, Obstacle> {
        let mut occupancy = self.places.occupancy();
        let holder = launch.holder.as_ref();
        let most = self.most_beside_warm(&launch.sandbox);
        if let Err(reached) = occupancy.ledger.check(holder, 1, most) {
            // The operator's limit includes the warm sandboxes.
            let most = match reached.whose {
                ShareLevel::All => self.room.most.all.unwrap_or(reached.most),
                ShareLevel::User | ShareLevel::Tenant => reached.most,
            };
            return Err(Obstacle::Full(ReachedLimit { most, ..reached }));
        }
        let waiting = occupancy.waiting.iter();
        let waiting = waiting.map(|(number, holder)| (*number, holder.as_ref()));
        if !is_next(ticket.number, waiting, &occupancy.ledger, most) {
            return Err(Obstacle::NotNext);
        }
        occupancy.waiting.remove(&ticket.number);
        occupancy.ledger.add(holder, 1);
        let number = occupancy.number();
        occupancy
            .taken
            .insert(number, (launch.holder.clone(), None));
        Ok(Permit {
            places: Arc::clone(&self.places),
            number,
        })
    }

    /// Returns the limits without the places of warm sandboxes. A warm one that the session reserved becomes
    /// its place.
    fn most_beside_warm(&self, sandbox: &SandboxId) -> Most {
        let warm = self.inner.warm();
        let warm = warm.iter().filter(|warm| *warm != sandbox).count();
        let warm = u64::try_from(warm).unwrap_or(u64::MAX);
        let most = self.room.most;
        Most {
            all: most.all.map(|most| most.saturating_sub(warm)),
            ..most
        }
    }

    /// Ends an unused sandbox for a start of `holder` at that limit; `false` if there is none.
    async fn make_room(&self, holder: Option<&Holder>, whose: ShareLevel) -> bool {
        (whose == ShareLevel::All && self.inner.spare().await)
            || self.end_idlest(holder, whose).await
    }

    /// Ends the sandbox that has been idle longest, of the holder with the most; `false` if every candidate
    /// is in use.
    async fn end_idlest(&self, holder: Option<&Holder>, whose: ShareLevel) -> bool {
        let idlest = {
            let occupancy = self.places.occupancy();
            let guests = occupancy.taken.values().filter_map(|(holder, guest)| {
                let guest = guest.as_ref()?;
                Some((holder.as_ref(), guest.usage.idle_since()?, guest))
            });
            idlest(guests, holder, whose, &occupancy.ledger)
                .map(|(since, guest)| (since, guest.clone()))
        };
        let Some((since, guest)) = idlest else {
            return false;
        };
        // Subscribes before the kill: the end may come at once.
        let freed = self.places.freed.notified();
        if guest.usage.give_up(since) {
            info!(sandbox.id = %guest.name, "Sandbox: ended, because another needs its room");
            (guest.kill)();
            let _ = tokio::time::timeout(self.room.patience, freed).await;
        }
        true
    }

    /// Counts a started program until it has ended.
    fn take_in(&self, place: Permit, name: String, life: &mut Life) {
        let (usage, first) = Usage::begin(Arc::clone(&self.places.freed));
        let kill = life.count(Arc::clone(&usage), first);
        let guest = Guest { name, usage, kill };
        if let Some((_, running)) = place.places.occupancy().taken.get_mut(&place.number) {
            *running = Some(guest.clone());
        }
        let (ended, idle) = (life.ended(), self.room.idle);
        self.tasks.spawn(async move {
            let _place = place;
            tokio::select! {
                _ = ended => {}
                never = end_when_idle(&guest, idle) => match never {},
            }
        });
    }

    /// Starts warm sandboxes if there is room left.
    fn warm_up_beside(&self, launch: &Launch) {
        if self.disk.is_pressed() {
            return;
        }
        let occupancy = self.places.occupancy();
        let there = occupancy.taken.len() + self.inner.warm().len();
        let most = self.room.most.all.map(usize::try_from);
        let most = most.and_then(Result::ok).unwrap_or(usize::MAX);
        self.inner.warm_up(launch, most.saturating_sub(there));
    }
}

/// Ends a program that has been idle for that long.
async fn end_when_idle(guest: &Guest, idle: Duration) -> std::convert::Infallible {
    loop {
        // A program in use becomes idle at the end of that use, so it cannot be due before `idle` has passed.
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
    fn occupancy(&self) -> MutexGuard<'_, Occupancy> {
        self.occupancy
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Occupancy {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl<'a> Ticket<'a> {
    fn draw(places: &'a Places, holder: Option<Holder>) -> Self {
        let mut occupancy = places.occupancy();
        let number = occupancy.number();
        occupancy.waiting.insert(number, holder);
        Self { places, number }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        // A ticket that got a place is already removed; without a place, others may have waited for it.
        if self
            .places
            .occupancy()
            .waiting
            .remove(&self.number)
            .is_some()
        {
            self.places.freed.notify_waiters();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut occupancy = self.places.occupancy();
        if let Some((holder, _)) = occupancy.taken.remove(&self.number) {
            occupancy.ledger.remove(holder.as_ref(), 1);
        }
        drop(occupancy);
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

    fn engine(&self) -> EngineId {
        self.inner.engine()
    }

    fn lack(&self) -> Option<Error> {
        self.inner.lack()
    }

    fn container(&self, sandbox: &SandboxId) -> Option<String> {
        self.inner.container(sandbox)
    }

    fn image_id(&self, image: &Image) -> Option<ImageId> {
        self.inner.image_id(image)
    }

    async fn look_up_image(&self, image: &Image) -> Option<ImageId> {
        self.inner.look_up_image(image).await
    }

    fn reserve(&self) -> Option<SandboxId> {
        self.inner.reserve()
    }

    async fn start(&self, launch: Launch) -> Result<Running, Error> {
        if launch.workspace == Access::ReadWrite {
            self.disk.check()?;
        }
        let place = self.take_place(&launch).await?;
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

    async fn has_workspace(&self, sandbox: &SandboxId) -> Result<bool, Error> {
        self.inner.has_workspace(sandbox).await
    }

    async fn copy_workspace(&self, order: CopyOrder) -> Result<CopyResult, Error> {
        self.disk.check()?;
        self.inner.copy_workspace(order).await
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
