//! `telemetry`: the destination of traces, and the attributes of this gateway.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::read;

/// `telemetry`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// The URL of the collector, without `/v1/traces`; `None` = no traces.
    #[serde(deserialize_with = "read::parsed_option")]
    pub otlp_endpoint: Option<Url>,
    /// Headers of requests to the collector; may hold a key.
    #[serde(deserialize_with = "read::none_is_empty")]
    pub otlp_headers: BTreeMap<String, SecretString>,
    /// The attribute `service.name`; `None` = that of `resource_attributes`, else our own.
    pub service_name: Option<String>,
    /// Further attributes of this gateway in traces.
    #[serde(deserialize_with = "read::none_is_empty")]
    pub resource_attributes: BTreeMap<String, String>,
}
