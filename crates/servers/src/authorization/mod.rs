//! Connects people to remote servers that require authorization (OAuth): each person for themselves, with
//! tokens that are stored sealed, renewed by one gateway at a time, and sent only to their server.

mod client_grant;
mod grants;
mod person;
mod target;

pub(crate) use client_grant::ClientGrants;
pub(crate) use grants::Grants;
pub(super) use grants::{open, seal};
pub(crate) use person::{Nobody, PersonAuthorizer};
pub(crate) use target::Target;
