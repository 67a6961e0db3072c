//! The request and response bodies of the routes of the registry of published servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::servers::{FilledEntry, Listing, PublishedServer, Question, Way};

/// A search for published servers.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway) struct RegistryQuery {
    /// A part of the server's name; in a mirror file also of its title or description.
    #[param(max_length = 200)]
    pub(super) search: Option<String>,
    /// The `nextCursor` of the previous page; absent for the first page.
    #[param(max_length = 1000)]
    pub(super) cursor: Option<String>,
    /// The number of servers in the page, 1 to 50; 20 if absent.
    #[param(minimum = 1, maximum = 50)]
    pub(super) limit: Option<usize>,
}

/// A page of published servers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct PublishedServers {
    /// The servers.
    items: Vec<PublishedServerItem>,
    /// The `cursor` of the next page; `null` on the last page.
    next_cursor: Option<String>,
}

/// A published server in its newest version.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PublishedServerItem {
    /// The server's name in the registry, such as `io.github.user/weather`.
    name: String,
    /// The server's name for people; absent if the registry has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The server's description.
    description: String,
    /// The newest version.
    version: String,
    /// The address of the server's website; absent if the registry has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    website_url: Option<String>,
    /// The address of the source repository; absent if the registry has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    repository_url: Option<String>,
    /// True if the publisher or the registry advises against the server.
    is_deprecated: bool,
    /// The ways to run the server.
    ways: Vec<PublishedWay>,
}

/// A way to run a published server.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PublishedWay {
    /// The id of the way, unique within its server.
    id: String,
    /// `npm`, `pypi`, `oci`, `mcpb`, `nuget`, `http`, `sse`, or another kind of the registry.
    kind: String,
    /// The package with its version, the image, or the address.
    target: String,
    /// The values that a person is asked for before the server can be added.
    questions: Vec<PublishedQuestion>,
    /// The reason the server cannot be added in this way; absent if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    lack: Option<&'static str>,
}

/// A value that a person is asked for before a server can be added.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PublishedQuestion {
    /// The key of the answer in `values`.
    key: String,
    /// The name of the variable, header or argument.
    label: String,
    /// The explanation for people; absent if the registry has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// True if an answer is required.
    is_required: bool,
    /// True if the value is a secret.
    is_secret: bool,
    /// `string`, `number`, `boolean` or `filepath`.
    format: &'static str,
    /// The default value; absent if there is none.
    #[serde(rename = "default", skip_serializing_if = "Option::is_none")]
    default_value: Option<String>,
    /// A text that shows the form of the value; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    placeholder: Option<String>,
    /// The allowed values; empty if any value is allowed.
    choices: Vec<String>,
    /// True if each line of the answer is a separate value.
    is_repeated: bool,
}

/// A published server, the way to run it, and the answers to its questions.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct FillRequest {
    /// The server's name in the registry.
    #[schema(max_length = 200)]
    pub(super) name: String,
    /// The server's version.
    #[schema(max_length = 255)]
    pub(super) version: String,
    /// The `id` of the way.
    #[schema(max_length = 40)]
    pub(super) way: String,
    /// The answers, by the key of their question.
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
}

/// A server entry to review, and to add with `POST /api/mcp/add`. It is not stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::gateway) struct FilledEntryResponse {
    /// A suggested name for the server.
    name: String,
    /// The entry; see docs/mcp-servers.md.
    #[schema(value_type = Object)]
    config: Value,
    /// The values of the `${secret:NAME}` placeholders in the entry, by name.
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
