//! The vendor's own search for tools: what it is told, and which of its blocks it takes back. Pure.

use std::collections::HashSet;

use serde_json::Value;

use super::{cache_mark, tool_forms};
use crate::anthropic::assembler::NativeBlock;
use crate::anthropic::searched::{found, is_search, text};
use crate::anthropic::wire::{CacheControl, SearchForm, ToolEntry};
use crate::tool_search::Searchable;

/// The kind of a block that says what a search found.
const RESULT: &str = "tool_search_tool_result";

/// The tools of a request whose vendor searches. The search is the last one that is not deferred, and
/// bears the mark: a deferred tool must have none.
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

/// What the vendor knows of the tools of a request, by which it takes its own blocks back.
#[derive(Debug, Default)]
pub(super) struct Known(HashSet<String>);

impl Known {
    /// Of a request whose vendor does not search nothing is known: none of its searches goes out.
    pub(super) fn of(entries: &[ToolEntry<'_>]) -> Self {
        let searches = entries
            .iter()
            .any(|entry| matches!(entry, ToolEntry::Search(_)));
        let names = entries.iter().filter(|_| searches);
        Self(names.map(|entry| entry.name().to_owned()).collect())
    }

    /// The calls of the search whose blocks the vendor would refuse: it wants to know each tool that
    /// they found, and the search itself.
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

/// Whether a block belongs to one of those calls.
pub(super) fn is_of(block: &Value, calls: &HashSet<&str>) -> bool {
    match text(block, "type") {
        RESULT => calls.contains(text(block, "tool_use_id")),
        "server_tool_use" => calls.contains(text(block, "id")),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
