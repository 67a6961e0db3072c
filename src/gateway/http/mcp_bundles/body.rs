//! The request and response bodies of the routes of bundles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use crate::servers::{BundleFacts, BundleReport, BundleUse, NamedPart, WantedValue};

/// A bundle that is kept, as its manifest describes it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct Bundle {
    /// SHA-256 of its file, in hex.
    sha256: String,
    /// Bytes of its file.
    bytes: u64,
    files: u64,
    /// Bytes of all files together.
    unpacked_bytes: u64,
    name: String,
    /// The name for people.
    title: String,
    version: String,
    description: String,
    author: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    /// `node`, `python` or `binary`.
    kind: String,
    /// What is started, with `${user_config.KEY}` where values come.
    command: Vec<String>,
    /// Its variables, in the same way.
    env: BTreeMap<String, String>,
    /// Which versions of Node or Python it says that it runs with.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<String>,
    /// What is installed from the Python package index beside it, as its project asks for it; missing where it
    /// brings everything along.
    #[serde(skip_serializing_if = "Option::is_none")]
    dependencies: Option<Vec<String>>,
    tools: Vec<BundlePart>,
    prompts: Vec<BundlePart>,
    /// Whether it may have more tools than it names.
    has_more_tools: bool,
    values: Vec<BundleValue>,
    /// Servers of the tenant that run a bundle of this name.
    used_by: Vec<BundleServer>,
}

/// A tool or a prompt that a bundle names.
#[derive(Serialize, ToSchema)]
struct BundlePart {
    name: String,
    description: String,
}

/// A value that a bundle wants of a person.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BundleValue {
    /// Names the answer in `values`.
    key: String,
    title: String,
    description: String,
    /// `string`, `number`, `boolean`, or a path below `/workspace`: `directory`, `file`.
    kind: String,
    is_required: bool,
    /// It is kept sealed, and never shown.
    is_secret: bool,
    /// Each line of the answer is a value of its own.
    is_repeated: bool,
    /// What is taken where nothing is answered.
    #[serde(rename = "default", skip_serializing_if = "Option::is_none")]
    default_value: Option<String>,
    /// The least number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    min: Option<Number>,
    /// The greatest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    max: Option<Number>,
}

/// A server that runs a bundle.
#[derive(Serialize, ToSchema)]
struct BundleServer {
    server: String,
    version: String,
    sha256: String,
    /// What was answered for it, but for secrets.
    values: BTreeMap<String, String>,
}

/// What a person answered to a bundle.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct BundleEntryRequest {
    /// The answers, by the key of their value.
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
    /// The hosts that it may reach; none without it.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub(super) network: Vec<String>,
}

/// Which server gets the bundle in place of the one that it runs.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct BundleReplaceRequest {
    #[schema(value_type = String, required, max_length = 64)]
    pub(super) server: Option<String>,
    /// The `sha256` of the bundle that the server ran when the person looked.
    #[schema(value_type = String, required, max_length = 64)]
    pub(super) seen: Option<String>,
    /// The answers, secrets included: none of the old bundle's is taken along.
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
    /// The hosts that it may reach; those of before without it.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub(super) network: Vec<String>,
}

impl From<BundleReport> for Bundle {
    fn from(report: BundleReport) -> Self {
        let BundleFacts {
            name,
            title,
            version,
            description,
            author,
            homepage,
            license,
            kind,
            command,
            args,
            env,
            entry_point: _,
            runtime,
            dependencies,
            tools,
            prompts,
            has_more_tools,
            values,
            names_folders: _,
            files,
            unpacked_bytes,
        } = report.facts;
        Self {
            sha256: report.sha256,
            bytes: report.bytes,
            files,
            unpacked_bytes,
            name,
            title,
            version,
            description,
            author,
            homepage,
            license,
            kind,
            command: std::iter::once(command).chain(args).collect(),
            env,
            runtime,
            dependencies: dependencies.map(|it| it.wanted),
            tools: tools.into_iter().map(Into::into).collect(),
            prompts: prompts.into_iter().map(Into::into).collect(),
            has_more_tools,
            values: values.into_iter().map(Into::into).collect(),
            used_by: report.used_by.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<NamedPart> for BundlePart {
    fn from(part: NamedPart) -> Self {
        Self {
            name: part.name,
            description: part.description,
        }
    }
}

impl From<WantedValue> for BundleValue {
    fn from(value: WantedValue) -> Self {
        Self {
            key: value.key,
            title: value.title,
            description: value.description,
            kind: value.kind,
            is_required: value.is_required,
            is_secret: value.is_secret,
            is_repeated: value.is_repeated,
            default_value: value.default,
            min: value.min,
            max: value.max,
        }
    }
}

impl From<BundleUse> for BundleServer {
    fn from(used: BundleUse) -> Self {
        Self {
            server: used.server,
            version: used.version,
            sha256: used.sha256,
            values: used.values,
        }
    }
}
