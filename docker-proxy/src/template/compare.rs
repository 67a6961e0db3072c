//! Compares a request with the request that the template wrote in its place.

use serde_json::Value;

use crate::refusal::Refusal;

/// Refuses the first field whose value differs from the template's, or that the template lacks. The template
/// decides on fields that a request omits or sets to `null`.
pub(super) fn compare(asked: &Value, made: &Value) -> Result<(), Refusal> {
    at(asked, Some(made), "")
}

fn at(asked: &Value, made: Option<&Value>, path: &str) -> Result<(), Refusal> {
    let Some(made) = made else {
        if asked.is_null() {
            return Ok(());
        }
        return Err(Refusal::field(path, "leave it out"));
    };
    match (asked, made) {
        (Value::Null, _) => Ok(()),
        (Value::Object(asked), Value::Object(made)) => {
            asked.iter().try_for_each(|(name, value)| {
                let path = match path {
                    "" => name.clone(),
                    _ => format!("{path}.{name}"),
                };
                at(value, made.get(name), &path)
            })
        }
        (Value::Array(asked), Value::Array(made)) if asked.len() == made.len() => {
            let mut both = asked.iter().zip(made).enumerate();
            both.try_for_each(|(index, (asked, made))| {
                at(asked, Some(made), &format!("{path}[{index}]"))
            })
        }
        _ if asked == made => Ok(()),
        _ => Err(Refusal::field(
            path,
            format!("it has to be `{made}`; leave it out"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_other_or_more_is_named() {
        let made = json!({ "A": 1, "B": { "C": ["x", { "D": true }] } });
        let check = |asked: Value, expected: &str| {
            let text = compare(&asked, &made).map_or_else(|it| it.to_string(), |()| String::new());
            assert!(
                text.contains(expected) && text.is_empty() == expected.is_empty(),
                "{text}"
            );
        };
        check(json!({}), "");
        check(json!({ "A": null, "Z": null, "B": { "C": ["x", {}] } }), "");
        check(made.clone(), "");
        check(json!({ "A": 2 }), "`A`");
        check(json!({ "a": 1 }), "`a`");
        check(json!({ "A": 1, "Privileged": false }), "`Privileged`");
        check(json!({ "B": { "C": ["x", { "D": false }] } }), "`B.C[1].D`");
        check(json!({ "B": { "C": ["x"] } }), "`B.C`");
        check(json!({ "B": { "C": [] } }), "`B.C`");
        check(json!({ "B": { "E": [] } }), "`B.E`");
        check(json!([]), "``");
    }
}
