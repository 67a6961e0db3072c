//! Who somebody is and what their role allows.

use std::fmt;

use sepal_policy::Approver;
use serde::{Deserialize, Serialize};

use super::{ApiKeyId, Holder, TenantId, UserId};

/// What a user may do inside their tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads the sessions that were opened to them; decides nothing.
    Viewer,
    /// Owns sessions and decides their calls.
    Member,
    /// Also manages people, keys and servers of the tenant.
    Admin,
    /// Also deletes the tenant; the first user is one.
    Owner,
}

impl Role {
    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    /// Reads the name back.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "viewer" => Some(Self::Viewer),
            "member" => Some(Self::Member),
            "admin" => Some(Self::Admin),
            "owner" => Some(Self::Owner),
            _ => None,
        }
    }

    /// Whether this role may start turns and decide calls.
    pub fn may_act(self) -> bool {
        self >= Self::Member
    }

    /// Whether this role may let sessions of their own, and servers of their own, reach any host; others
    /// name those that `sandbox.network_on_request` lists.
    pub fn may_open_any_host(self) -> bool {
        self >= Self::Admin
    }
}

/// Reads whose yes a rule wants; `None` = nobody, or nobody who may ever decide.
pub fn known_approver(text: &str) -> Option<Approver> {
    let approver = Approver::parse(text)?;
    let is_known = match &approver {
        Approver::Role(role) => Role::parse(role).is_some_and(Role::may_act),
        Approver::Owner | Approver::SomebodyElse | Approver::Two => true,
    };
    is_known.then_some(approver)
}

/// An isolation boundary: owns users, keys and sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    pub id: TenantId,
    /// The name that people sign in with; unique in the installation.
    pub name: String,
}

/// Whom a stored thing serves: everybody of the installation, or one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Every tenant; installation admins manage it.
    Installation,
    /// One tenant; its admins manage it.
    Tenant(TenantId),
}

impl Scope {
    /// The name in the database: `installation`, or the tenant's id, which never reads so.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Installation => "installation",
            Self::Tenant(tenant) => tenant.as_str(),
        }
    }

    /// Reads the name back.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "installation" {
            return Some(Self::Installation);
        }
        TenantId::parse(text).map(Self::Tenant)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A person or service of one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub id: UserId,
    /// The tenant they belong to.
    pub tenant: TenantId,
    /// Sign-in name, unique in the tenant.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// Whether they also administer the installation (tenants, operator settings).
    pub installation_admin: bool,
}

/// The name that goes with what somebody did; kept in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub id: UserId,
    /// Their name at that time.
    pub name: String,
}

/// Which sign-in or key somebody entered with. Not secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CredentialId {
    /// A browser's sign-in.
    SignIn(String),
    /// An API key.
    ApiKey(ApiKeyId),
    /// None was needed (`auth.mode none`).
    Local(UserId),
}

/// An authenticated person at a door. A handler cannot touch a tenant's data without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub user: User,
    pub tenant: Tenant,
    /// The key or sign-in that let them in: a turn that they begin ends when it is taken from them.
    pub credential: Option<CredentialId>,
}

impl Caller {
    /// The caller as the journal names them.
    pub fn actor(&self) -> Actor {
        Actor {
            id: self.user.id.clone(),
            name: self.user.name.clone(),
        }
    }

    /// The caller's tenant, and who of it they are.
    pub fn whose(&self) -> (&TenantId, &UserId) {
        (&self.tenant.id, &self.user.id)
    }

    /// The caller as shares are counted.
    pub fn holder(&self) -> Holder {
        Holder {
            tenant: self.tenant.id.clone(),
            user: self.user.id.clone(),
        }
    }
}
