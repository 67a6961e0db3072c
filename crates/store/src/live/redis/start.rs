//! Checks that a Redis is fit to hold journals before a server uses it.

use redis::{AsyncConnectionConfig, ErrorKind, InfoDict, RedisError};

use super::link::{Address, CONNECT_TIMEOUT, NO_CLUSTER, REACH, refused};
use crate::Error;

/// The oldest supported major version: the first whose scripts declare flags.
const OLDEST: u64 = 7;

const SECTIONS: [&str; 5] = ["server", "memory", "persistence", "replication", "cluster"];

/// Checks that Redis answers, and refuses a configuration that could lose journals. With `allow_volatile`,
/// refuses only a configuration that cannot work at all.
pub(super) async fn check(address: &Address, allow_volatile: bool) -> Result<(), Error> {
    let info = ask(address)
        .await
        .map_err(|error| refused(&address.shown, obstacle(&error), &error))?;
    match problem(&info, allow_volatile) {
        None => Ok(()),
        Some(reason) => Err(Error::Unusable {
            path: address.shown.clone().into(),
            reason,
            source: None,
        }),
    }
}

async fn ask(address: &Address) -> redis::RedisResult<InfoDict> {
    let limits = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(CONNECT_TIMEOUT));
    let client = &address.client;
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&limits)
        .await?;
    redis::cmd("PING").exec_async(&mut connection).await?;
    let mut info = redis::cmd("INFO");
    info.arg(&SECTIONS).query_async(&mut connection).await
}

/// The reason Redis could not be queried.
fn obstacle(error: &RedisError) -> &'static str {
    if matches!(error.code(), Some("WRONGPASS" | "NOAUTH" | "NOPERM"))
        || error.kind() == ErrorKind::AuthenticationFailed
    {
        "it refuses the user or password of `store.redis_url`"
    } else if error.is_io_error() || error.is_timeout() {
        REACH
    } else {
        "it does not speak as Redis 7 does; mend `store.redis_url`"
    }
}

fn problem(info: &InfoDict, allow_volatile: bool) -> Option<&'static str> {
    let is = |name: &str, value: &str| info.get::<String>(name).as_deref() == Some(value);
    let version: String = info.get("redis_version")?;
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    if major.is_none_or(|major: u64| major < OLDEST) {
        return Some("it is older than version 7; use Redis 7 or Valkey");
    }
    if is("cluster_enabled", "1") {
        return Some(NO_CLUSTER);
    }
    if is("role", "slave") {
        return Some("it is a replica and takes no writes; give the address of the primary");
    }
    if allow_volatile {
        return None;
    }
    if !is("aof_enabled", "1") {
        return Some(
            "its append-only file is off, so a restart of Redis loses sessions; set `appendonly \
             yes` in redis.conf, or accept the loss with `store.allow_volatile`",
        );
    }
    if !is("maxmemory_policy", "noeviction") {
        return Some(
            "it may evict sessions when memory is used up; set `maxmemory-policy noeviction` in \
             redis.conf, or accept the loss with `store.allow_volatile`",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use redis::InfoDict;

    use super::problem;

    fn check(lines: &str, allow_volatile: bool, expected: &str) {
        let info = InfoDict::new(lines);
        let found = problem(&info, allow_volatile).unwrap_or("fine");
        assert!(found.contains(expected), "{lines}: {found}");
    }

    #[test]
    fn a_redis_that_may_lose_journals_is_refused_with_the_setting_that_mends_it() {
        let good = "redis_version:7.0.15\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n\
                    role:master\r\ncluster_enabled:0\r\n";
        let with = |from: &str, to: &str| good.replace(from, to);
        check(good, false, "fine");
        check(&with("7.0.15", "8.1.0"), false, "fine");
        check(&with("7.0.15", "6.2.14"), true, "older than version 7");
        check(
            &with("aof_enabled:1", "aof_enabled:0"),
            false,
            "appendonly yes",
        );
        check(&with("aof_enabled:1", "aof_enabled:0"), true, "fine");
        check(
            &with("noeviction", "allkeys-lru"),
            false,
            "maxmemory-policy noeviction",
        );
        check(&with("noeviction", "allkeys-lru"), true, "fine");
        check(&with("role:master", "role:slave"), true, "primary");
        check(
            &with("cluster_enabled:0", "cluster_enabled:1"),
            true,
            "Cluster",
        );
    }
}
