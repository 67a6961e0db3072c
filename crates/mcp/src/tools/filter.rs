//! Decides which tools of a server are offered (S1.23).

use sepal_core::domain::{McpServerConfig, Tool};

/// Returns true if a tool, by the server's own name, passes the lists of its server's entry. Exclusion wins
/// over inclusion; an empty list of included tools includes none (S1.25).
pub fn is_offered(config: &McpServerConfig, tool: &Tool) -> bool {
    let lists = |list: &Option<Vec<String>>| list.as_ref().map(|list| list.contains(&tool.name));
    lists(&config.exclude_tools) != Some(true) && lists(&config.include_tools) != Some(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_offered;
    use sepal_core::domain::{McpServerConfig, Tool};

    #[test]
    fn exclusion_goes_before_inclusion_and_absent_differs_from_empty() {
        let offered = |include: Option<&[&str]>, exclude: Option<&[&str]>| {
            let config: McpServerConfig =
                serde_json::from_value(json!({"includeTools": include, "excludeTools": exclude}))
                    .unwrap();
            let names = ["a", "b", "c"].iter().filter(|name| {
                let tool: Tool = serde_json::from_value(
                    json!({"name": name, "description": "", "inputSchema": {}}),
                )
                .unwrap();
                is_offered(&config, &tool)
            });
            names.copied().collect::<String>()
        };
        assert_eq!(offered(None, None), "abc");
        assert_eq!(offered(Some(&[]), None), "");
        assert_eq!(offered(None, Some(&[])), "abc");
        assert_eq!(offered(Some(&["a", "b"]), None), "ab");
        assert_eq!(offered(None, Some(&["a"])), "bc");
        assert_eq!(offered(Some(&["a", "b"]), Some(&["b", "x"])), "a");
    }
}
