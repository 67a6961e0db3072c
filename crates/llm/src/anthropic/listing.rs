//! Reads the answer to `GET /v1/models`. Compatible servers may omit most fields.

use serde_json::{Map, Value};

use crate::ListedModel;
use crate::catalogue::Ability;
use crate::listing::{Entry, ModelListing, NoList, Page, named, text, tokens};

/// Adds one page of a list to a listing, and returns the id after which the next page begins.
pub(super) fn read(body: &[u8], listing: &mut ModelListing) -> Result<Option<String>, NoList> {
    let page = Page::read(body, &["data", "models"])?;
    page.add_to(listing, model);
    let has_more = page.member("has_more") == Some(&Value::Bool(true));
    Ok(text(page.member("last_id")).filter(|_| has_more))
}

/// Reads an entry. A retired model is listed for the record only: requests that name it
/// fail.
fn model(entry: &Value) -> Entry {
    let Some((id, entry)) = named(entry, "id") else {
        return Entry::Nameless;
    };
    if entry.get("lifecycle").and_then(Value::as_str) == Some("retired") {
        return Entry::Unusable;
    }
    let retires_at = entry.get("retires_at").and_then(Value::as_str);
    let retires_at = retires_at.and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let capabilities = entry.get("capabilities").and_then(Value::as_object);
    Entry::Model(ListedModel {
        id,
        name: text(entry.get("display_name")),
        context_window: tokens(entry.get("max_input_tokens")),
        max_output: tokens(entry.get("max_tokens")),
        abilities: capabilities.map(abilities),
        retires_at: retires_at.map(|at| jiff::tz::TimeZone::UTC.to_datetime(at).date()),
    })
}

/// The model's abilities; all of the vendor's models can call tools.
fn abilities(capabilities: &Map<String, Value>) -> Vec<Ability> {
    let can = |name: &str| {
        let supported = capabilities.get(name).and_then(|it| it.get("supported"));
        supported == Some(&Value::Bool(true))
    };
    let said = [
        (true, Ability::Tools),
        (can("image_input"), Ability::Images),
        (can("pdf_input"), Ability::Pdf),
        (can("thinking"), Ability::Reasoning),
    ];
    let can = said.into_iter().filter(|(can, _)| *can);
    can.map(|(_, ability)| ability).collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::json;

    use super::read;
    use crate::ListedModel;
    use crate::catalogue::Ability;
    use crate::listing::ModelListing;
    use crate::listing::tests::{Reader, check_odd_entries};

    #[test]
    fn limits_abilities_and_the_end_are_read_where_they_are_said() {
        let page = json!({"has_more": false, "last_id": "resembling", "data": [
            {
                "id": "claude-new", "type": "model", "display_name": "Claude New",
                "created_at": "2026-11-01T00:00:00Z", "lifecycle": "deprecated",
                "retires_at": "2027-03-01T08:00:00Z", "max_input_tokens": 1_000_000, "max_tokens": 128_000,
                "capabilities": {
                    "image_input": {"supported": true}, "pdf_input": {"supported": false},
                    "thinking": {"supported": true, "types": {"adaptive": {"supported": true}}},
                },
            },
            {"id": "claude-old", "lifecycle": "retired", "retires_at": "2026-01-05T00:00:00Z"},
            {"id": "resembling", "retires_at": "some day", "capabilities": null, "lifecycle": 4},
        ]});
        let mut listing = ModelListing::default();
        assert_eq!(read(page.to_string().as_bytes(), &mut listing), Ok(None));
        let new = ListedModel {
            id: "claude-new".to_owned(),
            name: Some("Claude New".to_owned()),
            context_window: Some(1_000_000),
            max_output: Some(128_000),
            abilities: Some(vec![Ability::Tools, Ability::Images, Ability::Reasoning]),
            retires_at: Some(date(2027, 3, 1)),
        };
        let resembling = ListedModel {
            id: "resembling".to_owned(),
            ..ListedModel::default()
        };
        assert_eq!(listing, ModelListing::from(vec![new, resembling]));
    }

    #[test]
    fn one_odd_model_hides_no_other() {
        check_odd_entries(&Reader {
            list: "data",
            id: "id",
            name: "display_name",
            window: "max_input_tokens",
            read: |body| {
                let mut listing = ModelListing::default();
                read(body, &mut listing).map(|_| listing)
            },
            has_empty_page: false,
        });
    }

    #[test]
    fn the_next_page_is_asked_for_only_where_there_is_one() {
        for (page, expected) in [
            (
                json!({"data": [], "has_more": true, "last_id": "a"}),
                Some("a"),
            ),
            (json!({"data": [], "has_more": false, "last_id": "a"}), None),
            (json!({"data": [], "has_more": "yes", "last_id": "a"}), None),
            (json!({"data": [], "has_more": true, "last_id": null}), None),
            (json!([]), None),
        ] {
            let found = read(page.to_string().as_bytes(), &mut ModelListing::default());
            assert_eq!(found.unwrap().as_deref(), expected, "{page}");
        }
    }
}
