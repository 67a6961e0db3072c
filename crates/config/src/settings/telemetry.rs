//! `telemetry`: where traces go, and what they say of this gateway.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::read;

/// `telemetry`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// The collector, without `/v1/traces`; `None` = nothing is traced.
    #[serde(deserialize_with = "read::parsed_option")]
    pub otlp_endpoint: Option<Url>,
    /// Headers that it is sent; they may hold a key.
    #[serde(deserialize_with = "read::none_is_empty")]
    pub otlp_headers: BTreeMap<String, SecretString>,
    /// `service.name`; `None` = that of the attributes, or our own.
    pub service_name: Option<String>,
    /// What else traces say of this gateway.
    #[serde(deserialize_with = "read::none_is_empty")]
    pub resource_attributes: BTreeMap<String, String>,
}
