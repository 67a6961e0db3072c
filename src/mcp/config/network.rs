//! The hosts that an entry may name for what it runs.

use super::problem::EntryProblem;
use crate::domain::{AllowedHost, MAX_ALLOWED_HOSTS, McpNetwork, McpServerConfig, McpTransport};

/// Characters of a host that a problem quotes.
const MAX_SHOWN: usize = 100;

pub(super) fn check_network(config: &McpServerConfig, found: &mut Vec<EntryProblem>) {
    let hosts = config.network.as_ref().map_or(&[][..], McpNetwork::hosts);
    let mut say = |text: String| found.push(EntryProblem::new("network", text));
    if hosts.is_empty() {
        return;
    }
    match config.transport() {
        McpTransport::Stdio | McpTransport::StdioDocker => {}
        transport @ (McpTransport::Http | McpTransport::Sse) => say(format!(
            "a server with transport `{}` runs elsewhere and reaches what it likes; leave it out",
            transport.as_str()
        )),
    }
    if hosts.len() > MAX_ALLOWED_HOSTS {
        say(format!("at most {MAX_ALLOWED_HOSTS} hosts are possible"));
        return;
    }
    for host in hosts {
        if let Err(problem) = host.parse::<AllowedHost>() {
            let shown: String = host.chars().take(MAX_SHOWN).collect();
            say(format!("`{}`: {problem}", shown.escape_debug()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::check_network;

    fn check(config: Value, expected: &[&str]) {
        let config = serde_json::from_value(config).unwrap();
        let mut found = Vec::new();
        check_network(&config, &mut found);
        let fields: Vec<_> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, expected, "{found:?}");
    }

    #[test]
    fn hosts_are_listed_by_name_for_what_runs_here() {
        let hosts = |hosts: &[&str]| json!({"command": "x", "network": hosts});
        let good = hosts(&[
            "api.github.com",
            "*.example.com:8443",
            "db.example.com:5432",
        ]);
        check(good, &[]);
        check(json!({"command": "x", "network": "none"}), &[]);
        check(hosts(&[]), &[]);
        let wrong = [
            "https://a.example/x",
            "a.example/x",
            "*",
            "10.0.0.1",
            "a.example:0",
        ];
        check(hosts(&wrong), &["network"; 5]);
        let many: Vec<_> = (0..65).map(|number| format!("a{number}.example")).collect();
        check(json!({"command": "x", "network": many}), &["network"]);
        let image = json!({
            "transport": "stdio-docker", "containerImage": "x", "network": ["a.example"],
        });
        check(image, &[]);
        let elsewhere = json!({"url": "https://a.example/mcp", "network": ["a.example"]});
        check(elsewhere, &["network"]);
    }
}
