//! The definitions of the server that runs in every sandbox, compiled in, so that the first model
//! request never waits for a sandbox.

use crate::domain::Tool;

/// What `sepal-mcp-server --describe` prints; a test of that crate holds the two together.
const DEFINITIONS: &str = include_str!("../../../mcp-server/tools.json");

/// The bundled server's tools, in the order of their names.
pub fn bundled_tools() -> Result<Vec<Tool>, serde_json::Error> {
    serde_json::from_str(DEFINITIONS)
}

#[cfg(test)]
mod tests {
    use super::bundled_tools;

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
