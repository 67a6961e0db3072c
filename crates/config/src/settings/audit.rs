//! `audit`: the key that signs the audit, where its signatures are kept outside of this machine, and who else
//! gets its records.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::read;

/// `audit`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// The private key itself; `None` = that of `key_file`, or one that the store keeps sealed.
    pub key: Option<SecretString>,
    /// The file with the private key.
    pub key_file: Option<PathBuf>,
    /// Former public keys, or files that hold one.
    pub trusted_keys: Vec<String>,
    /// The time between two signatures.
    #[serde(deserialize_with = "read::minutes")]
    pub seal_minutes: Duration,
    /// The time for which records are kept; zero = for ever.
    #[serde(deserialize_with = "read::days")]
    pub retention_days: Duration,
    /// True if the signed document of a session's decisions has the arguments of its calls.
    pub arguments: bool,
    pub anchor: Anchor,
    pub siem: Siem,
}

/// `audit.anchor`: places outside of this machine that are given each signature.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// A file that is appended to.
    pub file: Option<PathBuf>,
    /// An address that is posted to.
    #[serde(deserialize_with = "read::parsed_option")]
    pub webhook: Option<Url>,
    /// The secret that signs what is posted.
    pub webhook_secret: Option<SecretString>,
    /// A mail address.
    pub mail: Option<String>,
    /// A time-stamp service (RFC 3161).
    #[serde(deserialize_with = "read::parsed_option")]
    pub timestamp: Option<Url>,
}

/// `audit.siem`: who gets each record.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Siem {
    /// An address that is posted to.
    #[serde(deserialize_with = "read::parsed_option")]
    pub webhook: Option<Url>,
    /// The secret that signs what is posted.
    pub webhook_secret: Option<SecretString>,
    /// A syslog receiver: `tcp://` or `tls://`.
    pub syslog: Option<String>,
    /// The form of each record.
    pub format: SiemFormat,
}

/// The form in which a receiver gets a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SiemFormat {
    /// The record as it is, in JSON.
    Jsonl,
    /// An event of the Open Cybersecurity Schema Framework, in JSON.
    Ocsf,
    /// A line in Common Event Format.
    Cef,
}
