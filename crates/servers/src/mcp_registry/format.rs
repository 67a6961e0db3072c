//! Parses `server.json` of an MCP registry (its schema of 2025-12-11), and the answers of its list.
//!
//! Parsing is lenient: a registry publishes what others wrote, and an unknown field must not hide a server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The key of the official registry's metadata.
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";

/// An answer of `GET /v0.1/servers`, also stored in a mirror file.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    /// `null` if there are none.
    servers: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) metadata: PageMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetadata {
    #[serde(default)]
    pub(super) next_cursor: Option<String>,
}

impl Page {
    /// Returns the servers that can be parsed.
    pub(super) fn items(self) -> Vec<Item> {
        readable(self.servers.unwrap_or_default())
    }
}

/// Parses servers, and skips invalid ones.
pub(super) fn readable(servers: Vec<Value>) -> Vec<Item> {
    let read = servers.into_iter().map(serde_json::from_value);
    read.filter_map(Result::ok).collect()
}

/// One server in one version, with the registry's metadata about it. A mirror may hold a bare `server.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Item {
    Wrapped {
        server: Server,
        #[serde(default, rename = "_meta")]
        meta: BTreeMap<String, Value>,
    },
    Bare(Server),
}

impl Item {
    pub(super) fn server(&self) -> &Server {
        match self {
            Self::Wrapped { server, .. } | Self::Bare(server) => server,
        }
    }

    /// Returns a field of the registry's metadata, such as `status` or `isLatest`.
    fn said(&self, what: &str) -> Option<&Value> {
        match self {
            Self::Wrapped { meta, .. } => meta.get(OFFICIAL)?.get(what),
            Self::Bare(_) => None,
        }
    }

    /// Returns true if the registry has a newer version.
    pub(super) fn is_outdated(&self) -> bool {
        self.said("isLatest") == Some(&Value::Bool(false))
    }

    /// `active`, `deprecated` or `deleted`.
    pub(super) fn status(&self) -> Option<&str> {
        self.said("status")?.as_str()
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Server {
    /// Reverse DNS with one slash, such as `io.github.user/weather`.
    pub(super) name: String,
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) version: String,
    pub(super) website_url: Option<String>,
    pub(super) repository: Option<Repository>,
    #[serde(default)]
    pub(super) packages: Vec<Package>,
    #[serde(default)]
    pub(super) remotes: Vec<Remote>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Repository {
    #[serde(default)]
    pub(super) url: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Package {
    /// `npm`, `pypi`, `oci`, `nuget`, `mcpb`, or a later kind.
    pub(super) registry_type: String,
    pub(super) identifier: String,
    pub(super) version: Option<String>,
    pub(super) transport: Transport,
    #[serde(default)]
    pub(super) runtime_arguments: Vec<Argument>,
    #[serde(default, rename = "packageArguments")]
    pub(super) arguments: Vec<Argument>,
    #[serde(default)]
    pub(super) environment_variables: Vec<KeyValue>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Transport {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Remote {
    /// `streamable-http` or `sse`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The address, with `{variables}`.
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: Vec<KeyValue>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, Input>,
}

/// An environment variable or a header.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct KeyValue {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) input: Input,
}

/// An argument of a command line.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Argument {
    /// `named` or `positional`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The flag of a named argument, such as `--flag`.
    pub(super) name: Option<String>,
    /// The label of a positional argument.
    pub(super) value_hint: Option<String>,
    #[serde(default)]
    pub(super) is_repeated: bool,
    #[serde(flatten)]
    pub(super) input: Input,
}

/// A value that is given, or that a person is asked for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) is_required: bool,
    #[serde(default)]
    pub(super) is_secret: bool,
    /// `string`, `number`, `boolean` or `filepath`.
    pub(super) format: Option<String>,
    /// The given value, with `{names}` of `variables`; `None` if a person is asked.
    pub(super) value: Option<String>,
    pub(super) default: Option<String>,
    pub(super) placeholder: Option<String>,
    #[serde(default)]
    pub(super) choices: Vec<String>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, Input>,
}
