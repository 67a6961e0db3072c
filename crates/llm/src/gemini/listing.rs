//! Reads the answer to `GET /models`.

use serde_json::{Map, Value};

use crate::ListedModel;
use crate::listing::{Entry, ModelListing, NoList, Page, named, text, tokens};

/// The method that a listed model must support.
const METHOD: &str = "generateContent";

/// Adds one page of a list to a listing, and returns the token of the next page. An empty page has no list.
pub(super) fn read(body: &[u8], listing: &mut ModelListing) -> Result<Option<String>, NoList> {
    let page = match Page::read(body, &["models", "data"]) {
        Ok(page) => page,
        Err(NoList) if is_empty_object(body) => return Ok(None),
        Err(NoList) => return Err(NoList),
    };
    page.add_to(listing, model);
    Ok(text(page.member("nextPageToken")))
}

/// Reads an entry. The list also has models for embeddings and pictures.
fn model(entry: &Value) -> Entry {
    let Some((name, entry)) = named(entry, "name") else {
        return Entry::Nameless;
    };
    let methods = entry.get("supportedGenerationMethods");
    let methods = methods.and_then(Value::as_array);
    if methods.is_some_and(|methods| methods.iter().all(|method| method != METHOD)) {
        return Entry::Unusable;
    }
    let id = name.strip_prefix("models/").unwrap_or(&name).to_owned();
    Entry::Model(ListedModel {
        id,
        name: text(entry.get("displayName")),
        context_window: tokens(entry.get("inputTokenLimit")),
        max_output: tokens(entry.get("outputTokenLimit")),
        ..ListedModel::default()
    })
}

fn is_empty_object(body: &[u8]) -> bool {
    let read: Result<Map<String, Value>, _> = serde_json::from_slice(body);
    read.is_ok_and(|members| members.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;
    use crate::listing::ModelListing;
    use crate::listing::tests::{Reader, check_odd_entries};

    #[test]
    fn one_odd_model_hides_no_other() {
        check_odd_entries(&Reader {
            list: "models",
            id: "name",
            name: "displayName",
            window: "inputTokenLimit",
            read: |body| {
                let mut listing = ModelListing::default();
                read(body, &mut listing).map(|_| listing)
            },
            has_empty_page: true,
        });
    }

    #[test]
    fn models_that_generate_answers_are_listed_under_their_short_names() {
        let page = json!({ "nextPageToken": "t", "models": [
            { "name": "models/a", "supportedGenerationMethods": ["generateContent"] },
            { "name": "b", "supportedGenerationMethods": null },
            { "name": "models/embedding", "supportedGenerationMethods": ["embedContent"] },
        ]});
        let mut listing = ModelListing::default();
        let next = read(page.to_string().as_bytes(), &mut listing);
        assert_eq!(next, Ok(Some("t".to_owned())));
        let ids: Vec<_> = listing.models.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert!(listing.left_out.is_empty());
    }
}
