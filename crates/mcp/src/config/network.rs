//! Checks the hosts that an entry names for what it runs.

use super::expand::{Reference, references};
use super::problem::EntryProblem;
use sepal_core::domain::{
    AllowedHost, MAX_ALLOWED_HOSTS, McpNetwork, McpServerConfig, McpTransport,
};

/// The most characters of a host that a problem quotes.
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

/// Checks the secrets that the proxy inserts on the way to hosts: each has to occur in the environment, and
/// its hosts have to be among those that the server may reach.
pub(super) fn check_secret_hosts(config: &McpServerConfig, found: &mut Vec<EntryProblem>) {
    let environment = config.env.values().chain(config.container_env.values());
    let used: Vec<_> = environment.flat_map(|text| references(text)).collect();
    let parse = |host: &String| host.parse::<AllowedHost>().ok();
    let hosts = config.network.as_ref().map_or(&[][..], McpNetwork::hosts);
    let reached: Vec<_> = hosts.iter().filter_map(parse).collect();
    for (name, hosts) in &config.secret_hosts {
        let field = format!("secretHosts.{name}");
        let mut say = |text: String| found.push(EntryProblem::new(&field, text));
        let is_it = |reference: &Reference| {
            let (Reference::Secret(used) | Reference::Variable(used)) = reference;
            used == name
        };
        if !used.iter().any(is_it) {
            let shown = name.escape_debug();
            say(format!(
                "no variable of the environment refers to it: write `${{secret:{shown}}}` as its value"
            ));
        }
        if hosts.is_empty() {
            say("name the hosts where it goes in, or leave it out".to_owned());
        }
        for host in hosts {
            let shown: String = host.chars().take(MAX_SHOWN).collect();
            let shown = shown.escape_debug();
            match host.parse::<AllowedHost>() {
                Err(problem) => say(format!("`{shown}`: {problem}")),
                Ok(host) if host.port() == Some(80) => {
                    say(format!("`{shown}`: secrets go in by https only"));
                }
                Ok(host) if !reached.contains(&host) => {
                    say(format!("`{shown}` is not among the hosts of `network`"));
                }
                Ok(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check_network, check_secret_hosts};

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

    #[test]
    fn a_secret_goes_in_where_the_server_may_go_and_by_https() {
        let check = |hosts: Value, expected: &[&str]| {
            let config = serde_json::from_value(json!({
                "command": "x", "env": { "A": "Bearer ${secret:TOKEN}" },
                "network": ["api.example.com", "b.example.com:80"], "secretHosts": hosts,
            }));
            let mut found = Vec::new();
            check_secret_hosts(&config.unwrap(), &mut found);
            let said: Vec<_> = found.iter().map(|it| it.message.as_str()).collect();
            assert_eq!(said.len(), expected.len(), "{said:?}");
            for (said, expected) in said.iter().zip(expected) {
                assert!(said.contains(expected), "{said}");
            }
        };
        check(json!({}), &[]);
        check(json!({ "TOKEN": ["api.example.com"] }), &[]);
        check(json!({ "TOKEN": ["API.example.com."] }), &[]);
        check(json!({ "TOKEN": [] }), &["name the hosts"]);
        check(
            json!({ "OTHER": ["api.example.com"] }),
            &["`${secret:OTHER}`"],
        );
        check(
            json!({ "TOKEN": ["c.example.com"] }),
            &["not among the hosts"],
        );
        check(json!({ "TOKEN": ["b.example.com:80"] }), &["https only"]);
        check(json!({ "TOKEN": ["https://a/"] }), &["a scheme"]);
    }
}
