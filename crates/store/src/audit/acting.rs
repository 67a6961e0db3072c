//! Knows who acts: each door says so once, and every record that is written meanwhile tells it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sepal_core::domain::{Caller, CredentialId, TenantId, UserId};
use serde_json::{Value, json};

use crate::keyed::KeyedRequest;

/// The way by which something was asked of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// REST, and the page.
    Http,
    /// A connected page or program.
    Socket,
    /// The agent as an MCP server.
    Mcp,
    /// `sepal` on the machine of the installation.
    CommandLine,
    /// Nobody asked: the gateway did it by itself.
    Gateway,
}

impl Door {
    /// The name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Socket => "socket",
            Self::Mcp => "mcp",
            Self::CommandLine => "command_line",
            Self::Gateway => "gateway",
        }
    }
}

/// The author of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Actor {
    /// A user of a tenant, with the id of the key or sign-in that they used.
    Person {
        tenant: TenantId,
        user: UserId,
        credential: Option<String>,
    },
    /// The directory of a tenant, with the id of its token.
    Directory { tenant: TenantId, token: String },
    /// Somebody with access to the machine.
    Operator,
    /// The gateway by itself.
    Gateway,
    /// Somebody who is not signed in.
    Stranger,
}

impl Actor {
    pub(crate) fn person(&self) -> Option<&UserId> {
        match self {
            Self::Person { user, .. } => Some(user),
            Self::Directory { .. } | Self::Operator | Self::Gateway | Self::Stranger => None,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Person {
                tenant,
                user,
                credential,
            } => {
                let mut by =
                    json!({ "id": user.as_str(), "kind": "person", "tenant": tenant.as_str() });
                if let (Some(credential), Some(by)) = (credential, by.as_object_mut()) {
                    by.insert("credential".to_owned(), Value::from(credential.as_str()));
                }
                by
            }
            Self::Directory { tenant, token } => {
                json!({ "credential": token, "kind": "directory", "tenant": tenant.as_str() })
            }
            Self::Operator => json!({ "kind": "operator" }),
            Self::Gateway => json!({ "kind": "gateway" }),
            Self::Stranger => json!({ "kind": "stranger" }),
        }
    }
}

/// The author of an act, and the door they came in by.
#[derive(Debug, Clone)]
pub(crate) struct Acting {
    pub(crate) by: Actor,
    door: Door,
    address: Option<IpAddr>,
}

impl Acting {
    pub(crate) fn door_to_json(&self) -> Value {
        match self.address {
            Some(address) => json!({ "address": address.to_string(), "name": self.door.as_str() }),
            None => json!({ "name": self.door.as_str() }),
        }
    }
}

/// The facts that a door knows about a request. Its person is known only after they are signed in.
#[derive(Debug)]
struct Visit {
    door: Door,
    address: Option<IpAddr>,
    by: OnceLock<Actor>,
    /// The request with a key that is being carried out.
    request: Mutex<Option<KeyedRequest>>,
}

tokio::task_local! {
    static VISIT: Arc<Visit>;
}

/// Runs `work` for somebody who came in by a door. [`identify`] says who it is.
pub fn through<T>(
    door: Door,
    address: Option<IpAddr>,
    work: impl Future<Output = T>,
) -> impl Future<Output = T> {
    let visit = Visit {
        door,
        address,
        by: OnceLock::new(),
        request: Mutex::default(),
    };
    VISIT.scope(Arc::new(visit), work)
}

/// Runs `work` for a caller who came in by a door.
pub fn of_caller<T, W: Future<Output = T>>(
    door: Door,
    caller: &Caller,
    address: Option<IpAddr>,
    work: W,
) -> impl Future<Output = T> + use<T, W> {
    let visit = Visit {
        door,
        address,
        by: OnceLock::from(of(caller)),
        request: Mutex::default(),
    };
    VISIT.scope(Arc::new(visit), work)
}

/// Runs `work` for whoever acts now, in another task: `tokio::spawn(acting::carried(work))`.
pub fn carried<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let visit = VISIT.try_with(Arc::clone).ok();
    async move {
        match visit {
            Some(visit) => VISIT.scope(visit, work).await,
            None => work.await,
        }
    }
}

/// Says who is served by the current [`through`]. Only the first call counts.
pub fn identify(caller: &Caller) {
    let _ = VISIT.try_with(|visit| visit.by.set(of(caller)));
}

/// Says that the current [`through`] serves the directory of a tenant, by its token.
pub fn identify_directory(tenant: &TenantId, token: &str) {
    let by = Actor::Directory {
        tenant: tenant.clone(),
        token: token.to_owned(),
    };
    let _ = VISIT.try_with(|visit| visit.by.set(by));
}

/// Says which request with a key is being carried out from now on; `None` = none any more. Each change that is
/// an act notes in its own transaction that the request has changed something.
pub fn set_request(request: Option<KeyedRequest>) {
    let _ = VISIT.try_with(|visit| {
        *visit.request.lock().unwrap_or_else(PoisonError::into_inner) = request;
    });
}

/// The request with a key that is being carried out now.
pub(crate) fn request() -> Option<KeyedRequest> {
    let request = VISIT.try_with(|visit| {
        let request = visit.request.lock();
        request.unwrap_or_else(PoisonError::into_inner).clone()
    });
    request.ok().flatten()
}

/// The address of whoever acts now, if their door knows it.
pub fn address() -> Option<IpAddr> {
    VISIT.try_with(|visit| visit.address).ok().flatten()
}

/// The person who acts now, if it is known by now.
pub fn person() -> Option<(TenantId, UserId)> {
    match current().by {
        Actor::Person { tenant, user, .. } => Some((tenant, user)),
        Actor::Directory { .. } | Actor::Operator | Actor::Gateway | Actor::Stranger => None,
    }
}

fn of(caller: &Caller) -> Actor {
    Actor::Person {
        tenant: caller.tenant.id.clone(),
        user: caller.user.id.clone(),
        credential: caller
            .credential
            .as_ref()
            .map(|credential| match credential {
                CredentialId::SignIn(id) => id.clone(),
                CredentialId::ApiKey(id) => id.to_string(),
                CredentialId::Local(id) => id.to_string(),
            }),
    }
}

/// Returns the author of what this task does. Outside of a door that is the gateway itself.
pub(crate) fn current() -> Acting {
    let visit = VISIT.try_with(|visit| {
        let unknown = match visit.door {
            Door::CommandLine => Actor::Operator,
            Door::Gateway => Actor::Gateway,
            Door::Http | Door::Socket | Door::Mcp => Actor::Stranger,
        };
        Acting {
            by: visit.by.get().cloned().unwrap_or(unknown),
            door: visit.door,
            address: visit.address,
        }
    });
    visit.unwrap_or(Acting {
        by: Actor::Gateway,
        door: Door::Gateway,
        address: None,
    })
}
