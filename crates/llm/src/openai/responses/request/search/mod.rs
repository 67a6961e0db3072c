//! Prepares a request for the vendor's tool search, and filters which search items are sent back. Pure.
//!
//! Deferred tools are grouped in namespaces, one per server. The model sees the name and description of a
//! namespace, and the functions that it loads from it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::form;
use crate::Request;
use crate::openai::omitted::{Omitted, Part};
use crate::openai::responses::searched::{CALL, OUTPUT, is_search, kind, loaded};
use crate::openai::responses::wire::{Namespace, SearchForm, ToolEntry};
use crate::openai::tools::{Strictness, offered};
use crate::request::interleave::Position;
use crate::request::names;
use crate::tool_search::{Searchable, ServerTools};
use sepal_core::domain::Tool;

/// The most tool names that the description of a namespace lists.
const NAMED: usize = 40;

/// The tools of a request whose vendor searches, as JSON.
pub(in crate::openai::responses) fn tools(
    searchable: &Searchable,
    strictness: Strictness,
) -> Result<Option<Arc<RawValue>>, serde_json::Error> {
    let told = offered(&searchable.told, strictness).into_iter();
    let mut entries: Vec<ToolEntry<'_>> = told.map(|tool| ToolEntry::Tool(form(tool))).collect();
    entries.push(ToolEntry::Search(SearchForm::default()));
    for of in &searchable.servers {
        let functions = offered(&of.tools, strictness).into_iter().map(|tool| {
            let mut form = form(tool);
            form.defer_loading = true;
            form
        });
        entries.push(ToolEntry::Namespace(Namespace {
            kind: "namespace",
            name: namespace(&of.server),
            description: description(of),
            tools: functions.collect(),
        }));
    }
    Ok(Some(to_raw_value(&entries)?.into()))
}

/// The namespace of a server. The prefix distinguishes it from functions and from names that the vendor
/// reserves.
fn namespace(server: &str) -> String {
    names::fit(&format!("mcp__{server}")).into_owned()
}

fn description(of: &ServerTools) -> String {
    let names = of.tools.iter().take(NAMED).map(|tool: &Tool| &*tool.name);
    let names: Vec<&str> = names.collect();
    let more = if of.tools.len() > NAMED { ", …" } else { "" };
    format!(
        "The {} tools of the MCP server `{}`: {}{more}",
        of.tools.len(),
        of.server,
        names.join(", ")
    )
}

/// The namespaces of the deferred functions, by function name; empty if the vendor does not search.
#[derive(Debug, Default)]
pub(super) struct Namespaces(HashMap<String, String>);

impl Namespaces {
    pub(super) fn of(request: &Request, omitted: &Omitted) -> Self {
        let deferral = request.deferral.iter();
        let deferral = deferral.filter(|_| !omitted.has(Part::ToolSearch));
        let servers = deferral.flat_map(|deferral| &deferral.searchable.servers);
        let functions = servers.flat_map(|of| {
            let namespace = namespace(&of.server);
            let tools = of.tools.iter();
            tools.map(move |tool| (names::fit(&tool.name).into_owned(), namespace.clone()))
        });
        Self(functions.collect())
    }

    /// The namespace of a function. The vendor requires it with every call, also with calls from before the
    /// function was deferred.
    pub(super) fn get(&self, function: &str) -> Option<&str> {
        self.0.get(function).map(String::as_str)
    }

    /// The blocks of an answer that the vendor accepts: a search is sent only with its result, and only if
    /// all loaded functions still exist. A thought before a dropped search is dropped too.
    pub(super) fn without_stale<'a>(
        &self,
        blocks: Vec<(Position, &'a Value)>,
    ) -> Vec<(Position, &'a Value)> {
        let mut kept: Vec<(Position, &'a Value)> = Vec::with_capacity(blocks.len());
        let mut blocks = blocks.into_iter().peekable();
        while let Some((place, block)) = blocks.next() {
            if !is_search(block) {
                kept.push((place, block));
                continue;
            }
            let output = blocks.next_if(|(_, next)| kind(block) == CALL && kind(next) == OUTPUT);
            match output.filter(|(_, output)| self.knows_all(output)) {
                Some(output) => kept.extend([(place, block), output]),
                None => {
                    while kept
                        .pop_if(|last| last.0 == place && kind(last.1) == "reasoning")
                        .is_some()
                    {}
                }
            }
        }
        kept
    }

    fn knows_all(&self, output: &Value) -> bool {
        let is_known = |(namespace, function): (Option<&str>, &str)| {
            namespace.is_some() && self.get(function) == namespace
        };
        !self.0.is_empty() && loaded(output).into_iter().all(is_known)
    }
}

#[cfg(test)]
mod tests;
