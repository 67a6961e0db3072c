//! A Redis that is away or would lose journals is refused at start.

use sepal::store::Access;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;

async fn refusal(settings: &Settings) -> String {
    let opened = Opened::with(settings).await;
    let error = opened.map(|_| ()).unwrap_err();
    assert_eq!(error.fault(), Fault::Validation);
    format!("{:#}", anyhow::Error::from(error))
}

fn settings_of(url: &str, dir: &TempDir) -> Settings {
    Settings {
        redis_url: Some(url.into()),
        ..Settings::in_folder(dir.path())
    }
}

#[tokio::test]
async fn a_redis_that_is_away_is_named_without_its_password() {
    let dir = TempDir::new().unwrap();
    let mut redis = RedisServer::start();
    redis.stop();
    let url = redis.url().replace("redis://", "redis://user:geheim@");
    let text = refusal(&settings_of(&url, &dir)).await;
    assert!(text.contains(&redis.url()), "{text}");
    assert!(text.contains("refused"), "the cause: {text}");
    assert!(!text.contains("geheim"), "{text}");
    // The folder is free again, and a command beside a server needs no journals.
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let settings = settings_of(&url, &dir);
    let beside = Store::open(&settings, Access::Beside, &tasks, stop).await;
    assert!(beside.unwrap().records().tenants().list().await.is_ok());
}

#[tokio::test]
async fn a_redis_that_forgets_is_refused_unless_that_is_accepted() {
    for (args, setting) in [
        (["--appendonly", "no"].as_slice(), "appendonly yes"),
        (
            &["--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"],
            "maxmemory-policy noeviction",
        ),
    ] {
        let dir = TempDir::new().unwrap();
        let redis = RedisServer::start_with(args);
        let mut settings = settings_of(&redis.url(), &dir);
        let text = refusal(&settings).await;
        assert!(
            text.contains(setting) && text.contains(&redis.url()),
            "{text}"
        );
        settings.allow_volatile = true;
        let opened = Opened::with(&settings).await.unwrap();
        append(&*opened.live(), &key(1, 1), 0, record(1, 1..=1)).await;
    }
}

#[tokio::test]
async fn a_cluster_a_replica_and_a_wrong_password_are_refused_with_the_reason() {
    let dir = TempDir::new().unwrap();
    let cluster = RedisServer::start_with(&["--appendonly", "yes", "--cluster-enabled", "yes"]);
    let url = cluster.url();
    assert!(
        refusal(&settings_of(&url, &dir))
            .await
            .contains("Redis Cluster")
    );

    let replica = RedisServer::start();
    replica.follow_nobody();
    let text = refusal(&settings_of(&replica.url(), &dir)).await;
    assert!(text.contains("primary"), "{text}");

    let locked = RedisServer::start();
    locked.set("requirepass", "right");
    let with = |password: &str| {
        let login = format!("redis://:{password}@");
        settings_of(&locked.url().replace("redis://", &login), &dir)
    };
    let text = refusal(&with("wrong")).await;
    assert!(text.contains("user or password"), "{text}");
    assert!(Opened::with(&with("right")).await.is_ok());

    for several in ["redis://a,b:1/0", "redis://a:1/0?cluster=true"] {
        let text = refusal(&settings_of(several, &dir)).await;
        assert!(text.contains("Redis Cluster"), "{text}");
    }
    for nonsense in ["geheim", "http://geheim", "redis://"] {
        let text = refusal(&settings_of(nonsense, &dir)).await;
        assert!(
            text.contains("redis_url") && !text.contains("geheim"),
            "{text}"
        );
    }
}
