//! Outgoing network access: all HTTP clients of the product are built here, once, and shared.
//!
//! [`client`] is for addresses of the operator, [`guarded_client`] for addresses that a tenant set,
//! [`Mailer`] for mail, and [`Proxy`] for sandboxed programs. No other crate resolves a name or opens a
//! connection that a tenant or a program asked for.

mod client;
mod egress;
mod guard;
mod mail;
mod syslog;

pub use client::{
    Error, Settings, authorities, authorities_pem, below, client, guarded_client, install_tls,
};
pub use egress::{
    AUTHORITY_VARIABLE, AuthorityError, EdgeSecret, Egress, Grant, Grants, HostMask, Proxy, Reach,
    Refusals, Secrets, Witness,
};
pub use guard::{BlockedHost, Guard, blocked};
pub use mail::{Mail, MailError, Mailer, is_mail_address};
pub use syslog::{Syslog, SyslogError, SyslogMessage};
