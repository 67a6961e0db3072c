//! The configuration of an MCP server, as files, settings and `/api/mcp` spell it (docs/mcp-servers.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum McpTransport {
    /// A command in a container of the session.
    Stdio,
    /// A container image of the session.
    StdioDocker,
    /// Streamable HTTP.
    Http,
    /// The HTTP with SSE of old servers.
    Sse,
}

impl McpTransport {
    /// All of them.
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

/// What a server's container may reach.
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
    /// Nothing.
    None,
}

impl McpNetwork {
    /// The hosts, as they were written; none for `"none"`.
    pub fn hosts(&self) -> &[String] {
        match self {
            Self::Word(NetworkWord::None) => &[],
            Self::Hosts(hosts) => hosts,
        }
    }
}

/// What a server's container may do with the session's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpWorkspace {
    /// It does not see them.
    #[default]
    None,
    /// It can read.
    Ro,
    /// It can read and write.
    Rw,
}

/// How we are known at the authorisation server of a remote server. Without it, we introduce ourselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpOAuth {
    /// The client that somebody registered there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Its secret, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// What is asked for where the server asks for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Who allows access.
    #[serde(default, skip_serializing_if = "McpGrant::is_person")]
    pub grant: McpGrant,
    /// The issuer that the client is registered with: its secret goes to no other. Without one, it is the
    /// issuer that was found first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Other origins than the issuer's where its endpoints may be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoint_origins: Vec<String>,
}

/// Who allows access to a remote server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpGrant {
    /// Each person for themselves.
    #[default]
    Person,
    /// The registered client itself, for everybody who uses the entry.
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

/// The bundle (`.mcpb`) whose files a server is started from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpBundle {
    /// SHA-256 of its file, in hex.
    pub sha256: String,
    /// What a person answered to what it asks for, by key: what is not answered and what is a secret is
    /// not there. Several answers of one question stand on lines of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
}

/// One server's entry. Every field but the transport's own is optional; absent and empty lists
/// differ (S1.25, S1.26).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a member of its own in files"
)]
pub struct McpServerConfig {
    /// How it is reached; without one, `http` where there is a `url`, else `stdio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<McpTransport>,
    /// Whether sessions get it.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// What it is for, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What stands in front of its tools' names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_prefix: Option<String>,
    /// Only these tools, by the server's names; absent = all (S1.23).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_tools: Option<Vec<String>>,
    /// Not these tools; goes before `include_tools` (S1.23).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_tools: Option<Vec<String>>,
    /// Seconds that one call may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// Whether the hints of its tools are believed.
    #[serde(default)]
    pub trusted: bool,
    /// Whether it may ask the session's model for completions (`sampling/createMessage`). Each request
    /// waits for the person, and is paid for as the session's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampling: bool,
    /// The program (`stdio`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Whether code of packages may run while they are installed (`npx`, `uvx` and the like).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_scripts: bool,
    /// The bundle that the command is started in; its files lie at `/packages/bundle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<McpBundle>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where it starts, below `/workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The image (`stdio-docker`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_image: Option<String>,
    /// The image's environment, beside `env`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub container_env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_memory: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_cpu: Option<f64>,
    /// What the container may reach; absent = nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<McpNetwork>,
    /// Secrets that the program never has, by name, each with the hosts of `network` where it goes in on
    /// the way: the program has something that stands for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_hosts: BTreeMap<String, Vec<String>>,
    /// What the container may do with the session's files.
    #[serde(default)]
    pub workspace: McpWorkspace,
    /// The address (`http`, `sse`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Sent with every request to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How we are known to whoever authorises for it (`http`, `sse`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<McpOAuth>,
}

fn enabled() -> bool {
    true
}

impl McpServerConfig {
    /// How it is reached, told or guessed.
    pub fn transport(&self) -> McpTransport {
        self.transport.unwrap_or(if self.url.is_some() {
            McpTransport::Http
        } else {
            McpTransport::Stdio
        })
    }

    /// The texts that may be or hold a secret, each with the name of its field: they are stored sealed,
    /// and what is no mere reference in them is shown to nobody.
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
