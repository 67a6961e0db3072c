//! The request and response bodies of the routes of bundles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use crate::servers::{BundleFacts, BundleReport, BundleUse, NamedPart, WantedValue};

/// A stored bundle, as its manifest describes it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct Bundle {
    /// The SHA-256 of the bundle's file, in hex.
    sha256: String,
    /// The size of the bundle's file in bytes.
    bytes: u64,
    /// The number of files in the bundle.
    files: u64,
    /// The total size of all files in bytes.
    unpacked_bytes: u64,
    /// The bundle's name for programs.
    name: String,
    /// The bundle's name for people.
    title: String,
    /// The bundle's version.
    version: String,
    /// The bundle's description.
    description: String,
    /// The bundle's author.
    author: String,
    /// The `https` address of the bundle's homepage; absent if the manifest has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    /// The bundle's license; absent if the manifest has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    /// `node`, `python` or `binary`.
    kind: String,
    /// The command line that starts the server, with `${user_config.KEY}` in place of values.
    command: Vec<String>,
    /// The environment variables of the server, with `${user_config.KEY}` in place of values.
    env: BTreeMap<String, String>,
    /// The supported range of versions of Node or Python; absent if any version is supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<String>,
    /// The packages that are installed from the Python package index, as the bundle's project requests them;
    /// absent if the bundle contains everything it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    dependencies: Option<Vec<String>>,
    /// The tools that the manifest names.
    tools: Vec<BundlePart>,
    /// The prompts that the manifest names.
    prompts: Vec<BundlePart>,
    /// True if the server may have more tools than the manifest names.
    has_more_tools: bool,
    /// The values that a person is asked for.
    values: Vec<BundleValue>,
    /// The servers of the tenant that run a bundle of this name.
    used_by: Vec<BundleServer>,
}

/// A tool or prompt that a manifest names.
#[derive(Serialize, ToSchema)]
struct BundlePart {
    /// The name of the tool or prompt.
    name: String,
    /// The description of the tool or prompt.
    description: String,
}

/// A value that a bundle asks a person for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BundleValue {
    /// The key of the answer in `values`.
    key: String,
    /// The label for people.
    title: String,
    /// The explanation for people.
    description: String,
    /// `string`, `number`, `boolean`, or a path below `/workspace`: `directory` or `file`.
    kind: String,
    /// True if an answer is required.
    is_required: bool,
    /// True if the answer is stored sealed and never shown.
    is_secret: bool,
    /// True if each line of the answer is a separate value.
    is_repeated: bool,
    /// The value that is used without an answer; absent if there is none.
    #[serde(rename = "default", skip_serializing_if = "Option::is_none")]
    default_value: Option<String>,
    /// The smallest allowed number; absent if there is no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    min: Option<Number>,
    /// The largest allowed number; absent if there is no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    max: Option<Number>,
}

/// A server that runs a bundle.
#[derive(Serialize, ToSchema)]
struct BundleServer {
    /// The server's name.
    server: String,
    /// The version of the bundle that the server runs.
    version: String,
    /// The SHA-256 of that bundle's file, in hex.
    sha256: String,
    /// The answers that were given for it, without secrets.
    values: BTreeMap<String, String>,
}

/// The answers to the questions of a bundle.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct BundleEntryRequest {
    /// The answers, by the key of their value.
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
    /// The hosts that the server may reach; none if absent.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub(super) network: Vec<String>,
}

/// The server whose bundle is replaced, and the answers to the questions of the new bundle.
#[derive(Deserialize, ToSchema)]
pub(in crate::gateway) struct BundleReplaceRequest {
    /// The server's name.
    #[schema(value_type = String, required, max_length = 64)]
    pub(super) server: Option<String>,
    /// The `sha256` of the bundle that the server ran when the person looked. The request is refused if the
    /// server runs another bundle by now.
    #[schema(value_type = String, required, max_length = 64)]
    pub(super) seen: Option<String>,
    /// The answers, by the key of their value, including secrets: no secret of the old bundle is kept.
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
    /// The hosts that the server may reach. If absent or `null`, the hosts of the old bundle's entry stay; an
    /// empty list removes them.
    #[schema(max_items = 100)]
    pub(super) network: Option<Vec<String>>,
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
