//! Reads the answer to `GET /models`.

use serde_json::{Map, Value};

use crate::ListedModel;
use crate::listing::{Entry, ModelListing, NoList, Page, named, text, tokens};

/// The names that servers have for the window of a model, the best first.
const WINDOWS: [&str; 6] = [
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_context_tokens",
    "max_input_tokens",
];

/// Returns the models of a list.
pub(super) fn listed(body: &[u8]) -> Result<ModelListing, NoList> {
    let mut listing = ModelListing::default();
    Page::read(body, &["data", "models"])?.add_to(&mut listing, model);
    Ok(listing)
}

fn model(entry: &Value) -> Entry {
    let found = named(entry, "id").or_else(|| named(entry, "name"));
    let Some((id, entry)) = found else {
        return Entry::Nameless;
    };
    Entry::Model(ListedModel {
        id,
        name: text(entry.get("name")),
        context_window: window(&entry),
        ..ListedModel::default()
    })
}

fn window(entry: &Map<String, Value>) -> Option<u64> {
    WINDOWS.iter().find_map(|name| tokens(entry.get(*name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{WINDOWS, listed};
    use crate::listing::tests::{Reader, check_odd_entries};

    #[test]
    fn one_odd_model_hides_no_other() {
        for window in WINDOWS {
            check_odd_entries(&Reader {
                list: "data",
                id: "id",
                name: "name",
                window,
                read: listed,
                has_empty_page: false,
            });
        }
        for (entry, expected) in [
            (json!({"name": "m"}), None),
            (
                json!({"id": "m", "context_length": 8192, "max_model_len": 4096}),
                Some(8192),
            ),
            (
                json!({"id": "m", "context_length": null, "context_window": 8192}),
                Some(8192),
            ),
        ] {
            let found = listed(json!({ "models": [entry] }).to_string().as_bytes()).unwrap();
            let found: Vec<_> = found.models.iter().map(|it| it.context_window).collect();
            assert_eq!(found, [expected], "{entry}");
        }
    }
}
