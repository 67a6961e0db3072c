//! Identifies people and defines the permissions of their roles.

use std::fmt;
use std::sync::Arc;

use sepal_policy::Approver;
use serde::{Deserialize, Serialize};

use super::{ApiKeyId, Holder, KeyGrant, Rights, TenantId, UserId};

/// The role of a user in their tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads the sessions that were shared with them; decides nothing.
    Viewer,
    /// Decides the calls for which a rule names them, and has no sessions.
    Approver,
    /// Owns sessions and decides their calls.
    Member,
    /// Also manages people, keys and servers of the tenant.
    Admin,
    /// Also deletes the tenant; the first user is an owner.
    Owner,
}

impl Role {
    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    /// Every role, the lowest first.
    pub const ALL: [Self; 5] = [
        Self::Viewer,
        Self::Approver,
        Self::Member,
        Self::Admin,
        Self::Owner,
    ];

    /// Parses the form that [`Self::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "viewer" => Some(Self::Viewer),
            "approver" => Some(Self::Approver),
            "member" => Some(Self::Member),
            "admin" => Some(Self::Admin),
            "owner" => Some(Self::Owner),
            _ => None,
        }
    }

    /// Returns true if this role may have sessions, start turns and decide its own calls.
    pub fn may_act(self) -> bool {
        self >= Self::Member
    }

    /// Returns true if this role may decide the calls of others for which a rule names it.
    pub fn may_decide(self) -> bool {
        self >= Self::Approver
    }
}

/// Parses the approver that a rule names; `None` if the name is unknown or its role may not decide.
pub fn known_approver(text: &str) -> Option<Approver> {
    let approver = Approver::parse(text)?;
    let is_known = match &approver {
        Approver::Role(role) => Role::parse(role).is_some_and(Role::may_decide),
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

/// The scope of a stored thing: the whole installation or one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Every tenant; installation admins manage it.
    Installation,
    /// One tenant; its admins manage it.
    Tenant(TenantId),
}

impl Scope {
    /// The name in the database: `installation`, or the tenant's id, which is always different.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Installation => "installation",
            Self::Tenant(tenant) => tenant.as_str(),
        }
    }

    /// Parses the form that [`Self::as_str`] writes.
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
    /// The tenant that the user belongs to.
    pub tenant: TenantId,
    /// Sign-in name, unique in the tenant.
    pub name: String,
    /// The user's role.
    pub role: Role,
    /// True if the user also administers the installation (tenants, operator settings).
    pub installation_admin: bool,
}

/// The user behind an action, as recorded in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub id: UserId,
    /// The user's name at that time.
    pub name: String,
}

/// The credential with which a caller authenticated. Not secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CredentialId {
    /// A sign-in of a browser.
    SignIn(String),
    /// An API key.
    ApiKey(ApiKeyId),
    /// No credential was needed (`auth.mode none`).
    Local(UserId),
}

/// An authenticated user at a door. Handlers need one to access a tenant's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub user: User,
    pub tenant: Tenant,
    /// The rights that the user's custom roles and groups give.
    pub custom_rights: Rights,
    /// The credential with which the caller authenticated. Revoking it ends the turns that were started
    /// with it.
    pub credential: Option<CredentialId>,
    /// The limits of the API key with which the caller authenticated; `None` = no key, or a key without limits.
    pub grant: Option<Arc<KeyGrant>>,
}

impl Caller {
    /// The caller as recorded in the journal.
    pub fn actor(&self) -> Actor {
        Actor {
            id: self.user.id.clone(),
            name: self.user.name.clone(),
        }
    }

    /// The caller's tenant and user id.
    pub fn whose(&self) -> (&TenantId, &UserId) {
        (&self.tenant.id, &self.user.id)
    }

    /// The caller as a holder of shares.
    pub fn holder(&self) -> Holder {
        Holder {
            tenant: self.tenant.id.clone(),
            user: self.user.id.clone(),
        }
    }
}
