//! The definitions of the server that runs in every sandbox, compiled in, so that the first model
//! request never waits for a sandbox.

use crate::domain::Tool;

/// What `sepal-mcp-server --describe` prints; a test of that crate holds the two together.
const DEFINITIONS: &str = include_str!("../../../mcp-server/tools.json");

/// What they say of the network where there is none.
const SEALED: &str = "There is no network and no terminal";

/// The bundled server's tools, in the order of their names.
pub fn bundled_tools() -> Result<Vec<Tool>, serde_json::Error> {
    serde_json::from_str(DEFINITIONS)
}

/// The same where commands may reach those hosts: a model that reads that there is no network does not
/// try.
pub fn bundled_tools_with(hosts: &[String]) -> Result<Vec<Tool>, serde_json::Error> {
    let mut tools = bundled_tools()?;
    if !hosts.is_empty() {
        let reach = format!(
            "Of the network, only these hosts can be reached, through the proxy that the environment \
             names (HTTPS_PROXY): {}. There is no terminal",
            hosts.join(", ")
        );
        for tool in &mut tools {
            tool.description = tool.description.replace(SEALED, &reach);
        }
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::{bundled_tools, bundled_tools_with};

    #[test]
    fn a_model_is_told_what_commands_may_reach() {
        let with = |hosts: &[&str]| {
            let hosts: Vec<_> = hosts.iter().copied().map(str::to_owned).collect();
            bundled_tools_with(&hosts).unwrap()
        };
        assert_eq!(with(&[]), bundled_tools().unwrap());
        let told = with(&["pypi.org", "files.pythonhosted.org"]);
        let run = told.iter().find(|tool| tool.name == "execute_command");
        let told = &run.unwrap().description;
        assert!(
            told.contains("pypi.org, files.pythonhosted.org. There is no terminal"),
            "{told}"
        );
        assert!(!told.contains("There is no network"), "{told}");
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
