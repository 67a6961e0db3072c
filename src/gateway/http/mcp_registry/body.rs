//! The request and response bodies of the routes of the registry of published servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::servers::{FilledEntry, Listing, PublishedServer, Question, Way};

/// Which servers are listed.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway) struct RegistryQuery {
    /// A part of the name; of a mirror file also of title and description.
    #[param(max_length = 200)]
    pub(super) search: Option<String>,
    /// `nextCursor` of the answer before.
    #[param(max_length = 1000)]
    pub(super) cursor: Option<String>,
    /// How many; 20 without it.
    #[param(minimum = 1, maximum = 50)]
    pub(super) limit: Option<usize>,
}

/// Published servers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct PublishedServers {
    items: Vec<PublishedServerItem>,
    /// Where the next answer begins; null = this was the last one.
    next_cursor: Option<String>,
}

/// One published server, in its newest version.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PublishedServerItem {
    /// Its name in the registry, such as `io.github.user/weather`.
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    description: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    website_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository_url: Option<String>,
    /// Whether its publisher or the registry advises against it.
    is_deprecated: bool,
    ways: Vec<PublishedWay>,
}

/// One way to run a published server.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PublishedWay {
    /// Names the way.
    id: String,
    /// `npm`, `pypi`, `oci`, `mcpb`, `nuget`, `http`, `sse`, or another word of the registry.
    kind: String,
    /// The package in its version, the image, or the address.
    target: String,
    questions: Vec<PublishedQuestion>,
    /// Why it cannot be added here.
    #[serde(skip_serializing_if = "Option::is_none")]
    lack: Option<&'static str>,
}

/// A value that has to be known before a server can be added.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PublishedQuestion {
    /// Names the answer in `values`.
    key: String,
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    is_required: bool,
    is_secret: bool,
    /// `string`, `number`, `boolean` or `filepath`.
    format: &'static str,
    #[serde(rename = "default", skip_serializing_if = "Option::is_none")]
    default_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placeholder: Option<String>,
    /// The values that are possible; empty = any.
    choices: Vec<String>,
    /// Each line of the answer is a value of its own.
    is_repeated: bool,
}

/// Which server, which way, and what a person answered.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct FillRequest {
    #[schema(max_length = 200)]
    pub(super) name: String,
    #[schema(max_length = 255)]
    pub(super) version: String,
    /// The `id` of a way.
    #[schema(max_length = 40)]
    pub(super) way: String,
    /// The answers, by the key of their question.
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
}

/// An entry to look at, and to add with `POST /api/mcp/add`. Nothing is kept.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct FilledEntryResponse {
    /// A name that the entry may have here.
    name: String,
    /// See docs/mcp-servers.md.
    #[schema(value_type = Object)]
    config: Value,
    /// What `${secret:NAME}` of the entry stand for.
    secrets: BTreeMap<String, String>,
}

impl From<Listing> for PublishedServers {
    fn from(listing: Listing) -> Self {
        Self {
            items: listing.servers.into_iter().map(Into::into).collect(),
            next_cursor: listing.cursor,
        }
    }
}

impl From<PublishedServer> for PublishedServerItem {
    fn from(server: PublishedServer) -> Self {
        Self {
            name: server.name,
            title: server.title,
            description: server.description,
            version: server.version,
            website_url: server.website,
            repository_url: server.repository,
            is_deprecated: server.is_deprecated,
            ways: server.ways.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Way> for PublishedWay {
    fn from(way: Way) -> Self {
        Self {
            id: way.id,
            kind: way.kind,
            target: way.target,
            questions: way.questions.into_iter().map(Into::into).collect(),
            lack: way.lack,
        }
    }
}

impl From<Question> for PublishedQuestion {
    fn from(question: Question) -> Self {
        Self {
            key: question.key,
            label: question.label,
            description: question.description,
            is_required: question.is_required,
            is_secret: question.is_secret,
            format: question.format,
            default_value: question.default,
            placeholder: question.placeholder,
            choices: question.choices,
            is_repeated: question.is_repeated,
        }
    }
}

impl From<FilledEntry> for FilledEntryResponse {
    fn from(entry: FilledEntry) -> Self {
        Self {
            name: entry.name,
            config: entry.config,
            secrets: entry.secrets,
        }
    }
}
