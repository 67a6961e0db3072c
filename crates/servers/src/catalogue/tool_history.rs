//! Compares each stored version of a tool's definition with the version before. Pure.

use serde_json::{Map, Value, json};

use sepal_core::domain::Timestamp;
use sepal_store::records::ToolVersion;

/// The most changes that are reported for one version; with more, the definition is a different one anyway.
const MAX_CHANGES: usize = 100;

/// One version of a tool's definition, with its differences from the version before.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolChangeReport {
    pub hash: String,
    /// When it was first seen.
    pub since: Timestamp,
    pub changes: Vec<DefinitionDifference>,
}

/// A part of a definition that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionDifference {
    /// The place, as a JSON pointer.
    pub path: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// Returns the reports of versions, which are newest first.
pub(crate) fn reports(versions: &[ToolVersion]) -> Vec<ToolChangeReport> {
    let older = versions.iter().skip(1).map(Some).chain([None]);
    let pairs = versions.iter().zip(older);
    pairs
        .map(|(version, before)| {
            let mut changes = Vec::new();
            if let Some(before) = before {
                let (then, now) = (json!(before.definition), json!(version.definition));
                compare("", Some(&then), Some(&now), &mut changes);
            }
            changes.truncate(MAX_CHANGES);
            ToolChangeReport {
                hash: version.hash.clone(),
                since: version.first_seen,
                changes,
            }
        })
        .collect()
}

fn compare(
    path: &str,
    then: Option<&Value>,
    now: Option<&Value>,
    changes: &mut Vec<DefinitionDifference>,
) {
    if then == now {
        return;
    }
    if let (Some(Value::Object(then)), Some(Value::Object(now))) = (then, now) {
        return compare_members(path, then, now, changes);
    }
    changes.push(DefinitionDifference {
        path: path.to_owned(),
        before: then.cloned(),
        after: now.cloned(),
    });
}

fn compare_members(
    path: &str,
    then: &Map<String, Value>,
    now: &Map<String, Value>,
    changes: &mut Vec<DefinitionDifference>,
) {
    let new = now.keys().filter(|name| !then.contains_key(*name));
    for name in then.keys().chain(new) {
        let step = name.replace('~', "~0").replace('/', "~1");
        let path = format!("{path}/{step}");
        compare(&path, then.get(name), now.get(name), changes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{DefinitionDifference, reports};
    use sepal_core::domain::{Timestamp, Tool, ToolAnnotations};
    use sepal_store::records::ToolVersion;

    fn version(at: i64, description: &str, fields: &[&str]) -> ToolVersion {
        let fields: serde_json::Map<_, _> = fields
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
            .collect();
        let definition = Tool {
            name: "look".into(),
            title: None,
            description: description.into(),
            input_schema: json!({ "type": "object", "properties": fields }),
            output_schema: None,
            annotations: ToolAnnotations::default(),
            needs_tasks: false,
            view: None,
            runs_as_task: false,
        };
        ToolVersion {
            hash: definition.hash().as_str().to_owned(),
            first_seen: Timestamp(at),
            definition,
        }
    }

    #[test]
    fn each_version_says_what_is_other_than_before() {
        let versions = [
            version(3, "Looks", &["a/b"]),
            version(2, "Looks", &["a"]),
            version(1, "Look", &["a"]),
        ];
        let told = reports(&versions);
        let text = json!({ "type": "string" });
        let change = |path: &str, before, after| DefinitionDifference {
            path: path.to_owned(),
            before,
            after,
        };
        assert_eq!(
            told[0].changes,
            [
                change("/inputSchema/properties/a", Some(text.clone()), None),
                change("/inputSchema/properties/a~1b", None, Some(text)),
            ]
        );
        let words = [change(
            "/description",
            Some(json!("Look")),
            Some(json!("Looks")),
        )];
        assert_eq!(told[1].changes, words);
        assert!(told[2].changes.is_empty());
        assert_eq!(told[2].since, Timestamp(1));
    }
}
