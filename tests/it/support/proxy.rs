//! Sepal's Docker proxy in front of an engine, and tests that are held on either side of it.

use std::sync::atomic::{AtomicU32, Ordering};

use sepal_docker_proxy::{Address, Listener, Most, Settings, serve};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::docker;

/// Proxies at the same engine are told apart by their label.
static PROXIES: AtomicU32 = AtomicU32::new(0);

/// How Sepal reaches an engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// By its own socket.
    Direct,
    /// Through a proxy.
    Proxied,
}

impl Door {
    /// The address to use for the engine at `engine`.
    pub(crate) async fn open(self, engine: &str) -> OpenDoor {
        let proxy = match self {
            Self::Direct => None,
            Self::Proxied => Some(Proxy::start(engine).await),
        };
        let address = proxy.as_ref().map_or(engine, |it| it.address.as_str());
        OpenDoor {
            address: address.to_owned(),
            _proxy: proxy,
        }
    }
}

/// An engine that can be used as long as this lives.
pub(crate) struct OpenDoor {
    pub(crate) address: String,
    _proxy: Option<Proxy>,
}

struct Proxy {
    address: String,
    _folder: TempDir,
    _shutdown: DropGuard,
}

impl Proxy {
    async fn start(engine: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let number = PROXIES.fetch_add(1, Ordering::Relaxed);
        let label = format!("sepal.proxy=app-{}-{number}", std::process::id());
        let settings = Settings {
            engine: engine.parse().unwrap(),
            label: label.parse().unwrap(),
            image: docker::image(),
            other_images: Vec::new(),
            runtime: None,
            network: None,
            most: Most::default(),
            max_containers: 500,
            max_volumes: 500,
            max_connections: 1000,
        };
        let address = Address::Unix(folder.path().join("proxy.sock"));
        let listener = Listener::bind(&address, 0o600, None).await.unwrap();
        let shutdown = CancellationToken::new();
        TaskTracker::new().spawn(serve(settings, listener, shutdown.clone()));
        Self {
            address: address.to_string(),
            _folder: folder,
            _shutdown: shutdown.drop_guard(),
        }
    }
}

/// Makes two tests of every function that takes a [`Door`].
macro_rules! behind_each_door {
    ($($name:ident),* $(,)?) => {
        mod direct {
            use crate::support::Door;
            $(#[tokio::test] async fn $name() { super::$name(Door::Direct).await })*
        }
        mod proxied {
            use crate::support::Door;
            $(#[tokio::test] async fn $name() { super::$name(Door::Proxied).await })*
        }
    };
}
pub(crate) use behind_each_door;
