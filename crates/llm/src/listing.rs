//! Reads the lists of models of all vendors, entry by entry: one odd entry hides no other, and is named.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::ListedModel;

/// The most entries that are named one by one.
const MOST_NAMED: usize = 5;
/// The most characters of an entry in a message.
const MAX_QUOTED: usize = 80;

/// The models that a provider lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelListing {
    pub models: Vec<ListedModel>,
    /// The entries that could not be read, each with the reason, for people.
    pub left_out: Vec<String>,
}

impl From<Vec<ListedModel>> for ModelListing {
    fn from(models: Vec<ListedModel>) -> Self {
        Self {
            models,
            left_out: Vec::new(),
        }
    }
}

/// An entry of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Model(ListedModel),
    /// A model that cannot be asked for answers.
    Unusable,
    Nameless,
}

/// The answer is no list of models.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoList;

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    entries: Vec<Value>,
    /// The members beside the list.
    members: Map<String, Value>,
}

impl Page {
    /// Reads a page. By the specifications the list is a member of an object, under the first of these names
    /// that there is; some servers send it bare.
    pub(crate) fn read(body: &[u8], names: &[&str]) -> Result<Self, NoList> {
        let text = String::from_utf8_lossy(body);
        let read = serde_json::from_str(text.trim_start_matches('\u{feff}'));
        match read.map_err(|_| NoList)? {
            Value::Array(entries) => Ok(Self {
                entries,
                members: Map::new(),
            }),
            Value::Object(mut members) => {
                let list = names.iter().find_map(|name| members.remove(*name));
                let list = list.ok_or(NoList)?;
                let entries = match list {
                    Value::Array(entries) => entries,
                    Value::Null => Vec::new(),
                    Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                        return Err(NoList);
                    }
                };
                Ok(Self { entries, members })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(NoList),
        }
    }

    /// A member beside the list.
    pub(crate) fn member(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// Adds the page's models to a listing.
    pub(crate) fn add_to(&self, listing: &mut ModelListing, read: impl Fn(&Value) -> Entry) {
        for entry in &self.entries {
            match read(entry) {
                Entry::Model(model) => listing.models.push(model),
                Entry::Unusable => {}
                Entry::Nameless => listing.leave_out(entry),
            }
        }
    }
}

impl ModelListing {
    fn leave_out(&mut self, entry: &Value) {
        let said = match self.left_out.len().cmp(&MOST_NAMED) {
            Ordering::Less => {
                let json = entry.to_string();
                let mut quoted: String = json.chars().take(MAX_QUOTED).collect();
                if quoted.len() < json.len() {
                    quoted.push('…');
                }
                format!("an entry of the list of models has no name: `{quoted}`")
            }
            Ordering::Equal => "more entries of the list of models have no name".to_owned(),
            Ordering::Greater => return,
        };
        self.left_out.push(said);
    }
}

/// Returns an entry with its name. A bare text is a name, and the entry has nothing else.
pub(crate) fn named(entry: &Value, name: &str) -> Option<(String, Map<String, Value>)> {
    if let Value::Object(members) = entry {
        return Some((text(members.get(name))?, members.clone()));
    }
    Some((text(Some(entry))?, Map::new()))
}

/// Reads a text that is not empty; a number is one too.
pub(crate) fn text(said: Option<&Value>) -> Option<String> {
    let text = match said? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// Reads a number of tokens, which some write as a text.
pub(crate) fn tokens(said: Option<&Value>) -> Option<u64> {
    let said = match said? {
        Value::Number(number) => return number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().replace(['_', ','], ""),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    said.parse().ok()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the bounds are checked"
)]
fn whole(number: f64) -> Option<u64> {
    (1.0..1e12).contains(&number).then_some(number as u64)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::{Entry, ModelListing, NoList, Page, text};
    use crate::ListedModel;

    /// One vendor's reader, with the names of its members.
    pub(crate) struct Reader {
        pub(crate) list: &'static str,
        pub(crate) id: &'static str,
        pub(crate) name: &'static str,
        pub(crate) window: &'static str,
        pub(crate) read: fn(&[u8]) -> Result<ModelListing, NoList>,
        /// True if an empty page is an empty object.
        pub(crate) has_empty_page: bool,
    }

    /// Checks that an odd entry of a list changes only itself, and is named if it has no name.
    pub(crate) fn check_odd_entries(reader: &Reader) {
        let Reader {
            list,
            id,
            name,
            window,
            read,
            has_empty_page,
        } = reader;
        for (entry, expected) in [
            (json!({ *id: "m" }), Some(("m", None))),
            (json!({ *id: "m", *name: 5 }), Some(("m", None))),
            (json!({ *id: "m", *name: null }), Some(("m", None))),
            (json!({ *id: "m", *name: {} }), Some(("m", None))),
            (json!({ *id: 5 }), Some(("5", None))),
            (json!("m"), Some(("m", None))),
            (json!({ *id: "m", *window: 8192 }), Some(("m", Some(8192)))),
            (
                json!({ *id: "m", *window: "8192" }),
                Some(("m", Some(8192))),
            ),
            (
                json!({ *id: "m", *window: 8192.0 }),
                Some(("m", Some(8192))),
            ),
            (json!({ *id: "m", *window: null }), Some(("m", None))),
            (json!({ *id: "m", *window: "large" }), Some(("m", None))),
            (json!({ *id: "m", *window: -1 }), Some(("m", None))),
            (json!({ *id: "m", *window: [1] }), Some(("m", None))),
            (json!({ "object": "model" }), None),
            (json!({ *id: "" }), None),
            (json!({ *id: {} }), None),
            (json!(true), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            let body = json!({ *list: [{ *id: "a" }, entry, { *id: "b" }] }).to_string();
            let found = read(body.as_bytes()).unwrap();
            let models = found.models.iter();
            let models: Vec<_> = models
                .map(|it| (it.id.as_str(), it.context_window))
                .collect();
            let wanted = [Some(("a", None)), expected, Some(("b", None))];
            let wanted: Vec<_> = wanted.into_iter().flatten().collect();
            assert_eq!(models, wanted, "{entry}");
            let named = found
                .left_out
                .iter()
                .filter(|it| it.contains(&entry.to_string()));
            assert_eq!(named.count(), usize::from(expected.is_none()), "{entry}");
        }
        let one = json!([{ *id: "a" }]);
        for (body, expected) in [
            (json!({ *list: one }), Some(1)),
            (one.clone(), Some(1)),
            (json!({ *list: null }), Some(0)),
            (json!({ *list: "none" }), None),
            (json!({ *list: {} }), None),
            (json!({}), has_empty_page.then_some(0)),
            (json!("none"), None),
            (Value::Null, None),
        ] {
            let found = read(body.to_string().as_bytes());
            assert_eq!(found.ok().map(|it| it.models.len()), expected, "{body}");
        }
        let marked = read("\u{feff}[]".as_bytes());
        assert_eq!(marked, Ok(ModelListing::default()));
        assert_eq!(read(b"<html>"), Err(NoList));
    }

    #[test]
    fn only_the_first_of_many_odd_entries_are_named() {
        let page = Page::read(
            json!([{}, {}, {}, {}, {}, {}, {}, "m"])
                .to_string()
                .as_bytes(),
            &[],
        );
        let mut listing = ModelListing::default();
        page.unwrap()
            .add_to(&mut listing, |entry| match text(Some(entry)) {
                Some(id) => Entry::Model(ListedModel {
                    id,
                    ..ListedModel::default()
                }),
                None => Entry::Nameless,
            });
        assert_eq!((listing.models.len(), listing.left_out.len()), (1, 6));
        assert!(
            listing.left_out[5].starts_with("more entries"),
            "{listing:?}"
        );
    }
}
