//! Holds the definitions of the server that runs in every sandbox. They are compiled in, so that the first
//! model request never waits for a sandbox.

use sepal_core::domain::{AllowedHosts, Tool};

/// The output of `sepal-mcp-server --describe`; a test of that crate keeps the two equal.
const DEFINITIONS: &str = include_str!("../../../../mcp-server/tools.json");

/// The sentence of the definitions for a sandbox without network.
const SEALED: &str = "There is no network and no terminal";

/// Returns the bundled server's tools, ordered by name.
pub fn bundled_tools() -> Result<Vec<Tool>, serde_json::Error> {
    serde_json::from_str(DEFINITIONS)
}

/// Returns the bundled tools for a sandbox that may reach `hosts`, and the hosts in `on_request` if people
/// allow them: a model that reads that there is no network does not try.
pub fn bundled_tools_with(
    hosts: &[String],
    on_request: &AllowedHosts,
) -> Result<Vec<Tool>, serde_json::Error> {
    let mut tools = bundled_tools()?;
    let through = "through the proxy that the environment names (HTTPS_PROXY)";
    let reach = match (hosts.join(", "), on_request.is_empty()) {
        (hosts, true) if hosts.is_empty() => None,
        (hosts, true) => Some(format!(
            "Of the network, only these hosts can be reached, {through}: {hosts}. There is no terminal"
        )),
        (mut hosts, false) => {
            if !hosts.is_empty() {
                hosts.push_str(", and ");
            }
            Some(format!(
                "Of the network, only these hosts can be reached, {through}: {hosts}what a person allows \
                 for this session (a host that is refused is shown to them, and can be tried again once \
                 they have allowed it). There is no terminal"
            ))
        }
    };
    if let Some(reach) = reach {
        for tool in &mut tools {
            tool.description = tool.description.replace(SEALED, &reach);
        }
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::{bundled_tools, bundled_tools_with};
    use sepal_core::domain::AllowedHosts;

    #[test]
    fn a_model_is_told_what_commands_may_reach() {
        let with = |hosts: &[&str], on_request: &[&str]| {
            let hosts: Vec<_> = hosts.iter().copied().map(str::to_owned).collect();
            let on_request = AllowedHosts::parse(on_request).unwrap();
            bundled_tools_with(&hosts, &on_request).unwrap()
        };
        let check = |hosts: &[&str], on_request: &[&str], expected: &str| {
            let told = with(hosts, on_request);
            let run = told.iter().find(|tool| tool.name == "execute_command");
            let told = &run.unwrap().description;
            assert!(told.contains(expected), "{told}");
            assert!(!told.contains("There is no network"), "{told}");
        };
        assert_eq!(with(&[], &[]), bundled_tools().unwrap());
        let both = ["pypi.org", "files.pythonhosted.org"];
        let expected = "pypi.org, files.pythonhosted.org. There is no terminal";
        check(&both, &[], expected);
        let asked = "what a person allows for this session";
        check(&[], &both, &format!("(HTTPS_PROXY): {asked}"));
        let expected = format!("(HTTPS_PROXY): pypi.org, and {asked}");
        check(&["pypi.org"], &["a.example"], &expected);
    }

    #[test]
    fn the_compiled_definitions_are_the_four_tools_of_the_sandbox() {
        let tools = bundled_tools().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            names,
            ["execute_command", "list_files", "read_file", "write_file"]
        );
    }
}
