//! Builds the filter of a list: always our label, and those of Sepal's own labels that a client adds.

use serde_json::{Value, json};

use crate::{refusal::Refusal, settings::Label};

const MAX_LABELS: usize = 16;

/// Returns the filter for the engine. A client may narrow it by labels, and in no other way.
pub(crate) fn filter(asked: Option<&str>, label: &Label) -> Result<String, Refusal> {
    let mut labels = vec![label.to_string()];
    if let Some(asked) = asked.filter(|it| !it.is_empty()) {
        labels.extend(asked_labels(asked)?);
    }
    Ok(json!({ "label": labels }).to_string())
}

fn asked_labels(asked: &str) -> Result<Vec<String>, Refusal> {
    let remedy = "it may have a list of labels that begin with `sepal.`";
    let wrong = |field: &str| Refusal::field(format!("?filters{field}"), remedy);
    let asked: Value = serde_json::from_str(asked).map_err(|_| wrong(""))?;
    let asked = asked.as_object().ok_or_else(|| wrong(""))?;
    if let Some(other) = asked.keys().find(|name| *name != "label") {
        return Err(wrong(&format!(".{other}")));
    }
    // Clients send a list, or an object with `true` for each label.
    let words: Vec<Option<&str>> = match asked.get("label") {
        Some(Value::Array(words)) => words.iter().map(Value::as_str).collect(),
        Some(Value::Object(words)) => words.keys().map(|it| Some(it.as_str())).collect(),
        Some(_) => return Err(wrong(".label")),
        None => Vec::new(),
    };
    let known = words.iter().flatten().filter(|it| it.starts_with("sepal."));
    let known: Vec<String> = known.copied().map(str::to_owned).collect();
    if known.len() != words.len() || known.len() > MAX_LABELS {
        return Err(wrong(".label"));
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: &str) -> Result<Value, String> {
        let label = "sepal.proxy=one".parse().unwrap();
        let filter = filter(Some(asked), &label).map_err(|it| it.to_string())?;
        Ok(serde_json::from_str(&filter).unwrap())
    }

    #[test]
    fn our_label_is_always_in_it() {
        let ours = json!({ "label": ["sepal.proxy=one"] });
        for nothing in ["", "{}", r#"{"label":[]}"#] {
            assert_eq!(check(nothing), Ok(ours.clone()), "{nothing}");
        }
        let both = json!({ "label": ["sepal.proxy=one", "sepal.sandbox=x"] });
        assert_eq!(check(r#"{"label":["sepal.sandbox=x"]}"#), Ok(both.clone()));
        assert_eq!(check(r#"{"label":{"sepal.sandbox=x":true}}"#), Ok(both));
    }

    #[test]
    fn nothing_widens_it() {
        for asked in [
            "x",
            "[]",
            r#"{"name":["db"]}"#,
            r#"{"label":["other=1"]}"#,
            r#"{"label":[5]}"#,
            r#"{"label":"x"}"#,
        ] {
            assert!(check(asked).unwrap_err().contains("`?filters"), "{asked}");
        }
    }
}
