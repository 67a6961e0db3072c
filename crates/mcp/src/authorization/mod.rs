//! OAuth 2.1 for remote servers, as the client (MCP authorisation of 2025-11-25 and 2026-07-28).
//!
//! [`discover`] finds who authorises for a server, [`ClientIdentity`] is who we are to them,
//! [`Authorization::begin`] gives the address that a person opens, [`Authorization::finish`] turns the
//! answer into a [`Grant`], and the grant gives tokens. Nothing is kept here: whoever calls keeps the
//! parts, sealed. Every request goes by the client that the caller gives, so the guard that keeps
//! tenants out of our networks stands in front of metadata and tokens too.
//!
//! rmcp's own client of the same protocol is not used: it takes metadata of another issuer where the
//! protected resource names a well-known address, goes on without PKCE where a server does not offer
//! it, has to discover everything anew for each token, and writes codes to its log.

mod challenge;
mod client;
mod discovery;
mod error;
mod flow;
mod grant;
mod http;

pub use challenge::Challenge;
pub use client::{ClientIdentity, ClientRegistration, KnownClient, client_metadata};
pub use discovery::{Discovered, ask, discover, is_protected};
pub use error::AuthorizationError;
pub use flow::{Authorization, AuthorizationAnswer, ScopeWish};
pub use grant::{Grant, Tokens};
