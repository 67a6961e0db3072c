//! The connection: opened again by itself, bounded in time, its errors in our words.

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
use crate::net;
use crate::store::Error;
use crate::store::error::RedisTrouble;

/// After this an append counts as `Unknown`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// The same while Redis is known to be away: nobody waits long for each refusal.
const AWAY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a trip between gateways may take. What is late is worth nothing.
pub(super) const TRIP: Duration = Duration::from_secs(1);
/// How long one attempt to connect may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Pauses between two attempts grow from the first to the second.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// After this a peer that acknowledges nothing counts as gone (a cable, a machine).
const PEER_TIMEOUT: Duration = Duration::from_secs(15);
/// Room for a number.
const NUMBER: usize = 20;
/// Commands that may wait for the socket.
const QUEUE: usize = 1_024;

/// Where Redis is.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) client: Client,
    /// Without user and password.
    pub(super) shown: String,
}

impl Address {
    /// Reads `redis://`, `rediss://` (TLS), `valkey://`, `valkeys://` or `unix://`.
    pub(super) fn parse(url: &SecretString) -> Result<Self, Error> {
        let text = url.expose_secret();
        let unusable = |reason| Error::Unusable {
            // The text may hold a password, so it is not shown before it is understood.
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

/// Why several hosts are refused.
pub(super) const NO_CLUSTER: &str = "Redis Cluster is not supported in this version; give the \
    address of one server, or one that follows its fail-over";
/// What is wrong with a server that cannot be asked.
pub(super) const REACH: &str = "it does not answer; start it, or mend `store.redis_url`";

/// A Redis that must not be used.
pub(super) fn refused(address: &str, reason: &'static str, error: &RedisError) -> Error {
    Error::Unusable {
        path: address.into(),
        reason,
        // Only its text: its own cause says the same again.
        source: Some(Arc::new(std::io::Error::other(error.to_string()))),
    }
}

/// One multiplexed connection. Cheap to clone.
#[derive(Clone)]
pub(super) struct Link {
    manager: ConnectionManager,
    /// Whether the last command was answered and the connection stood since.
    answers: Arc<AtomicBool>,
}

impl Link {
    /// Connects with the first command, and again for as long as the process lives.
    pub(super) fn new(address: &Address) -> Result<Self, Error> {
        let answers = Arc::new(AtomicBool::new(true));
        let told = Arc::clone(&answers);
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(usize::MAX)
            .set_min_delay(RECONNECT.0)
            .set_max_delay(RECONNECT.1)
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            // Bounded here instead, so that waiting for a connection counts too.
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

    /// One command.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        let mut manager = self.manager.clone();
        self.bounded(command.query_async(&mut manager)).await
    }

    /// Several commands in one trip; none of them depends on another.
    pub(super) async fn query_all<T: FromRedisValue>(
        &self,
        commands: &Pipeline,
    ) -> Result<T, Error> {
        let mut manager = self.manager.clone();
        self.bounded(commands.query_async(&mut manager)).await
    }

    /// One atomic step. A server that has started anew does not know it yet and gets its text.
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

/// Codes of a server that may do the same thing later.
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

/// A trip of the line between gateways.
pub(super) async fn punctual<T>(trip: impl Future<Output = RedisResult<T>>) -> Result<T, Error> {
    match tokio::time::timeout(TRIP, trip).await {
        Ok(answer) => answer.map_err(translate),
        Err(_) => Err(Error::Redis {
            trouble: RedisTrouble::Silent,
            source: None,
        }),
    }
}
