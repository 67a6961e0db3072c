//! Decides who may enter and what they may do: setup, sign-in, keys, tickets, and the checks before every
//! command.
//!
//! Knows nothing of HTTP: the gateway turns its results into cookies and codes. It stores hashes, never a
//! password, a key or a ticket.
//!
//! Start at [`Tenancy`], which doors ask. `credential` checks who comes, [`Administration`] changes tenants,
//! people and keys for the operator, [`People`], [`Roles`] and
//! [`Groups`] those of a tenant for one of them, [`Directory`] those of a company's directory, and [`Gestures`] proves that a person is there.

mod admin;
mod clock;
mod credential;
mod device;
mod directory;
mod error;
mod gesture;
mod groups;
mod identity;
mod limits;
mod password;
mod people;
mod refusals;
mod roles;
mod secret;
mod service;
mod setup;
mod sign_in;
mod tickets;

pub use admin::{
    Administration, CreatedInvitation, CreatedKey, NewInvitation, NewKey, NewPerson, Person,
    check_tenant_name,
};
pub use clock::Clock;
pub use credential::{AuthenticatedCaller, Credential, Revocation, proxy_issuer};
pub use device::Visitor;
pub use directory::{
    CreatedScimToken, Directory, DirectoryCaller, DirectoryError, DirectorySettings, GroupDraft,
    MOST_SCIM_TOKENS, NewScimToken, PersonDraft, members_by,
};
pub use error::Error;
pub use gesture::{
    Confirmation, GestureError, Gestures, LIFE_MS as GESTURE_LIFE_MS, ListedPasskeys, MOST_CALLS,
    Passkeys, Proof, RelyingParty, ResumedStepUp, Ways,
};
pub use groups::{AccessChange, GroupChange, GroupView, Groups, MOST_GROUPS};
pub use identity::{
    Account, BegunSignIn, DirectoryLink, EndedSession, EntryRules, FLOW_LIFE_MS, FlowSecrets,
    GroupRules, NotLetIn, TenantChoice,
};
pub use limits::network;
pub use people::{InvitationFacts, People};
pub use refusals::RefusedRequest;
pub use roles::{MOST_ROLES, RoleDraft, Roles, RolesOfPerson};
pub use secret::{csrf_of, hash as secret_hash, key_prefix, random as random_secret};
pub use service::Tenancy;
pub use setup::{Link, Setup};
pub use sign_in::SignedIn;

/// The tenant of a client that names none.
pub const DEFAULT_TENANT: &str = "default";
