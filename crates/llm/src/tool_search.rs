//! Searches tool definitions instead of sending all of them: by the vendor's own search if it has one, else
//! by two tools of Sepal's, which every model can call.

use std::sync::Arc;

use super::Request;
use sepal_core::domain::Tool;

pub use sepal_config::ToolSearch;

/// The searchable tools of a request, which replace its `tools` if the vendor searches.
#[derive(Debug, Clone, PartialEq)]
pub struct Deferral {
    pub searchable: Arc<Searchable>,
    /// The setting that decides who searches.
    pub by: ToolSearch,
}

/// Tools in the form for a vendor's search: all definitions are sent, and the model sees those that it finds.
/// Each value belongs to one list of `tools`.
#[derive(Debug, PartialEq)]
pub struct Searchable {
    /// The tools that the model sees at once.
    pub told: Arc<[Tool]>,
    /// The tools that the model has to find.
    pub servers: Vec<ServerTools>,
}

/// The tools of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTools {
    pub server: String,
    pub tools: Vec<Tool>,
}

impl Searchable {
    /// The tools that have to be found.
    pub fn deferred(&self) -> impl Iterator<Item = &Tool> {
        self.servers.iter().flat_map(|server| &server.tools)
    }
}

impl Request {
    /// The tools that the vendor searches; `None` if `tools` holds everything that the model may call.
    /// Addresses other than the vendor's own are used for search only if the settings say so.
    pub(super) fn searched_by_vendor(
        &self,
        is_vendor: bool,
        has_search: impl FnOnce(&str) -> bool,
    ) -> Option<&Searchable> {
        let deferral = self.deferral.as_ref()?;
        let is_vendors = match deferral.by {
            ToolSearch::Auto => is_vendor && has_search(&self.model),
            ToolSearch::Vendor => true,
            ToolSearch::Sepal => false,
        };
        is_vendors.then_some(&*deferral.searchable)
    }

    /// All tools that the model may call, whoever searches.
    pub(super) fn all_tools(&self) -> impl Iterator<Item = &Tool> {
        let deferred = self.deferral.iter();
        let deferred = deferred.flat_map(|deferral| deferral.searchable.deferred());
        self.tools.iter().chain(deferred)
    }
}

/// The message for people about a search by the vendor; it is shown among the model's reasoning.
pub(super) fn told(query: &str, found: &[String]) -> String {
    let found = if found.is_empty() {
        "nothing".to_owned()
    } else {
        found.join(", ")
    };
    format!("Searched the tools for \"{query}\" and found {found}.")
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::{Deferral, Searchable, ServerTools, ToolSearch};
    use crate::Request;
    use sepal_core::domain::{Tool, ToolAnnotations};

    fn tool(name: &str) -> Tool {
        let schema: Value = json!({"type": "object", "properties": {"how": {"type": "string"}}});
        Tool {
            name: name.to_owned(),
            title: None,
            description: format!("Does {name}"),
            input_schema: schema,
            output_schema: None,
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        }
    }

    /// A request with the tool `read_file` and three searchable tools of two servers.
    pub(crate) fn deferring(request: Request, by: ToolSearch) -> Request {
        let server = |server: &str, tools: &[&str]| ServerTools {
            server: server.to_owned(),
            tools: tools.iter().map(|name| tool(name)).collect(),
        };
        let searchable = Arc::new(Searchable {
            told: Arc::from([tool("read_file")]),
            servers: vec![
                server("garden", &["paint_fence", "garden.dig"]),
                server("mail", &["send"]),
            ],
        });
        Request {
            tools: ["read_file", "find_tools", "use_tool"].map(tool).into(),
            deferral: Some(Deferral { searchable, by }),
            ..request
        }
    }

    #[test]
    fn the_vendor_searches_at_its_own_address_or_where_the_settings_say_so() {
        for (by, is_vendor, has_search, expected) in [
            (ToolSearch::Auto, true, true, true),
            (ToolSearch::Auto, true, false, false),
            (ToolSearch::Auto, false, true, false),
            (ToolSearch::Vendor, false, false, true),
            (ToolSearch::Sepal, true, true, false),
        ] {
            let request = deferring(Request::default(), by);
            let searched = request.searched_by_vendor(is_vendor, |_| has_search);
            assert_eq!(searched.is_some(), expected, "{by:?}");
            assert_eq!(request.all_tools().count(), 6);
        }
        let plain = Request::default();
        assert!(plain.searched_by_vendor(true, |_| true).is_none());
    }
}
