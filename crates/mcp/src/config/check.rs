//! Validates an entry and reports all problems at once (S2.58).

use std::collections::BTreeMap;

use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use super::bundle;
use super::docker_run::as_image;
use super::expand::{Reference, references};
use super::network::{check_network, check_secret_hosts};
use super::oauth;
use super::package::installing_problem;
use super::problem::EntryProblem;
use sepal_core::domain::{McpServerConfig, McpTransport, McpWorkspace};

/// The longest name of a server, in bytes.
const MAX_NAME: usize = 64;
/// The most arguments, variables or headers of one entry.
const MAX_PARTS: usize = 100;
/// The longest text of an entry, in bytes.
const MAX_TEXT: usize = 8 * 1024;

/// The author of an entry, which decides what the entry may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// A person with access to the files of the installation.
    Operator,
    /// A person through `/api/mcp`.
    Person,
}

/// Returns the problem of an invalid server name.
pub fn name_problem(name: &str) -> Option<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_name);
    (!fits)
        .then(|| "a name has 1 to 64 of the characters `a-z`, `A-Z`, `0-9`, `_` and `-`".to_owned())
}

/// Returns all problems of an entry.
pub fn entry_problems(config: &McpServerConfig, author: Author) -> Vec<EntryProblem> {
    let mut found = Vec::new();
    let config = &match as_image(config) {
        Ok(config) => config,
        Err(problem) => return vec![problem],
    };
    check_transport(config, &mut found);
    check_amounts(config, &mut found);
    check_texts(config, &mut found);
    check_network(config, &mut found);
    check_secret_hosts(config, &mut found);
    oauth::check(config, &mut found);
    bundle::check(config, &mut found);
    if author == Author::Operator {
        found.extend(bundle::of_operator(config));
    }
    if author == Author::Person {
        check_references(config, &mut found);
        // A disabled entry may wait until its package can be installed.
        let installing = config.enabled.then(|| installing_problem(config));
        found.extend(installing.flatten());
    }
    found
}

fn check_transport(config: &McpServerConfig, found: &mut Vec<EntryProblem>) {
    let transport = config.transport();
    let has = |value: &Option<String>| value.as_ref().is_some_and(|text| !text.trim().is_empty());
    let mut need = |is_there: bool, field: &str| {
        if !is_there {
            let text = format!("transport `{}` needs `{field}`", transport.as_str());
            found.push(EntryProblem::new(field, text));
        }
    };
    match transport {
        McpTransport::Stdio => need(has(&config.command), "command"),
        McpTransport::StdioDocker => need(has(&config.container_image), "containerImage"),
        McpTransport::Http | McpTransport::Sse => need(has(&config.url), "url"),
    }
    let is_remote = matches!(transport, McpTransport::Http | McpTransport::Sse);
    let mut refuse = |is_there: bool, field: &str| {
        if is_there {
            let text = format!("transport `{}` has no `{field}`", transport.as_str());
            found.push(EntryProblem::new(field, text));
        }
    };
    refuse(is_remote && config.command.is_some(), "command");
    refuse(
        is_remote && config.container_image.is_some(),
        "containerImage",
    );
    refuse(!is_remote && config.url.is_some(), "url");
    refuse(!is_remote && !config.headers.is_empty(), "headers");
    refuse(!is_remote && config.oauth.is_some(), "oauth");
    if let Some(image) = &config.container_image
        && (image.starts_with('-') || image.chars().any(char::is_whitespace))
    {
        let text = format!("`{image}` is no reference of an image");
        found.push(EntryProblem::new("containerImage", text));
    }
    if let Some(url) = config.url.as_ref().filter(|_| is_remote) {
        check_url(url, found);
    }
}

fn check_url(url: &str, found: &mut Vec<EntryProblem>) {
    let mut say = |text: &str| found.push(EntryProblem::new("url", text));
    // The value of a reference is not known yet.
    if !references(url).is_empty() {
        return;
    }
    match Url::parse(url) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            say("an address begins with `http://` or `https://`");
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            say("a password does not belong into an address; use `headers`");
        }
        Ok(url) if url.host_str().is_none_or(str::is_empty) => say("the address has no host"),
        Ok(_) => {}
        Err(error) => say(&format!("not an address: {error}")),
    }
}

fn check_amounts(config: &McpServerConfig, found: &mut Vec<EntryProblem>) {
    let mut within = |field: &str, is_within: bool, range: &str| {
        if !is_within {
            found.push(EntryProblem::new(field, format!("has to be {range}")));
        }
    };
    let memory = config.container_memory.unwrap_or(512);
    within(
        "containerMemory",
        (16..=1_048_576).contains(&memory),
        "between 16 and 1048576 (MiB)",
    );
    let cpu = config.container_cpu.unwrap_or(0.5);
    within(
        "containerCpu",
        (0.01..=256.0).contains(&cpu),
        "between 0.01 and 256 (cores)",
    );
    let timeout = config.timeout.unwrap_or(60);
    within(
        "timeout",
        (1..=3600).contains(&timeout),
        "between 1 and 3600 (seconds)",
    );
    let parts = [
        ("args", config.args.len()),
        ("env", config.env.len()),
        ("containerEnv", config.container_env.len()),
        ("headers", config.headers.len()),
    ];
    for (field, count) in parts {
        within(field, count <= MAX_PARTS, "100 parts at most");
    }
}

fn check_texts(config: &McpServerConfig, found: &mut Vec<EntryProblem>) {
    let mut say = |field: String, text: &str| found.push(EntryProblem::new(field, text));
    let texts = [
        ("description", &config.description),
        ("command", &config.command),
        ("cwd", &config.cwd),
        ("containerImage", &config.container_image),
        ("url", &config.url),
    ];
    for (field, text) in texts {
        if text.as_ref().is_some_and(|text| !is_fit(text)) {
            say(field.to_owned(), "too long, or holds a NUL character");
        }
    }
    if config.args.iter().any(|text| !is_fit(text)) {
        say("args".into(), "too long, or holds a NUL character");
    }
    let prefix = config.tool_prefix.as_deref().unwrap_or_default();
    if prefix.len() > 32 || (!prefix.is_empty() && name_problem(prefix).is_some()) {
        say(
            "toolPrefix".into(),
            "32 characters at most, of `a-z`, `A-Z`, `0-9`, `_` and `-`",
        );
    }
    if config.cwd.as_deref().is_some_and(leaves_workspace) {
        say("cwd".into(), "has to lie below `/workspace`");
    } else if config.cwd.is_some() && config.workspace == McpWorkspace::None {
        say("cwd".into(), "needs `workspace`: `ro` or `rw`");
    }
    for (field, map) in [
        ("env", &config.env),
        ("containerEnv", &config.container_env),
    ] {
        for (name, value) in map {
            if name.is_empty() || name.contains(['=', '\0']) || !is_fit(value) {
                say(format!("{field}.{name}"), "an impossible name or value");
            }
        }
    }
    for (name, value) in &config.headers {
        let is_name = HeaderName::from_bytes(name.as_bytes()).is_ok();
        // References may expand to anything; the expanded values are checked again.
        if !is_name || HeaderValue::from_str(value).is_err() || !is_fit(value) {
            say(format!("headers.{name}"), "an impossible name or value");
        }
    }
}

/// Checks that an entry written through the API references only its own secrets, never the gateway's
/// environment.
fn check_references(config: &McpServerConfig, found: &mut Vec<EntryProblem>) {
    let mut look = |field: String, text: &str| {
        for reference in references(text) {
            if let Reference::Variable(name) = reference {
                let text = format!(
                    "`${{{name}}}` is possible in the operator's files only; use \
                     `${{secret:{name}}}` and set the secret"
                );
                found.push(EntryProblem::new(field.clone(), text));
            }
        }
    };
    let maps: [(&str, &BTreeMap<String, String>); 3] = [
        ("env", &config.env),
        ("containerEnv", &config.container_env),
        ("headers", &config.headers),
    ];
    for (field, map) in maps {
        for (name, value) in map {
            look(format!("{field}.{name}"), value);
        }
    }
    look("url".into(), config.url.as_deref().unwrap_or_default());
    let secret = config
        .oauth
        .as_ref()
        .and_then(|it| it.client_secret.as_deref());
    look("oauth.clientSecret".into(), secret.unwrap_or_default());
}

fn is_fit(text: &str) -> bool {
    text.len() <= MAX_TEXT && !text.contains('\0')
}

fn leaves_workspace(cwd: &str) -> bool {
    let below = match cwd.strip_prefix('/') {
        Some(absolute) => absolute
            .strip_prefix("workspace")
            .filter(|rest| rest.is_empty() || rest.starts_with('/')),
        None => Some(cwd),
    };
    below.is_none_or(|below| below.split('/').any(|part| part == ".."))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Author, entry_problems, name_problem};

    #[track_caller]
    fn check(config: Value, author: Author, expected: &[&str]) {
        let config = serde_json::from_value(config).unwrap();
        let found = entry_problems(&config, author);
        let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, expected, "{found:?}");
    }

    #[test]
    fn each_transport_needs_its_own_fields() {
        check(json!({}), Author::Person, &["command"]);
        check(json!({"command": "x"}), Author::Person, &[]);
        check(
            json!({"transport": "stdio-docker"}),
            Author::Person,
            &["containerImage"],
        );
        check(json!({"transport": "http"}), Author::Person, &["url"]);
        check(
            json!({"transport": "sse", "url": "ftp://e.test", "command": "x"}),
            Author::Operator,
            &["command", "url"],
        );
        check(
            json!({"transport": "sse", "url": "https://e.test"}),
            Author::Person,
            &[],
        );
        check(
            json!({"url": "https://me:pw@e.test/mcp"}),
            Author::Person,
            &["url"],
        );
        check(
            json!({"command": "x", "headers": {"a": "b"}}),
            Author::Person,
            &["headers"],
        );
    }

    #[test]
    fn every_problem_is_named_at_once() {
        check(
            json!({
                "command": "x", "timeout": 0, "containerMemory": 1, "containerCpu": 1000.0,
                "cwd": "/etc", "env": {"A=B": "x"}, "toolPrefix": "a b",
                "network": ["https://example.test"],
            }),
            Author::Operator,
            &[
                "containerMemory",
                "containerCpu",
                "timeout",
                "toolPrefix",
                "cwd",
                "env.A=B",
                "network",
            ],
        );
        check(
            json!({"command": "x", "workspace": "rw", "cwd": "/workspace/../etc"}),
            Author::Operator,
            &["cwd"],
        );
    }

    #[test]
    fn only_operators_may_read_the_environment() {
        let config = json!({"url": "https://${HOST}/mcp", "headers": {
            "Authorization": "Bearer ${secret:TOKEN}", "X-A": "${DATABASE_URL}",
        }});
        check(config.clone(), Author::Operator, &[]);
        check(config, Author::Person, &["headers.X-A", "url"]);
    }

    #[test]
    fn what_people_add_fetches_nothing_at_its_start() {
        let npx = json!({"command": "npx", "args": ["-y", "some-server"]});
        check(npx, Author::Person, &[]);
        let deno = json!({"command": "deno", "args": ["run", "npm:some-server"]});
        check(deno.clone(), Author::Person, &["command"]);
        check(deno, Author::Operator, &[]);
        check(
            json!({"command": "deno", "args": ["run", "npm:x"], "enabled": false}),
            Author::Person,
            &[],
        );
        check(
            json!({"containerImage": "node", "transport": "stdio-docker", "args": ["npx", "x"]}),
            Author::Person,
            &["args"],
        );
        let image = json!({"command": "docker", "args": ["run", "-i", "node", "uvx", "x"]});
        check(image, Author::Person, &["args"]);
    }

    #[test]
    fn names_are_short_and_plain() {
        for (name, is_fit) in [
            ("github", true),
            ("a-b_C9", true),
            ("", false),
            ("a b", false),
            ("a/b", false),
            ("ä", false),
        ] {
            assert_eq!(name_problem(name).is_none(), is_fit, "{name}");
        }
        assert!(name_problem(&"x".repeat(65)).is_some());
    }
}
