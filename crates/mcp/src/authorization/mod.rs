//! The client side of OAuth 2.1 for remote servers (MCP authorisation of 2025-11-25 and 2026-07-28).
//!
//! [`discover`] finds the authorisation server, [`ClientIdentity`] is our identity there,
//! [`Authorization::begin`] returns the address that a person opens, [`Authorization::finish`] turns the
//! answer into a [`Grant`], and the grant holds the tokens. This module stores nothing: the caller stores the
//! parts, encrypted. Every request uses the client that the caller passes, so the guard that keeps tenants
//! out of our networks covers metadata and token requests too.
//!
//! rmcp's own OAuth client is not used: it accepts metadata of another issuer if the protected resource names
//! a well-known address, goes on without PKCE if a server does not offer it, has to repeat discovery for each
//! token, and logs authorisation codes.

mod challenge;
mod client;
mod discovery;
mod error;
mod flow;
mod forms;
mod grant;
mod http;

pub use challenge::Challenge;
pub use client::{ClientIdentity, ClientRegistration, KnownClient, client_metadata};
pub use discovery::{Discovered, ask, discover, is_protected};
pub use error::AuthorizationError;
pub use flow::{Authorization, AuthorizationAnswer, ScopeWish};
pub use grant::{Grant, Tokens};
