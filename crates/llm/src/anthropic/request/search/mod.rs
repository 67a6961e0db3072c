//! Prepares a request for the vendor's tool search, and filters which search blocks are sent back. Pure.

use std::collections::HashSet;

use serde_json::Value;

use super::{cache_mark, tool_forms};
use crate::anthropic::assembler::NativeBlock;
use crate::anthropic::searched::{found, is_search, text};
use crate::anthropic::wire::{CacheControl, SearchForm, ToolEntry};
use crate::tool_search::Searchable;

/// The kind of a block that holds a search result.
const RESULT: &str = "tool_search_tool_result";

/// The tool entries of a request whose vendor searches. The search tool is the last entry that is not
/// deferred and gets the cache mark, because a deferred tool must not have one.
pub(super) fn entries(searchable: &Searchable, here: CacheControl) -> Vec<ToolEntry<'_>> {
    let mut taken = HashSet::from([SearchForm::NAME.into()]);
    let told = tool_forms(searchable.told.iter(), &mut taken);
    let mut entries: Vec<_> = told.into_iter().map(ToolEntry::Tool).collect();
    entries.push(ToolEntry::Search(SearchForm::bm25()));
    cache_mark(&mut entries, here);
    let deferred = tool_forms(searchable.deferred(), &mut taken);
    entries.extend(deferred.into_iter().map(|mut form| {
        form.defer_loading = true;
        ToolEntry::Tool(form)
    }));
    entries
}

/// The names of the request's tools, by which the vendor accepts its own search blocks.
#[derive(Debug, Default)]
pub(super) struct Known(HashSet<String>);

impl Known {
    /// Collects the tool names. Empty if the vendor does not search; then no search block is sent.
    pub(super) fn of(entries: &[ToolEntry<'_>]) -> Self {
        let searches = entries
            .iter()
            .any(|entry| matches!(entry, ToolEntry::Search(_)));
        let names = entries.iter().filter(|_| searches);
        Self(names.map(|entry| entry.name().to_owned()).collect())
    }

    /// The ids of searches whose blocks the vendor would refuse: it must know the search tool and each tool
    /// that was found.
    pub(super) fn stale<'a>(&self, native: Option<&'a Value>) -> HashSet<&'a str> {
        let native = native.and_then(Value::as_array).into_iter().flatten();
        let blocks = native.filter_map(|native| native.get(NativeBlock::BLOCK));
        let stale = blocks.filter_map(|block| match text(block, "type") {
            RESULT => {
                let mut found = found(block);
                let is_known = !self.0.is_empty() && found.all(|name| self.0.contains(name));
                (!is_known).then(|| text(block, "tool_use_id"))
            }
            "server_tool_use" if is_search(block) && self.0.is_empty() => Some(text(block, "id")),
            _ => None,
        });
        stale.collect()
    }
}

/// Returns true if a block belongs to one of the given searches.
pub(super) fn is_of(block: &Value, calls: &HashSet<&str>) -> bool {
    match text(block, "type") {
        RESULT => calls.contains(text(block, "tool_use_id")),
        "server_tool_use" => calls.contains(text(block, "id")),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
