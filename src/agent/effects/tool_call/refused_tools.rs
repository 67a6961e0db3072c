//! Remembers the tools that providers refused to be sent, for as long as the session is in memory: one schema that
//! a vendor does not take would otherwise end every turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::Tool;
use crate::servers::ToolOffer;

/// The most tools that are left out; a provider that refuses more is told of the rest.
const MOST: usize = 64;

/// The refused tools of one session.
#[derive(Default)]
pub(super) struct RefusedTools(Mutex<State>);

#[derive(Default)]
struct State {
    /// The refused definitions with the provider of each. A tool whose definition changes is sent again.
    refused: Vec<(String, Tool)>,
    /// The last offer that was made, with the provider and the offer that it was made of, because requests
    /// recognise the same tools by their address.
    last: Option<(String, ToolOffer, ToolOffer)>,
}

impl RefusedTools {
    /// Adds a tool. Returns false if it is there already, or nothing more is left out.
    pub(super) fn add(&self, provider: &str, tool: &Tool) -> bool {
        let mut state = self.state();
        let mut refused = state.refused.iter();
        if refused.any(|(by, other)| by == provider && other == tool) || state.refused.len() >= MOST
        {
            return false;
        }
        state.refused.push((provider.to_owned(), tool.clone()));
        state.last = None;
        true
    }

    /// Returns an offer without the tools that the provider refused.
    pub(super) fn applied(&self, provider: &str, offer: ToolOffer) -> ToolOffer {
        let mut state = self.state();
        let mut refused = state.refused.iter();
        if !refused.any(|(by, _)| by == provider) {
            return offer;
        }
        if let Some((by, of, made)) = &state.last
            && by == provider
            && Arc::ptr_eq(&of.definitions, &offer.definitions)
        {
            return made.clone();
        }
        let deferred = offer.searchable.iter();
        let deferred = deferred.flat_map(|searchable| searchable.deferred());
        let sent: Vec<&Tool> = offer.definitions.iter().chain(deferred).collect();
        let refused = state.refused.iter().filter(|(by, _)| by == provider);
        let refused = refused.filter(|(_, tool)| sent.contains(&tool));
        let names: Vec<&str> = refused.map(|(_, tool)| tool.name.as_str()).collect();
        let made = offer.without(&names);
        state.last = Some((provider.to_owned(), offer, made.clone()));
        made
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::RefusedTools;
    use crate::domain::{Tool, ToolAnnotations};
    use crate::llm::tool_search::{Searchable, ServerTools};
    use crate::servers::ToolOffer;

    fn tool(name: &str, schema: serde_json::Value) -> Tool {
        Tool {
            name: name.to_owned(),
            title: None,
            description: String::new(),
            input_schema: schema,
            output_schema: None,
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        }
    }

    fn names(tools: &[Tool]) -> Vec<&str> {
        tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn a_refused_tool_is_left_out_for_its_provider_until_its_definition_changes() {
        let refused = RefusedTools::default();
        let odd = tool("odd", json!({ "type": "odd" }));
        let offer = |odd: &Tool| ToolOffer {
            definitions: Arc::from([tool("good", json!({})), odd.clone()]),
            searchable: None,
        };
        assert!(refused.add("p", &odd));
        assert!(!refused.add("p", &odd), "known");
        let base = offer(&odd);
        let made = refused.applied("p", base.clone());
        assert_eq!(names(&made.definitions), ["good", "find_tools", "use_tool"]);
        assert!(made.definitions[1].description.contains("`odd`"));
        let again = refused.applied("p", base);
        assert!(Arc::ptr_eq(&made.definitions, &again.definitions));
        let other = refused.applied("q", offer(&odd));
        assert_eq!(names(&other.definitions), ["good", "odd"]);
        let mended = refused.applied("p", offer(&tool("odd", json!({}))));
        assert_eq!(names(&mended.definitions), ["good", "odd"]);
    }

    #[test]
    fn a_tool_that_a_vendor_searches_leaves_the_search() {
        let refused = RefusedTools::default();
        let odd = tool("odd", json!({}));
        let told: Arc<[Tool]> = Arc::from([tool("read_file", json!({}))]);
        let server = ServerTools {
            server: "s".to_owned(),
            tools: vec![tool("good", json!({})), odd.clone()],
        };
        refused.add("p", &odd);
        let offer = ToolOffer {
            definitions: ["read_file", "find_tools", "use_tool"]
                .map(|name| tool(name, json!({})))
                .into(),
            searchable: Some(Arc::new(Searchable {
                told,
                servers: vec![server],
            })),
        };
        let made = refused.applied("p", offer);
        assert_eq!(
            names(&made.definitions),
            ["read_file", "find_tools", "use_tool"]
        );
        let searchable = made.searchable.unwrap();
        assert_eq!(
            names(&searchable.told),
            ["read_file", "find_tools", "use_tool"]
        );
        assert_eq!(names(&searchable.servers[0].tools), ["good"]);
    }
}
