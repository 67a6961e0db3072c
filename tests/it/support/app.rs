//! The app in this process: temporary folder, free port, a stand-in for the model.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use secrecy::ExposeSecret as _;
use sepal::agent::{AuditTrail, Sessions};
use sepal::app::{App, Extensions, Purpose};
use sepal::config::{self, Settings, Sources};
use sepal::domain::{Role, TenantId};
use sepal::tenancy::{NewPerson, Tenancy};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::hang::Watched;
use super::socket::TestSocket;
use super::{DEADLINE, docker, tables};
use crate::model_stub::{ChatHost, ModelStub, STUB_KEY, Vendor};

/// A running server with its data.
pub(crate) struct TestApp {
    pub(crate) address: SocketAddr,
    pub(crate) model: ModelStub,
    pub(crate) tenancy: Tenancy,
    pub(crate) sessions: Sessions,
    pub(crate) audit: AuditTrail,
    pub(crate) folder: TempDir,
    /// Where figures are given without a key.
    pub(crate) metrics: Option<SocketAddr>,
    extra: Extra,
    tune: fn(&mut Settings),
    installation: String,
    stop: DropGuard,
    serving: TaskTracker,
    _watched: Watched,
}

/// What the environment has beside the ordinary.
type Extra = Vec<(String, String)>;

/// Somebody with an API key.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) tenant: TenantId,
    pub(crate) key: String,
}

fn owned(extra: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = extra
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

/// Settings as an environment would give them.
fn settings(env: &[(&str, &str)]) -> Settings {
    let env: BTreeMap<String, String> = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let loaded = config::load(&Sources {
        env,
        ..Sources::default()
    });
    loaded
        .unwrap_or_else(|problems| panic!("{problems}"))
        .settings
}

impl TestApp {
    /// A server without sandbox: what calls give is not what the test is about.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[("SPL_SANDBOX", "none")]).await
    }

    /// A server whose tools run in a real bubblewrap sandbox.
    pub(crate) async fn with_sandbox() -> Self {
        Self::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await
    }

    /// A server whose tools run in containers of the private engine.
    pub(crate) async fn with_docker() -> Self {
        Self::with_engine(&docker::address()).await
    }

    /// The same with another engine that has the image.
    pub(crate) async fn with_engine(address: &str) -> Self {
        Self::start_with(&[
            ("SPL_SANDBOX", "docker"),
            ("SPL_SANDBOX_DOCKER_HOST", address),
            ("SPL_SANDBOX_IMAGE", &docker::image()),
        ])
        .await
    }

    pub(crate) async fn start_with(extra: &[(&str, &str)]) -> Self {
        Self::start_tuned(extra, |_| {}).await
    }

    /// The same with settings that no environment could give.
    pub(crate) async fn start_tuned(extra: &[(&str, &str)], tune: fn(&mut Settings)) -> Self {
        let folder = TempDir::new().unwrap();
        Self::open(folder, ModelStub::start().await, (owned(extra), tune)).await
    }

    /// What its environment has beside the ordinary.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        self.extra.clone()
    }

    /// The name by which this installation labels what it makes.
    pub(crate) fn installation(&self) -> String {
        self.installation.clone()
    }

    /// A server whose model provider is that vendor.
    pub(crate) async fn start_as(vendor: Vendor, extra: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        Self::open(
            folder,
            ModelStub::start_as(vendor).await,
            (owned(extra), |_| {}),
        )
        .await
    }

    /// A server whose model provider is that host.
    pub(crate) async fn start_at(host: ChatHost, extra: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        let model = ModelStub::start_at(host).await;
        Self::open(folder, model, (owned(extra), |_| {})).await
    }

    /// Stops in order and starts again on the same data.
    pub(crate) async fn restart(self) -> Self {
        let extra = self.extra.clone();
        let extra: Vec<_> = extra
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        self.restart_with(&extra).await
    }

    /// The same with a change of the data folder while nothing runs.
    pub(crate) async fn restart_after(self, change: impl AsyncFnOnce(&Path)) -> Self {
        let extra = self.extra.clone();
        self.restart_between(extra, change).await
    }

    /// The same with another environment.
    pub(crate) async fn restart_with(self, extra: &[(&str, &str)]) -> Self {
        self.restart_between(owned(extra), async |_| {}).await
    }

    async fn restart_between(
        self,
        extra: Vec<(String, String)>,
        change: impl AsyncFnOnce(&Path),
    ) -> Self {
        let Self {
            folder,
            model,
            stop,
            serving,
            tenancy,
            sessions,
            tune,
            ..
        } = self;
        drop(stop);
        tokio::time::timeout(DEADLINE, serving.wait())
            .await
            .unwrap();
        // They hold the data folder's lock.
        drop((tenancy, sessions));
        change(&folder.path().join("data")).await;
        Self::open(folder, model, (extra, tune)).await
    }

    /// Stops in order; the stand-in goes on.
    pub(crate) async fn stop(self) -> ModelStub {
        let Self {
            model,
            stop,
            serving,
            ..
        } = self;
        drop(stop);
        tokio::time::timeout(DEADLINE, serving.wait())
            .await
            .unwrap();
        model
    }

    /// The same with context providers of a program that embeds the gateway.
    pub(crate) async fn start_embedded(extra: &[(&str, &str)], own: &Extensions) -> Self {
        let folder = TempDir::new().unwrap();
        let how: (Extra, fn(&mut Settings)) = (owned(extra), |_| {});
        Self::open_with(folder, ModelStub::start().await, how, own).await
    }

    async fn open(folder: TempDir, model: ModelStub, how: (Extra, fn(&mut Settings))) -> Self {
        Self::open_with(folder, model, how, &Extensions::default()).await
    }

    async fn open_with(
        folder: TempDir,
        model: ModelStub,
        (extra, tune): (Extra, fn(&mut Settings)),
        own: &Extensions,
    ) -> Self {
        let data_dir = folder.path().join("data");
        if !extra.iter().any(|(name, _)| name == "DATABASE_URL") {
            tables::put_sqlite(&data_dir).await;
        }
        let mut env = vec![
            ("SPL_DATA_DIR", data_dir.to_str().unwrap().to_owned()),
            ("LLM_PROVIDER", model.vendor.provider().to_owned()),
            ("SPL_LLM_MODEL", model.vendor.model().to_owned()),
            ("SPL_LLM_RETRY_MAX_RETRIES", "0".to_owned()),
            ("SPL_HTTP_HOST", "127.0.0.1".to_owned()),
        ];
        if let Some(host) = model.host {
            env.push(("LLM_PROVIDER", host.provider().to_owned()));
            env.push(("SPL_LLM_BASE_URL", model.base_url()));
            env.push(("SPL_LLM_API_KEY", STUB_KEY.to_owned()));
        }
        match model.vendor {
            Vendor::Chat if model.host.is_some() => {}
            Vendor::Chat => env.push(("OPENAI_BASE_URL", model.base_url())),
            Vendor::Responses | Vendor::Messages | Vendor::Gemini => {
                if model.vendor == Vendor::Responses {
                    env.push(("SPL_LLM_API", "responses".to_owned()));
                }
                env.push(("SPL_LLM_BASE_URL", model.base_url()));
                env.push(("SPL_LLM_API_KEY", STUB_KEY.to_owned()));
            }
        }
        env.extend(
            extra
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone())),
        );
        let env: Vec<(&str, &str)> = env
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut settings = settings(&env);
        tune(&mut settings);
        let app = App::build_with(&settings, listener, Purpose::Gateway, own);
        let app = Box::pin(app).await.unwrap();
        let (address, tenancy, sessions) = (app.address, app.tenancy.clone(), app.sessions.clone());
        let audit = app.audit.clone();
        let (installation, metrics) = (app.installation.clone(), app.metrics);
        let (stop, serving) = (CancellationToken::new(), TaskTracker::new());
        let stopped = stop.clone();
        serving.spawn(async move { app.serve(stopped).await });
        serving.close();
        let stop = stop.drop_guard();
        Self {
            address,
            model,
            tenancy,
            sessions,
            audit,
            folder,
            metrics,
            extra,
            tune,
            installation,
            stop,
            serving,
            _watched: Watched::begin(),
        }
    }

    /// A member of a tenant that is created on first use.
    pub(crate) async fn person(&self, tenant: &str) -> Person {
        self.person_with(tenant, Role::Member).await
    }

    pub(crate) async fn person_with(&self, tenant: &str, role: Role) -> Person {
        self.newcomer(tenant, role, false).await
    }

    /// Somebody who administers the installation, and is a plain member of that tenant.
    pub(crate) async fn installation_admin(&self, tenant: &str) -> Person {
        self.newcomer(tenant, Role::Member, true).await
    }

    async fn newcomer(&self, tenant: &str, role: Role, installation_admin: bool) -> Person {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let tenant = match self.tenancy.administration().find_tenant(tenant).await {
            Ok(tenant) => tenant,
            Err(_) => self
                .tenancy
                .administration()
                .create_tenant(tenant)
                .await
                .unwrap(),
        };
        let name = format!("p{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let person = NewPerson {
            name,
            role,
            installation_admin,
            password: None,
        };
        let user = self
            .tenancy
            .administration()
            .create_user(&tenant.id, person)
            .await
            .unwrap();
        let key = self
            .tenancy
            .administration()
            .create_key(&tenant.id, &user.id, "test")
            .await
            .unwrap();
        Person {
            tenant: tenant.id,
            key: key.secret.expose_secret().to_owned(),
        }
    }

    /// A new person of that tenant with an open socket.
    pub(crate) async fn socket(&self, tenant: &str) -> TestSocket {
        let person = self.person(tenant).await;
        TestSocket::open(self.address, &person, None).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A plain HTTP client.
    pub(crate) fn http() -> reqwest::Client {
        sepal::net::install_tls();
        sepal::net::client(&sepal::net::Settings::default()).unwrap()
    }
}
