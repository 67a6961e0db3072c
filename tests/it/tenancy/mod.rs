//! Stories of entering and leaving, on a real database and with a clock that the test holds.

mod access;
mod admission;

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use secrecy::{ExposeSecret as _, SecretString};
use sepal::domain::{Role, Timestamp, User};
use sepal::store::{Access, Settings, Store};
use sepal::tenancy::{
    AuthenticatedCaller, Clock, Credential, Error, Link, NewPerson, SignedIn, Tenancy, Visitor,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const BASE: &str = "http://localhost:3000";
const PASSWORD: &str = "correct horse battery";
const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// An installation with a clock.
struct House {
    dir: TempDir,
    time: Arc<AtomicI64>,
    tenancy: Tenancy,
    /// Holds the lock of the folder.
    _store: Store,
}

impl House {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let time = Arc::new(AtomicI64::new(1_700_000_000_000));
        let (store, tenancy) = open(dir.path(), &time, Access::Serve).await;
        Self {
            dir,
            time,
            tenancy,
            _store: store,
        }
    }

    /// An installation that Ann has set up.
    async fn of_ann() -> (Self, SignedIn) {
        let house = Self::new().await;
        let link = house.tenancy.setup().start(BASE).await.unwrap().unwrap();
        let signed_in = house.set_up(&secret_of(&link), "ann").await.unwrap();
        (house, signed_in)
    }

    fn pass(&self, ms: i64) {
        self.time.fetch_add(ms, Ordering::Relaxed);
    }

    /// What a command beside the server works with.
    async fn command_line(&self) -> Tenancy {
        open(self.dir.path(), &self.time, Access::Beside).await.1
    }

    async fn set_up(&self, secret: &SecretString, name: &str) -> Result<SignedIn, Error> {
        self.tenancy
            .setup()
            .complete(secret, name, &PASSWORD.into())
            .await
    }

    async fn sign_in(&self, name: &str, password: &str) -> Result<SignedIn, Error> {
        self.sign_in_at(None, name, password).await
    }

    async fn sign_in_at(
        &self,
        tenant: Option<&str>,
        name: &str,
        password: &str,
    ) -> Result<SignedIn, Error> {
        let password = password.into();
        self.tenancy.sign_in(tenant, name, &password, at(1)).await
    }

    async fn by_link(&self, link: &Link) -> Result<SignedIn, Error> {
        self.tenancy.setup().sign_in_by_link(&secret_of(link)).await
    }

    async fn by_ticket(&self, ticket: SecretString) -> Result<AuthenticatedCaller, Error> {
        let ticket = Credential::Ticket(ticket);
        self.tenancy.authenticate(&ticket).await
    }

    async fn cookie(&self, signed_in: &SignedIn) -> Result<AuthenticatedCaller, Error> {
        let cookie = Credential::Cookie(signed_in.secret.clone());
        self.tenancy.authenticate(&cookie).await
    }

    async fn key(&self, secret: &SecretString) -> Result<AuthenticatedCaller, Error> {
        let key = Credential::ApiKey(secret.clone());
        self.tenancy.authenticate(&key).await
    }

    async fn member(&self, owner: &SignedIn, name: &str) -> User {
        let new = NewPerson {
            name: name.into(),
            role: Role::Member,
            installation_admin: false,
            password: Some(PASSWORD.into()),
        };
        let tenant = &owner.entered.caller.tenant.id;
        self.tenancy
            .administration()
            .create_user(tenant, new)
            .await
            .unwrap()
    }
}

async fn open(dir: &Path, time: &Arc<AtomicI64>, access: Access) -> (Store, Tenancy) {
    let settings = Settings::in_folder(dir);
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let store = Store::open(&settings, access, &tasks, shutdown)
        .await
        .unwrap();
    let time = Arc::clone(time);
    let clock = Clock::new(move || Timestamp(time.load(Ordering::Relaxed)));
    let tenancy = Tenancy::new(&store, clock);
    (store, tenancy)
}

fn peer(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

/// A browser in which nobody signed in before.
fn at(last: u8) -> Visitor<'static> {
    Visitor {
        peer: peer(last),
        device: None,
    }
}

fn secret_of(link: &Link) -> SecretString {
    let address = link.address.expose_secret();
    address.split_once('#').unwrap().1.into()
}

#[track_caller]
fn refused<T>(answer: Result<T, Error>, expected: &str) {
    assert_eq!(answer.map(|_| ()).unwrap_err().to_string(), expected);
}

const NOT_VALID: &str = "it is not valid, or not any more";
const WRONG: &str = "name or password is wrong";
