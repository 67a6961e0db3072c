//! Assembles `reasoning_details`, the reasoning of a model behind `OpenRouter`. The pieces of one entry share
//! an index; the assembled entries are sent back unchanged. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The most entries of one answer; further entries are dropped.
const MOST: usize = 512;
/// Fields that are appended to; any other field is replaced by its last value.
const GROWING: &[&str] = &["text", "summary", "data"];
/// Fields that identify the entry of a piece.
const KEYS: &[&str] = &["type", "index", "id"];

/// The entries of one answer so far.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<BTreeMap<String, Field>>);

#[derive(Debug, PartialEq)]
enum Field {
    Text(String),
    /// A value that is not a text, as JSON.
    Raw(Box<str>),
}

/// A piece of an entry.
type Piece<'a> = BTreeMap<String, &'a RawValue>;

impl Details {
    /// Adds the pieces of one delta and returns their text for people. Anything but a list of objects is
    /// ignored.
    pub(super) fn push(&mut self, raw: &RawValue) -> String {
        let pieces: Vec<Piece<'_>> = serde_json::from_str(raw.get()).unwrap_or_default();
        let mut said = String::new();
        for piece in pieces {
            for name in ["text", "summary"] {
                said.extend(piece.get(name).and_then(|raw| text(raw)));
            }
            match self.0.iter().rposition(|entry| belongs(entry, &piece)) {
                Some(at) => self.grow(at, piece),
                None if self.0.len() < MOST => {
                    self.0.push(BTreeMap::new());
                    self.grow(self.0.len() - 1, piece);
                }
                None => {}
            }
        }
        said
    }

    /// The complete entries, to be sent back; `None` if there are none.
    pub(super) fn take(&mut self) -> Option<Value> {
        let entries = std::mem::take(&mut self.0);
        let whole = entries.into_iter().map(|entry| {
            let fields = entry.into_iter().map(|(name, field)| {
                let value = match field {
                    Field::Text(text) => Value::String(text),
                    Field::Raw(json) => serde_json::from_str(&json).unwrap_or_default(),
                };
                (name, value)
            });
            Value::Object(fields.collect())
        });
        let whole: Vec<Value> = whole.collect();
        (!whole.is_empty()).then_some(Value::Array(whole))
    }

    fn grow(&mut self, at: usize, piece: Piece<'_>) {
        let Some(entry) = self.0.get_mut(at) else {
            return;
        };
        for (name, raw) in piece {
            let more = text(raw);
            match (entry.get_mut(&name), more) {
                (Some(Field::Text(text)), Some(more)) if GROWING.contains(&name.as_str()) => {
                    text.push_str(&more);
                }
                // A later `null` does not erase a value.
                (Some(_), None) if raw.get() == "null" => {}
                (Some(_) | None, Some(text)) => {
                    entry.insert(name, Field::Text(text));
                }
                (Some(_) | None, None) => {
                    entry.insert(name, Field::Raw(raw.get().into()));
                }
            }
        }
    }
}

/// Returns true if a piece continues an entry: same type and index, and no conflicting ids.
fn belongs(entry: &BTreeMap<String, Field>, piece: &Piece<'_>) -> bool {
    KEYS.iter()
        .all(|key| match (entry.get(*key), piece.get(*key)) {
            (None, None) => true,
            (Some(Field::Text(old)), Some(new)) => {
                text(new).is_some_and(|new| new == *old) || *key == "id" && new.get() == "null"
            }
            (Some(Field::Raw(old)), Some(new)) => {
                **old == *new.get() || *key == "id" && &**old == "null"
            }
            (Some(_), None) | (None, Some(_)) => *key == "id",
        })
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::value::{RawValue, to_raw_value};
    use serde_json::{Value, json};

    use super::Details;

    fn check(deltas: &[Value], said: &str, expected: Option<&Value>) {
        let mut details = Details::default();
        let mut told = String::new();
        for delta in deltas {
            told += &details.push(&to_raw_value(delta).unwrap());
        }
        assert_eq!(told, said, "{deltas:?}");
        assert_eq!(details.take().as_ref(), expected, "{deltas:?}");
    }

    #[test]
    fn pieces_of_one_index_become_one_entry() {
        check(
            &[
                json!([{"type": "reasoning.text", "text": "I ", "format": "f", "index": 0}]),
                json!([{"type": "reasoning.text", "text": "see", "format": "f", "index": 0}]),
                json!([{"type": "reasoning.text", "signature": "s", "index": 0, "id": null}]),
                json!([{"type": "reasoning.summary", "summary": ".", "index": 1, "x": {"a": [1, null]}}]),
            ],
            "I see.",
            Some(&json!([
                {"type": "reasoning.text", "text": "I see", "format": "f", "index": 0, "signature": "s", "id": null},
                {"type": "reasoning.summary", "summary": ".", "index": 1, "x": {"a": [1, null]}},
            ])),
        );
    }

    #[test]
    fn entries_of_another_kind_or_id_stay_apart() {
        let signed =
            |id: &str| json!({"type": "reasoning.encrypted", "data": "d", "id": id, "index": 0});
        let text = json!({"type": "reasoning.text", "text": "t", "index": 0});
        check(
            &[json!([text, signed("a")]), json!([signed("b")])],
            "t",
            Some(&json!([text, signed("a"), signed("b")])),
        );
    }

    #[test]
    fn what_is_no_list_says_nothing() {
        for odd in [json!(null), json!({}), json!("x"), json!([1]), json!([])] {
            check(&[odd], "", None);
        }
    }

    #[test]
    fn entries_are_bounded() {
        let mut details = Details::default();
        for index in 0..2_000 {
            let piece = format!(r#"[{{"type":"t","index":{index}}}]"#);
            let raw: Box<RawValue> = serde_json::from_str(&piece).unwrap();
            details.push(&raw);
        }
        let whole = details.take().unwrap();
        assert_eq!(whole.as_array().unwrap().len(), 512);
    }
}
