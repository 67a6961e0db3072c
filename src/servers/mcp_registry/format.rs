//! `server.json` of an MCP registry, as its schema of 2025-12-11 has it, and the answers of its list.
//!
//! It is read leniently: a registry publishes what others wrote, and a field that we do not know
//! must not hide a server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The publisher's metadata of the official registry.
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";

/// An answer of `GET /v0.1/servers`, and what a mirror file holds.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    /// `null` where there are none.
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
    /// The servers of it that can be read.
    pub(super) fn items(self) -> Vec<Item> {
        readable(self.servers.unwrap_or_default())
    }
}

/// One server that is not as it should be hides no other.
pub(super) fn readable(servers: Vec<Value>) -> Vec<Item> {
    let read = servers.into_iter().map(serde_json::from_value);
    read.filter_map(Result::ok).collect()
}

/// One server in one version: what it is, and what the registry says of it. A mirror may hold a bare
/// `server.json`.
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

    /// What the registry says, as `status` or `isLatest`.
    fn said(&self, what: &str) -> Option<&Value> {
        match self {
            Self::Wrapped { meta, .. } => meta.get(OFFICIAL)?.get(what),
            Self::Bare(_) => None,
        }
    }

    /// Whether the registry says that a newer version is there.
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
    /// `npm`, `pypi`, `oci`, `nuget`, `mcpb`, or a word of later.
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
    /// With `{variables}`.
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: Vec<KeyValue>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, Input>,
}

/// A variable of the environment, or a header.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct KeyValue {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) input: Input,
}

/// A word of a command line.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Argument {
    /// `named` or `positional`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// `--flag`, of a named one.
    pub(super) name: Option<String>,
    /// What a positional one is called.
    pub(super) value_hint: Option<String>,
    #[serde(default)]
    pub(super) is_repeated: bool,
    #[serde(flatten)]
    pub(super) input: Input,
}

/// A value that is given, or asked of a person.
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
    /// What nobody is asked for; `{names}` in it stand for `variables`.
    pub(super) value: Option<String>,
    pub(super) default: Option<String>,
    pub(super) placeholder: Option<String>,
    #[serde(default)]
    pub(super) choices: Vec<String>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, Input>,
}
