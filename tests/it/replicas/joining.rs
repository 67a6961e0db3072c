//! Who may join: gateways with the same records, and a secret key that opens their keyring.

use sepal::store::{Access, Error, Sealer, SecretKeys, Settings, Store};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::SECRET_KEY;
use crate::support::RedisServer;
use crate::support::postgres::new_database;

/// A gateway as far as its store: it has joined and gives signs of life while it is kept.
struct Joined {
    store: Store,
    sealer: Sealer,
    _folder: TempDir,
    shutdown: CancellationToken,
}

async fn join(redis: &RedisServer, database: Option<&str>, key: &str) -> Result<Joined, Error> {
    join_after(redis, database, key, None).await
}

/// The same with the secret key before this one.
async fn join_after(
    redis: &RedisServer,
    database: Option<&str>,
    key: &str,
    former: Option<&str>,
) -> Result<Joined, Error> {
    let folder = TempDir::new().unwrap();
    let settings = Settings {
        redis_url: Some(redis.secret_url()),
        database_url: database.map(ToOwned::to_owned),
        ..Settings::in_folder(folder.path())
    };
    let shutdown = CancellationToken::new();
    let tasks = TaskTracker::new();
    let store = Store::open(&settings, Access::Serve, &tasks, shutdown.clone()).await?;
    let keys = SecretKeys {
        current: Some(key.into()),
        former: former.map(Into::into),
    };
    let sealer = store.sealer(&keys).await?;
    store.join().await?;
    Ok(Joined {
        store,
        sealer,
        _folder: folder,
        shutdown,
    })
}

/// Tries to join while the first one lives.
async fn refusal(first: &Joined, second: impl Future<Output = Result<Joined, Error>>) -> String {
    let cluster_bus = first.store.cluster_bus();
    let living = async {
        let mut ticks = tokio::time::interval(std::time::Duration::from_millis(500));
        loop {
            ticks.tick().await;
            cluster_bus.beat().await.unwrap();
        }
    };
    let joined = tokio::select! {
        joined = second => joined,
        () = living => unreachable!(),
    };
    joined.map(|_| ()).unwrap_err().to_string()
}

#[tokio::test]
async fn a_gateway_with_records_of_its_own_is_refused_while_another_lives() {
    let redis = RedisServer::start();
    let database = new_database().await;
    let first = join(&redis, Some(&database), SECRET_KEY).await.unwrap();
    let refused = refusal(&first, join(&redis, None, SECRET_KEY)).await;
    assert!(refused.contains("keeps its records elsewhere"), "{refused}");
    assert!(refused.contains("redis://127.0.0.1"), "{refused}");

    // With the first one gone, this Redis is free for other records.
    first.store.cluster_bus().leave().await;
    first.shutdown.cancel();
    join(&redis, None, SECRET_KEY).await.unwrap();
}

#[tokio::test]
async fn a_gateway_with_another_secret_key_is_refused_and_one_with_the_same_joins() {
    let redis = RedisServer::start();
    let database = new_database().await;
    let first = join(&redis, Some(&database), SECRET_KEY).await.unwrap();
    let other = join(
        &redis,
        Some(&database),
        "another key of thirty-two characters",
    );
    let refused = refusal(&first, other).await;
    assert!(refused.contains("SPL_SECRET_KEY"), "{refused}");
    let second = join(&redis, Some(&database), SECRET_KEY).await.unwrap();
    let alive = second.store.cluster_bus().beat().await.unwrap();
    assert_eq!(alive.len(), 2, "{alive:?}");
}

#[tokio::test]
async fn gateways_change_the_secret_key_one_after_the_other() {
    let redis = RedisServer::start();
    let database = new_database().await;
    let new = "a new key of thirty-two characters";
    let (first, twin) = tokio::join!(
        join(&redis, Some(&database), SECRET_KEY),
        join(&redis, Some(&database), SECRET_KEY),
    );
    let (first, twin) = (first.unwrap(), twin.unwrap());
    let (one, two) = tokio::join!(
        join_after(&redis, Some(&database), new, Some(SECRET_KEY)),
        join_after(&redis, Some(&database), new, Some(SECRET_KEY)),
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    let before = [&first, &twin, &one, &two];
    let sealed = before.map(|it| it.sealer.seal("here", b"value").unwrap());
    // The first start without the former key seals with a new key, which all have that were started with both.
    let after = join(&redis, Some(&database), new).await.unwrap();
    let last = after.sealer.seal("here", b"value").unwrap();
    for text in &sealed {
        for to in before.into_iter().chain([&after]) {
            assert_eq!(*to.sealer.open("here", text).unwrap(), b"value");
        }
    }
    for to in [&one, &two, &after] {
        assert_eq!(*to.sealer.open("here", &last).unwrap(), b"value");
    }
    assert!(first.sealer.open("here", &last).is_err());
    let refused = join(&redis, Some(&database), SECRET_KEY).await;
    let refused = refused.map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("SPL_FORMER_SECRET_KEY"), "{refused}");
}
