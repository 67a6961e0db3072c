//! Manages the connection to Redis: reconnects automatically, bounds every wait, and translates errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    Client, Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo as _, Pipeline, ProtocolVersion,
    RedisError, RedisResult,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::script::Script;
use crate::Error;
use crate::error::RedisTrouble;
use sepal_net as net;

/// The limit for an answer. An append that exceeds it is `Unknown`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// The limit while Redis is known to be unavailable, so that callers fail fast.
const AWAY_TIMEOUT: Duration = Duration::from_secs(1);
/// The limit for a round trip of the cluster bus. A later message is useless.
pub(super) const TRIP: Duration = Duration::from_secs(1);
/// The limit for one attempt to connect.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The shortest and the longest backoff between two attempts to connect.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// A peer that acknowledges no packet for this long counts as gone, for example after a network failure.
const PEER_TIMEOUT: Duration = Duration::from_secs(15);
/// The capacity reserved for the digits of a number, in bytes.
const NUMBER: usize = 20;
/// The most commands that may wait for the socket.
const QUEUE: usize = 1_024;

/// The address of Redis.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) client: Client,
    /// The address without user and password.
    pub(super) shown: String,
}

impl Address {
    /// Parses `redis://`, `rediss://` (TLS), `valkey://`, `valkeys://` or `unix://`.
    pub(super) fn parse(url: &SecretString) -> Result<Self, Error> {
        let text = url.expose_secret();
        let unusable = |reason| Error::Unusable {
            // The text may hold a password, so it must not be shown before it is parsed.
            path: "store.redis_url".into(),
            reason,
            source: None,
        };
        let parsed = redis::parse_redis_url(text)
            .ok_or_else(|| unusable("it is no address like `redis://host:6379/0`"))?;
        let has_several = parsed.host_str().is_some_and(|host| host.contains(','))
            || parsed.query_pairs().any(|(name, _)| name == "cluster");
        if has_several {
            return Err(unusable(NO_CLUSTER));
        }
        let scheme = parsed.scheme().to_owned();
        if matches!(scheme.as_str(), "rediss" | "valkeys") {
            net::install_tls();
        }
        let info = parsed
            .into_connection_info()
            .map_err(|_| unusable("it is no address like `redis://host:6379/0`"))?;
        let shown = format!("{scheme}://{}/{}", info.addr(), info.redis_settings().db());
        let redis = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let keepalive = TcpKeepalive::new()
            .with_time(PEER_TIMEOUT)
            .with_interval(PEER_TIMEOUT / 3);
        let tcp = TcpSettings::default()
            .set_nodelay(true)
            .set_keepalive(keepalive)
            .set_user_timeout(PEER_TIMEOUT);
        let info = info.set_redis_settings(redis).set_tcp_settings(tcp);
        let client = Client::open(info).map_err(|error| refused(&shown, REACH, &error))?;
        Ok(Self { client, shown })
    }
}

/// The reason for refusing several hosts.
pub(super) const NO_CLUSTER: &str = "Redis Cluster is not supported in this version; give the \
    address of one server, or one that follows its fail-over";
/// The problem of a server that does not answer.
pub(super) const REACH: &str = "it does not answer; start it, or mend `store.redis_url`";

/// Builds the error for a Redis that cannot be used.
pub(super) fn refused(address: &str, reason: &'static str, error: &RedisError) -> Error {
    Error::Unusable {
        path: address.into(),
        reason,
        // Keeps only the text, because the error's own source would repeat it.
        source: Some(Arc::new(std::io::Error::other(error.to_string()))),
    }
}

/// One multiplexed connection that is cheap to clone.
#[derive(Clone)]
pub(super) struct Link {
    manager: ConnectionManager,
    /// True if the last command was answered and the connection has not broken since.
    answers: Arc<AtomicBool>,
}

impl Link {
    /// Creates a connection that opens with the first command and reconnects for as long as the process
    /// lives.
    pub(super) fn new(address: &Address) -> Result<Self, Error> {
        let answers = Arc::new(AtomicBool::new(true));
        let told = Arc::clone(&answers);
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(usize::MAX)
            .set_min_delay(RECONNECT.0)
            .set_max_delay(RECONNECT.1)
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            // `bounded` sets the limit instead, so that it includes the wait for a connection.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE)
            .set_push_sender(move |push: redis::PushInfo| {
                if push.kind == redis::PushKind::Disconnection {
                    told.store(false, Ordering::Relaxed);
                }
                Ok::<(), std::convert::Infallible>(())
            });
        let manager = ConnectionManager::new_lazy_with_config(address.client.clone(), config)
            .map_err(|error| refused(&address.shown, REACH, &error))?;
        Ok(Self { manager, answers })
    }

    /// Runs one command.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        let mut manager = self.manager.clone();
        self.bounded(command.query_async(&mut manager)).await
    }

    /// Runs several independent commands in one round trip.
    pub(super) async fn query_all<T: FromRedisValue>(
        &self,
        commands: &Pipeline,
    ) -> Result<T, Error> {
        let mut manager = self.manager.clone();
        self.bounded(commands.query_async(&mut manager)).await
    }

    /// Runs one atomic script. If Redis does not have the script, as after a restart, sends its source.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        args: &[&[u8]],
    ) -> Result<T, Error> {
        let command = |name: &str, body: &str| {
            let sizes = keys.iter().map(|it| it.len());
            let sizes = sizes.chain(args.iter().map(|it| it.len()));
            let size = name.len() + body.len() + sizes.sum::<usize>() + NUMBER;
            let mut command = Cmd::with_capacity(keys.len() + args.len() + 3, size);
            command
                .arg(name)
                .arg(body)
                .arg(keys.len())
                .arg(keys)
                .arg(args);
            command
        };
        let mut manager = self.manager.clone();
        let step = async {
            let known = command("EVALSHA", &script.digest);
            match known.query_async(&mut manager).await {
                Err(error)
                    if error.kind() == ErrorKind::Server(redis::ServerErrorKind::NoScript) =>
                {
                    let told = command("EVAL", script.source);
                    told.query_async(&mut manager).await
                }
                answer => answer,
            }
        };
        self.bounded(step).await
    }

    async fn bounded<T>(&self, answer: impl Future<Output = RedisResult<T>>) -> Result<T, Error> {
        let limit = if self.answers.load(Ordering::Relaxed) {
            ANSWER_TIMEOUT
        } else {
            AWAY_TIMEOUT
        };
        let answer = tokio::time::timeout(limit, answer).await;
        let result = match answer {
            Ok(answer) => answer.map_err(translate),
            Err(_) => Err(Error::Redis {
                trouble: if limit == AWAY_TIMEOUT {
                    RedisTrouble::Away
                } else {
                    RedisTrouble::Silent
                },
                source: None,
            }),
        };
        let is_silent = matches!(
            &result,
            Err(Error::Redis {
                trouble: RedisTrouble::Away | RedisTrouble::Silent,
                ..
            })
        );
        self.answers.store(!is_silent, Ordering::Relaxed);
        result
    }
}

/// Error codes of a server for commands that may succeed later.
const NOT_READY: [&str; 7] = [
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MISCONF",
    "NOREPLICAS",
    "BUSY",
];

pub(super) fn translate(error: RedisError) -> Error {
    let trouble = match error.code() {
        Some("OOM") => RedisTrouble::Full,
        Some("READONLY") => RedisTrouble::ReadOnly,
        Some(code) if NOT_READY.contains(&code) => RedisTrouble::NotReady,
        Some("WRONGTYPE") => {
            return Error::corrupt("key in Redis", "another type than ours");
        }
        Some("CORRUPT") => {
            let detail = error.detail().unwrap_or("the journal has gaps");
            return Error::corrupt("journal in Redis", detail);
        }
        _ if error.kind() == ErrorKind::UnexpectedReturnType => {
            return Error::corrupt("value in Redis", error.to_string());
        }
        _ if error.is_timeout() => RedisTrouble::Silent,
        _ if error.is_io_error() || error.is_connection_dropped() => RedisTrouble::Away,
        _ => RedisTrouble::Refused,
    };
    Error::Redis {
        trouble,
        source: Some(Arc::new(error)),
    }
}

/// Awaits a command of the cluster bus for at most [`TRIP`].
pub(super) async fn punctual<T>(trip: impl Future<Output = RedisResult<T>>) -> Result<T, Error> {
    match tokio::time::timeout(TRIP, trip).await {
        Ok(answer) => answer.map_err(translate),
        Err(_) => Err(Error::Redis {
            trouble: RedisTrouble::Silent,
            source: None,
        }),
    }
}
