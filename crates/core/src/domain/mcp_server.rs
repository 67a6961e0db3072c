//! Defines the configuration of an MCP server as files, settings and `/api/mcp` spell it
//! (docs/mcp-servers.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum McpTransport {
    /// A command in a container of the session.
    Stdio,
    /// A container image of the session.
    StdioDocker,
    /// Streamable HTTP.
    Http,
    /// HTTP with SSE, as old servers use it.
    Sse,
}

impl McpTransport {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Stdio, Self::StdioDocker, Self::Http, Self::Sse];

    /// The name on the wire and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StdioDocker => "stdio-docker",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// The network access of a server's container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum McpNetwork {
    /// `"none"`.
    Word(NetworkWord),
    /// Named hosts.
    Hosts(Vec<String>),
}

/// The one word that [`McpNetwork`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkWord {
    /// No network.
    None,
}

impl McpNetwork {
    /// The hosts as written; empty for `"none"`.
    pub fn hosts(&self) -> &[String] {
        match self {
            Self::Word(NetworkWord::None) => &[],
            Self::Hosts(hosts) => hosts,
        }
    }
}

/// The access of a server's container to the session's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpWorkspace {
    /// No access.
    #[default]
    None,
    /// Read only.
    Ro,
    /// Read and write.
    Rw,
}

/// Our registration at the authorisation server of a remote server. Without one, the gateway presents its
/// own client metadata or registers itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpOAuth {
    /// The id of a client that was registered by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The client's secret, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The scopes to request if the server names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// The source of the permission to access the server.
    #[serde(default, skip_serializing_if = "McpGrant::is_person")]
    pub grant: McpGrant,
    /// The issuer of the client's registration: the secret is sent to no other issuer. `None` = the issuer
    /// that was discovered first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Additional origins, beside the issuer's, that its endpoints may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoint_origins: Vec<String>,
}

/// The source of the permission to access a remote server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpGrant {
    /// Each person allows access for themselves.
    #[default]
    Person,
    /// The registered client has access of its own, for everybody who uses the entry.
    ClientCredentials,
}

impl McpGrant {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "what decides whether a field is written gets a reference"
    )]
    fn is_person(&self) -> bool {
        *self == Self::Person
    }
}

/// The bundle (`.mcpb`) with the files of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpBundle {
    /// SHA-256 of the bundle's file, in hex.
    pub sha256: String,
    /// A person's answers to the bundle's settings, by key, without unanswered and secret ones. Several
    /// values of one setting are separated by newlines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
}

/// The configuration of one server. Every field except those of the transport is optional; absent and empty
/// lists differ (S1.25, S1.26).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a member of its own in files"
)]
pub struct McpServerConfig {
    /// The transport; absent = `http` if there is a `url`, otherwise `stdio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<McpTransport>,
    /// True if sessions use the server.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// The purpose of the server, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The prefix of its tools' names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_prefix: Option<String>,
    /// Includes only these tools, by the server's names; absent = all (S1.23).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_tools: Option<Vec<String>>,
    /// Excludes these tools; takes precedence over `include_tools` (S1.23).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_tools: Option<Vec<String>>,
    /// Time limit of one call, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// True if the annotations of its tools are trusted.
    #[serde(default)]
    pub trusted: bool,
    /// True if the server may request completions from the session's model (`sampling/createMessage`). Each
    /// request waits for the person's approval, and the session pays for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampling: bool,
    /// The program (`stdio`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// True if packages may run code during their installation (`npx`, `uvx` and the like).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_scripts: bool,
    /// The bundle that the command runs in; its files are at `/packages/bundle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<McpBundle>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The working directory, below `/workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The image (`stdio-docker`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_image: Option<String>,
    /// Environment of the image, in addition to `env`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub container_env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_memory: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_cpu: Option<f64>,
    /// The network access of the container; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<McpNetwork>,
    /// Secrets that the program never gets, by name, each with the hosts of `network` whose requests they
    /// are inserted into. The program gets a placeholder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_hosts: BTreeMap<String, Vec<String>>,
    /// The access of the container to the session's files.
    #[serde(default)]
    pub workspace: McpWorkspace,
    /// The address (`http`, `sse`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request to the server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Our registration at the server's authorisation server (`http`, `sse`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<McpOAuth>,
}

fn enabled() -> bool {
    true
}

impl McpServerConfig {
    /// The configured transport, or the one that the other fields imply.
    pub fn transport(&self) -> McpTransport {
        self.transport.unwrap_or(if self.url.is_some() {
            McpTransport::Http
        } else {
            McpTransport::Stdio
        })
    }

    /// The texts that may be or contain a secret, each with the name of its field. They are stored sealed,
    /// and only their references are shown.
    pub fn private_texts(&mut self) -> Vec<(String, &mut String)> {
        let maps = [
            ("env", &mut self.env),
            ("containerEnv", &mut self.container_env),
            ("headers", &mut self.headers),
        ];
        let mut texts: Vec<(String, &mut String)> = maps
            .into_iter()
            .flat_map(|(field, map)| {
                map.iter_mut()
                    .map(move |(name, value)| (format!("{field}.{name}"), value))
            })
            .collect();
        let secret = self.oauth.as_mut().and_then(|it| it.client_secret.as_mut());
        texts.extend(secret.map(|secret| ("oauth.clientSecret".to_owned(), secret)));
        texts.extend(self.url.as_mut().map(|url| ("url".to_owned(), url)));
        texts
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{McpServerConfig, McpTransport, McpWorkspace};

    #[test]
    fn the_common_shape_loads_as_it_is() {
        let check = |value: serde_json::Value, expected: McpTransport| {
            let config: McpServerConfig = serde_json::from_value(value).unwrap();
            assert_eq!(config.transport(), expected);
            assert!(config.enabled && !config.trusted);
            assert_eq!(config.workspace, McpWorkspace::None);
        };
        check(
            json!({"command": "uvx", "args": ["x"]}),
            McpTransport::Stdio,
        );
        check(json!({"url": "https://e.test/mcp"}), McpTransport::Http);
        check(
            json!({"transport": "sse", "url": "https://e.test/sse"}),
            McpTransport::Sse,
        );
        check(
            json!({"transport": "stdio-docker", "containerImage": "mcp/time"}),
            McpTransport::StdioDocker,
        );
    }

    #[test]
    fn absent_and_empty_lists_differ_and_a_typo_is_refused() {
        let empty: McpServerConfig = serde_json::from_value(json!({"includeTools": []})).unwrap();
        assert_eq!(empty.include_tools, Some(Vec::new()));
        let absent: McpServerConfig = serde_json::from_value(json!({})).unwrap();
        assert_eq!(absent.include_tools, None);
        assert!(serde_json::from_value::<McpServerConfig>(json!({"comand": "x"})).is_err());
    }
}
