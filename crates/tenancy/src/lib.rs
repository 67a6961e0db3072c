//! Decides who may enter and what they may do: setup, sign-in, keys, tickets, and the checks before every
//! command.
//!
//! Knows nothing of HTTP: the gateway turns its results into cookies and codes. It stores hashes, never a
//! password, a key or a ticket.
//!
//! Start at [`Tenancy`], which doors ask. `credential` checks who comes, [`Administration`] changes tenants,
//! people and keys for the operator, [`People`], [`Roles`] and
//! [`Groups`] those of a tenant for one of them, and [`Gestures`] proves that a person is there.

mod admin;
mod clock;
mod credential;
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
};
pub use clock::Clock;
pub use credential::{AuthenticatedCaller, Credential, Revocation};
pub use error::Error;
pub use gesture::{
    GestureError, Gestures, LIFE_MS as GESTURE_LIFE_MS, MOST_CALLS, Passkeys, Proof, RelyingParty,
    Ways,
};
pub use groups::{AccessChange, GroupChange, GroupView, Groups, MOST_GROUPS};
pub use identity::{
    Account, BegunSignIn, EndedSession, EntryRules, FLOW_LIFE_MS, FlowSecrets, GroupRules,
    NotLetIn, TenantChoice,
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
