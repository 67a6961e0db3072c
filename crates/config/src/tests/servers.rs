//! MCP servers of the settings: both sources, and how they are merged.

use std::collections::BTreeMap;

use super::{check_refused, env, file, loaded, yaml};
use crate::Sources;
use sepal_core::domain::{McpServerConfig, McpTransport};

fn servers(sources: &Sources) -> BTreeMap<String, McpServerConfig> {
    loaded(sources).settings.mcp_servers
}

fn named(server: &str) -> String {
    format!("agent: {{connections: {{mcpServers: {{{server}}}}}}}")
}

/// Asserts S0.35, S1.23, S1.27.
#[test]
fn the_common_shape_loads_from_yaml_and_json() {
    let text = r#"{"agent": {"connections": {"mcpServers": {
        "time": {"command": "docker", "args": ["run", "-i", "--rm", "mcp/time"]},
        "web": {"url": "https://e.test/mcp", "includeTools": [], "exclude_tools": ["a"]}}}}}"#;
    for sources in [file("a.json", text), yaml(text)] {
        let servers = servers(&sources);
        let time = &servers["time"];
        assert_eq!(time.command.as_deref(), Some("docker"));
        assert_eq!(time.args, ["run", "-i", "--rm", "mcp/time"]);
        assert_eq!((&time.include_tools, &time.exclude_tools), (&None, &None));
        let web = &servers["web"];
        assert_eq!(web.transport(), McpTransport::Http);
        assert_eq!(web.include_tools, Some(Vec::new()));
        assert_eq!(web.exclude_tools, Some(vec!["a".to_owned()]));
    }
    assert!(servers(&yaml("agent: {connections: {mcpServers: }}")).is_empty());
    assert!(servers(&yaml(&named("a: "))).is_empty());
}

/// Asserts S0.41.
#[test]
fn variables_name_servers_with_and_without_the_prefix() {
    let servers = servers(&env(&[
        ("SPL_MCPS_0_ID", "time"),
        ("SPL_MCPS_0_COMMAND", "docker"),
        ("SPL_MCPS_0_ARGS", "run -i  --rm --label=a,b mcp/time"),
        ("MCPS_7_ID", "web"),
        ("MCPS_7_URL", "https://e.test/mcp"),
        ("SPL_MCPS_8_ID", "spaces"),
        ("SPL_MCPS_8_COMMAND", "x"),
        ("SPL_MCPS_8_ARGS", r#"["a b", "c"]"#),
        ("MCPS_8_COMMAND", "y"),
    ]));
    let args = ["run", "-i", "--rm", "--label=a,b", "mcp/time"];
    assert_eq!(servers["time"].args, args);
    assert_eq!(servers["web"].url.as_deref(), Some("https://e.test/mcp"));
    assert_eq!(servers["spaces"].args, ["a b", "c"]);
    assert_eq!(servers["spaces"].command.as_deref(), Some("x"));
    assert_eq!(servers.len(), 3);
}

/// As `./run fetch_url` does: the variable replaces the hosts of a server in the file.
#[test]
fn a_variable_names_the_hosts_that_a_server_may_reach() {
    let mut sources = yaml(&named("s: {command: c, network: [a.example]}"));
    let pairs = [
        ("SPL_MCPS_0_ID", "s"),
        ("SPL_MCPS_0_NETWORK", "b.example, localhost:8080"),
    ];
    sources.env = env(&pairs).env;
    let network = servers(&sources).remove("s").unwrap().network.unwrap();
    assert_eq!(network.hosts(), ["b.example", "localhost:8080"]);
    let wrong = ("SPL_MCPS_0_NETWORK", "https://b.example");
    check_refused(&env(&[pairs[0], wrong]), &["SPL_MCPS_0_NETWORK", "scheme"]);
}

/// The file's list and the variable (`None` = absent), and the merged list (S1.25-S1.27).
/// Asserts S0.41, S1.24.
#[test]
fn a_list_that_is_given_replaces_and_one_that_is_not_keeps() {
    for (filed, variable, expected) in [
        (None, None, None),
        (None, Some("a"), Some(&["a"][..])),
        (None, Some("a,b"), Some(&["a", "b"])),
        (None, Some("a b"), Some(&["a", "b"])),
        (None, Some(" a, b ,, c\td "), Some(&["a", "b", "c", "d"])),
        (None, Some(","), Some(&[])),
        (None, Some(""), None),
        (Some("[x]"), None, Some(&["x"])),
        (Some("[x]"), Some("a"), Some(&["a"])),
        (Some("[x]"), Some(","), Some(&[])),
        (Some("[x]"), Some(""), Some(&["x"])),
        (Some("[x, y]"), Some("y"), Some(&["y"])),
        (Some("[]"), None, Some(&[])),
        (Some("[]"), Some("a"), Some(&["a"])),
        (Some("null"), None, None),
        (Some("null"), Some("a"), Some(&["a"])),
        (Some("'x, y'"), None, Some(&["x", "y"])),
    ] {
        for (field, name) in [
            ("includeTools", "SPL_MCPS_0_INCLUDE_TOOLS"),
            ("excludeTools", "MCPS_0_EXCLUDE_TOOLS"),
        ] {
            let list = filed.map_or_else(String::new, |list| format!(", {field}: {list}"));
            let mut sources = yaml(&named(&format!("s: {{command: c{list}}}")));
            let id = ("SPL_MCPS_0_ID", "s");
            let pairs: Vec<_> = [Some(id), variable.map(|value| (name, value))]
                .into_iter()
                .flatten()
                .collect();
            sources.env = env(&pairs).env;
            let server = servers(&sources).remove("s").unwrap();
            let (found, other) = match field {
                "includeTools" => (server.include_tools, server.exclude_tools),
                _ => (server.exclude_tools, server.include_tools),
            };
            let found = found
                .as_ref()
                .map(|list| list.iter().map(String::as_str).collect());
            let expected = expected.map(<[&str]>::to_vec);
            assert_eq!(found, expected, "{filed:?} {variable:?} {field}");
            assert_eq!(other, None);
            assert_eq!(server.command.as_deref(), Some("c"));
        }
    }
}

#[test]
fn variables_are_expanded_in_every_text_of_a_server() {
    let mut sources = yaml(&named(
        "a: {url: 'https://$HOST/mcp', headers: {Authorization: 'Bearer ${KEY}'}}, \
         b: {command: c, args: ['$HOST', '$$x'], env: {KEY: '$KEY'}, trusted: '$YES'}",
    ));
    sources.env = env(&[("HOST", "127.0.0.1"), ("KEY", "k"), ("YES", "true")]).env;
    let servers = servers(&sources);
    assert_eq!(servers["a"].url.as_deref(), Some("https://127.0.0.1/mcp"));
    assert_eq!(servers["a"].headers["Authorization"], "Bearer k");
    assert_eq!(servers["b"].args, ["127.0.0.1", "$x"]);
    assert_eq!(servers["b"].env["KEY"], "k");
    assert!(servers["b"].trusted);
    let missing = yaml(&named("a: {command: c, env: {A: '$NO'}}"));
    check_refused(&missing, &["mcpServers.a.env", "`NO` is not set"]);
}

#[test]
fn a_server_that_could_never_start_is_refused() {
    for (server, pieces) in [
        ("'a b': {command: c}", &["`a b` is no name", "1 to 64"][..]),
        ("a: {}", &["mcpServers.a.command", "`stdio` needs it"]),
        (
            "a: {transport: http}",
            &["mcpServers.a.url", "`http` needs it"],
        ),
        ("a: {transport: stdio-docker}", &["containerImage"]),
        (
            "a: {command: c, url: 'http://h'}",
            &["transport", "both set"],
        ),
        (
            "a: {comand: c}",
            &["unknown field", "did you mean `command`?"],
        ),
        ("a: {command: c, args: [1]}", &["`1` is not a text"]),
        (
            "a: {command: c, env: {A: 1}}",
            &["the value of `A`", "quotes"],
        ),
        (
            "a: {command: c, includeTools: 5}",
            &["includeTools", "not a list"],
        ),
        (
            "a: {command: c, tool_prefix: x, toolPrefix: y}",
            &["two spellings"],
        ),
        (
            "a: {url: 'ftp://h'}",
            &["mcpServers.a.url", "not such an address"],
        ),
        (
            "a: {command: c, network: ['https://api.example']}",
            &["mcpServers.a.network", "begins with a scheme", "`none`"],
        ),
        ("a: {command: c, workspace: full}", &["`none`, `ro`, `rw`"]),
        ("a: 5", &["a section is expected"]),
    ] {
        check_refused(&yaml(&named(server)), pieces);
    }
    let url = ("SPL_MCPS_0_URL", "https://h");
    check_refused(&env(&[url]), &["SPL_MCPS_0_ID", "not set"]);
    check_refused(
        &env(&[url, ("SPL_MCPS_0_ID", "a/b")]),
        &["SPL_MCPS_0_ID", "no name"],
    );
    check_refused(
        &env(&[("SPL_MCPS_0_COMAND", "x")]),
        &["unknown variable", "did you mean `SPL_MCPS_0_COMMAND`?"],
    );
    let twice = [("SPL_MCPS_0_ID", "a"), url, ("SPL_MCPS_1_ID", "a")];
    check_refused(
        &env(&twice),
        &["variable SPL_MCPS_1_ID", "SPL_MCPS_0_ID names the same"],
    );
}

/// Asserts S0.25, S0.26, S0.29, S0.42, S1.11.
#[test]
fn a_file_of_speelka_loads_unchanged() {
    let loaded = loaded(&yaml(
        r#"
runtime:
  log: {level: debug, output: ./simple.log}
  transports:
    stdio: {enabled: true, buffer_size: 8192}
    http: {enabled: false, host: localhost, port: 3000}
agent:
  name: "simple-speelka-agent"
  version: "1.0.0"
  tool:
    name: "architect"
    description: "Architecture design and assessment tool"
    argument_name: "query"
    argument_description: "Architecture query or task to process"
  chat: {max_tokens: 0, compaction_strategy: "delete-old", max_llm_iterations: 25, request_budget: 0.0}
  llm:
    provider: "openai"
    api_key: "dummy-api-key"
    model: "gpt-4o"
    temperature: 0.7
    prompt_template: "You are a helpful assistant. {{input}}. Available tools: {{tools}}"
    retry: {max_retries: 3, initial_backoff: 1.0, max_backoff: 30.0, backoff_multiplier: 2.0}
  connections:
    mcpServers:
      time: {command: docker, args: [run, -i, --rm, mcp/time]}
      filesystem: {command: mcp-filesystem-server, args: [/path/to/directory]}
"#,
    ));
    let settings = loaded.settings;
    assert!(!settings.runtime.transports.http.enabled);
    assert_eq!(settings.runtime.transports.stdio.buffer_size, 8192);
    assert_eq!(settings.tool.argument_name, "query");
    assert_eq!(settings.chat.max_tokens, None);
    assert_eq!(settings.mcp_servers.len(), 2);
    assert!(loaded.notices[0].contains("dummy"), "{:?}", loaded.notices);
}
