//! Implements the cluster bus over Redis: pub/sub on a separate connection, and a set of the gateways'
//! heartbeats, timed by the clock of Redis.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{FromRedisValue as _, PushInfo, PushKind};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::RedisSettings;
use super::ears::{Change, Ears};
use super::keys::{EVERYBODY, GATEWAYS, INSTALLATION, Keys, gateway, parse_wake};
use super::link::{Address as Server, CONNECT_TIMEOUT, REACH, TRIP, punctual, refused};
use super::script::SHOW;
use crate::Error;
use crate::live::cluster_bus::{
    Address, ClusterBus, News, PresenceSign, SessionUse, Site, new_gateway,
};
use sepal_core::domain::{GatewayId, SessionKey};

/// A gateway without a heartbeat for this long counts as gone.
const LIFE: Duration = Duration::from_secs(3);
/// The shortest and the longest backoff between two attempts to connect.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// The most sessions whose use is published in one round trip.
const SIGNS: usize = 500;
/// The capacity of this gateway's inbox. Further messages are lost, and [`News::Reconnected`] reports that.
const INBOX: usize = 8_192;

/// Adds a heartbeat and removes outdated ones. KEYS: the set of heartbeats. ARGV: this gateway, the lifetime
/// of a heartbeat in ms. Returns the gateways that are alive.
const BEAT: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
return redis.call('ZRANGE', KEYS[1], 0, -1)
";

/// Adds a gateway. KEYS: the set of heartbeats, the hash that names what all gateways on it have in common. ARGV:
/// this gateway, the lifetime of a heartbeat in ms, records. Returns 1 if the gateway was added, and 0 if a living
/// one has other records.
const JOIN: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
local known = redis.call('HGET', KEYS[2], 'records')
if redis.call('ZCARD', KEYS[1]) > 0 and known and known ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[2], 'records', ARGV[3])
redis.call('ZADD', KEYS[1], now, ARGV[1])
return 1
";
const OTHER_RECORDS: &str = "another gateway on this Redis keeps its records elsewhere; give all of \
    them the same PostgreSQL (`store.database_url`), or each a Redis of its own";

/// The bus connection of one gateway over one Redis.
pub(crate) struct RedisBus {
    gateway: GatewayId,
    /// The address of Redis, without credentials.
    address: String,
    manager: ConnectionManager,
    inbox: Mutex<mpsc::Receiver<News>>,
    post: mpsc::Sender<News>,
    lost: Arc<LinkFlags>,
    changes: mpsc::UnboundedSender<Change>,
}

/// Flags set by the connection's own task.
#[derive(Default)]
struct LinkFlags {
    /// The connection broke and has not been confirmed since.
    is_down: AtomicBool,
    is_behind: AtomicBool,
}

impl RedisBus {
    /// Opens the bus of a new gateway.
    pub(crate) fn open(
        settings: &RedisSettings,
        tasks: &TaskTracker,
        shutdown: CancellationToken,
    ) -> Result<Self, Error> {
        let server = Server::parse(&settings.url)?;
        let (post, inbox) = mpsc::channel(INBOX);
        let lost = Arc::new(LinkFlags::default());
        let (told, pushed) = (Arc::clone(&lost), post.clone());
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(usize::MAX)
            .set_min_delay(RECONNECT.0)
            .set_max_delay(RECONNECT.1)
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(None)
            .set_automatic_resubscription()
            .set_push_sender(move |push: PushInfo| {
                take(&push, &pushed, &told);
                Ok::<(), Infallible>(())
            });
        let manager = ConnectionManager::new_lazy_with_config(server.client.clone(), config)
            .map_err(|error| refused(&server.shown, REACH, &error))?;
        let (changes, queue) = mpsc::unbounded_channel();
        let own = new_gateway();
        let _ = changes.send(Change::Begin);
        let ears = Ears::new(manager.clone(), own.clone());
        let (told, behind) = (post.clone(), Arc::clone(&lost));
        let listening = ears.listen(queue, move || tell_reconnected(&told, &behind));
        tasks.spawn(async move { shutdown.run_until_cancelled(listening).await });
        Ok(Self {
            gateway: own,
            address: server.shown,
            manager,
            inbox: Mutex::new(inbox),
            post,
            lost,
            changes,
        })
    }

    /// Registers this gateway. Returns false if a living gateway has other records.
    async fn try_join(&self, records: &str) -> Result<bool, Error> {
        let mut join = redis::cmd("EVAL");
        join.arg(JOIN).arg(2).arg(GATEWAYS).arg(INSTALLATION);
        join.arg(self.gateway.as_str()).arg(life_ms());
        join.arg(records);
        let mut manager = self.manager.clone();
        punctual(join.query_async(&mut manager)).await
    }

    fn lost_something(&self) -> bool {
        self.lost.is_behind.swap(false, Ordering::AcqRel)
    }
}

#[async_trait]
impl ClusterBus for RedisBus {
    fn gateway(&self) -> &GatewayId {
        &self.gateway
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn join(&self, records: &str) -> Result<(), Error> {
        let until = Instant::now() + LIFE + TRIP;
        loop {
            if self.try_join(records).await? {
                return Ok(());
            }
            // The living gateway may be the previous run of this program, which crashed.
            if Instant::now() >= until {
                return Err(Error::Unusable {
                    path: self.address.clone().into(),
                    reason: OTHER_RECORDS,
                    source: None,
                });
            }
            tokio::time::sleep(LIFE / 6).await;
        }
    }

    async fn publish(&self, messages: Vec<(Address, Bytes)>) {
        let mut trip = redis::pipe();
        for (to, payload) in &messages {
            let channel = match to {
                Address::Session(key) => Keys::of(key).wake,
                Address::Gateway(one) => gateway(one),
                Address::Everybody => EVERYBODY.to_owned(),
            };
            trip.cmd("PUBLISH").arg(channel).arg(&payload[..]).ignore();
        }
        let mut manager = self.manager.clone();
        if let Err(error) = punctual(trip.exec_async(&mut manager)).await {
            tracing::debug!(
                ?error,
                messages = messages.len(),
                "Other gateways were not told"
            );
        }
    }

    fn has_company(&self, has: bool) {
        let _ = self.changes.send(Change::Company(has));
    }

    async fn follow(&self, key: &SessionKey) -> Result<(), Error> {
        let (reply, done) = oneshot::channel();
        let _ = self.changes.send(Change::Follow(key.clone(), reply));
        done.await.unwrap_or(Err(Error::NoAnswer))
    }

    fn unfollow(&self, key: &SessionKey) {
        // An error means that the process is ending.
        let _ = self.changes.send(Change::Unfollow(key.clone()));
    }

    async fn next(&self) -> News {
        let mut inbox = self.inbox.lock().await;
        if inbox.is_empty() && self.lost_something() {
            return News::Reconnected;
        }
        match inbox.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    async fn beat(&self) -> Result<BTreeSet<GatewayId>, Error> {
        let was_down = self.lost.is_down.swap(false, Ordering::AcqRel);
        let mut beat = redis::cmd("EVAL");
        beat.arg(BEAT)
            .arg(1)
            .arg(GATEWAYS)
            .arg(self.gateway.as_str());
        beat.arg(life_ms());
        let mut manager = self.manager.clone();
        let alive = punctual(beat.query_async::<BTreeSet<String>>(&mut manager)).await;
        if was_down {
            match &alive {
                // Redis answers again and the subscriptions were renewed first.
                Ok(_) => {
                    let _ = self.changes.send(Change::Begin);
                    tell_reconnected(&self.post, &self.lost);
                }
                Err(_) => self.lost.is_down.store(true, Ordering::Release),
            }
        }
        Ok(alive?.into_iter().map(GatewayId::from).collect())
    }

    async fn show(&self, signs: &[PresenceSign]) -> Result<(), Error> {
        for signs in signs.chunks(SIGNS) {
            let mut trip = redis::pipe();
            // A restarted Redis does not have the script.
            trip.cmd("SCRIPT").arg("LOAD").arg(SHOW.source).ignore();
            for sign in signs {
                add_sign(&mut trip, &self.gateway, sign);
            }
            let mut manager = self.manager.clone();
            punctual(trip.exec_async(&mut manager)).await?;
        }
        Ok(())
    }

    async fn leave(&self) {
        let mut leave = redis::cmd("ZREM");
        leave.arg(GATEWAYS).arg(self.gateway.as_str());
        let mut manager = self.manager.clone();
        if let Err(error) = punctual(leave.exec_async(&mut manager)).await {
            tracing::debug!(
                ?error,
                "The others find out by themselves that this gateway is over"
            );
        }
    }
}

/// Adds the publication of one session's use to a pipeline.
fn add_sign(trip: &mut redis::Pipeline, gateway: &GatewayId, sign: &PresenceSign) {
    let keys = Keys::of(&sign.key);
    let nowhere = Site::default();
    let (is_in, site) = match &sign.is_in {
        SessionUse::Owner(site) => ("owner", site),
        SessionUse::Guest => ("guest", &nowhere),
        SessionUse::Left => ("left", &nowhere),
    };
    let files = site.files.as_ref();
    trip.cmd("EVALSHA").arg(&SHOW.digest).arg(2);
    trip.arg(keys.session).arg(keys.journal);
    trip.arg(gateway.as_str()).arg(is_in);
    trip.arg(files.map_or("", |(engine, _)| engine.as_str()));
    trip.arg(files.map_or("", |(_, sandbox)| sandbox.as_str()));
    trip.arg(site.container.as_deref().unwrap_or_default());
    trip.ignore();
}

fn life_ms() -> u64 {
    u64::try_from(LIFE.as_millis()).unwrap_or(u64::MAX)
}

/// Puts a message into the inbox. Runs on the connection's own task, so it must not block.
fn take(push: &PushInfo, post: &mpsc::Sender<News>, lost: &LinkFlags) {
    if push.kind == PushKind::Disconnection {
        lost.is_down.store(true, Ordering::Release);
        return;
    }
    if push.kind != PushKind::Message {
        return;
    }
    let [channel, payload, ..] = &push.data[..] else {
        return;
    };
    let Ok(channel) = String::from_redis_value_ref(channel) else {
        return;
    };
    let to = match parse_wake(&channel) {
        Some(key) => Address::Session(key),
        None if channel == EVERYBODY => Address::Everybody,
        None => Address::Gateway(channel.rsplit(':').next().unwrap_or_default().into()),
    };
    let Ok(payload) = Vec::<u8>::from_redis_value_ref(payload) else {
        return;
    };
    let payload = payload.into();
    if post.try_send(News::Message { to, payload }).is_err() {
        lost.is_behind.store(true, Ordering::Release);
    }
}

/// Reports that messages may have been lost.
fn tell_reconnected(post: &mpsc::Sender<News>, lost: &LinkFlags) {
    if post.try_send(News::Reconnected).is_err() {
        lost.is_behind.store(true, Ordering::Release);
    }
}
