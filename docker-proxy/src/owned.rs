//! Finds our own objects at the engine: those that carry our label.

use hyper::StatusCode;
use serde_json::Value;

use crate::{
    engine::{Engine, Question},
    name,
    refusal::Refusal,
    settings::Label,
};

/// A container of ours. The engine never reuses its id, so an action by id cannot affect a foreign container,
/// whatever happens to the name in between.
#[derive(Debug)]
pub(crate) struct OwnContainer {
    pub(crate) id: String,
    /// The engine's data about the container.
    pub(crate) about: Value,
}

/// Returns true if the labels contain ours.
pub(crate) fn has_label(labels: Option<&Value>, label: &Label) -> bool {
    labels
        .and_then(|labels| labels.get(&label.name)?.as_str())
        .is_some_and(|value| value == label.value)
}

fn is_not_found(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Engine { status, .. } if *status == StatusCode::NOT_FOUND)
}

/// Returns the engine's data at that path; `None` if there is nothing.
async fn look(engine: &Engine, path: String) -> Result<Option<Value>, Refusal> {
    match engine.ask(&Question::get(path)).await {
        Ok(found) => Ok(Some(found)),
        Err(refusal) if is_not_found(&refusal) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Returns our container with that name or id.
pub(crate) async fn container(
    engine: &Engine,
    label: &Label,
    name: &str,
) -> Result<OwnContainer, Refusal> {
    let about = look(engine, format!("/containers/{name}/json")).await?;
    let found = about.filter(|about| has_label(about.pointer("/Config/Labels"), label));
    let found = found.and_then(|about| {
        let id = about.get("Id")?.as_str()?.to_owned();
        name::is_id(&id).then_some(OwnContainer { id, about })
    });
    found.ok_or_else(|| Refusal::Missing {
        kind: "container",
        name: name.to_owned(),
    })
}

/// Fails if a foreign container has that name.
pub(crate) async fn not_foreign_container(
    engine: &Engine,
    label: &Label,
    name: &str,
) -> Result<(), Refusal> {
    match look(engine, format!("/containers/{name}/json")).await? {
        Some(about) if !has_label(about.pointer("/Config/Labels"), label) => {
            Err(Refusal::Foreign {
                kind: "container",
                name: name.to_owned(),
            })
        }
        _ => Ok(()),
    }
}

/// Returns the name of a container in a list.
pub(crate) fn container_name(listed: &Value) -> Option<String> {
    let name = listed.get("Names")?.get(0)?.as_str()?;
    Some(name.trim_start_matches('/').to_owned())
}

/// Returns the name of a volume in a list.
pub(crate) fn volume_name(listed: &Value) -> Option<String> {
    Some(listed.get("Name")?.as_str()?.to_owned())
}

/// Returns true for a volume that this proxy can have made: with our label, and without options other than a
/// size. A volume with other options may be any folder of the machine, whatever its labels say.
pub(crate) fn is_own_volume(about: &Value, label: &Label) -> bool {
    let is_plain = match about.get("Options") {
        None | Some(Value::Null) => true,
        Some(Value::Object(options)) => options.keys().all(|name| name == "size"),
        Some(_) => false,
    };
    let is_local = about.get("Driver").and_then(Value::as_str) == Some("local");
    is_plain && is_local && has_label(about.get("Labels"), label)
}

/// The result of looking up a volume at the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Volume {
    Own,
    Foreign,
    Missing,
}

/// Looks up a volume. Volumes have no ids; but nobody can create one with other driver options than a size
/// through the proxy, and whoever can create one elsewhere controls the whole engine.
pub(crate) async fn volume(engine: &Engine, label: &Label, name: &str) -> Result<Volume, Refusal> {
    let found = look(engine, format!("/volumes/{name}")).await?;
    Ok(match found {
        None => Volume::Missing,
        Some(about) if is_own_volume(&about, label) => Volume::Own,
        Some(_) => Volume::Foreign,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_volume_with_options_other_than_a_size_is_never_ours() {
        let label: Label = "sepal.proxy=one".parse().unwrap();
        let volume = |labels: Value, driver: &str, options: Value| {
            let about = json!({ "Driver": driver, "Labels": labels, "Options": options });
            is_own_volume(&about, &label)
        };
        let ours = json!({ "sepal.proxy": "one" });
        assert!(volume(ours.clone(), "local", Value::Null));
        assert!(volume(ours.clone(), "local", json!({})));
        // The gateway asks for one where the engine can hold volumes to a size.
        assert!(volume(ours.clone(), "local", json!({ "size": "1048576" })));
        let folder = json!({ "size": "1", "type": "none", "device": "/", "o": "bind" });
        for options in [folder, json!({ "o": "bind" }), json!("size")] {
            assert!(!volume(ours.clone(), "local", options));
        }
        assert!(!volume(ours.clone(), "nfs", Value::Null));
        assert!(!volume(
            json!({ "sepal.proxy": "two" }),
            "local",
            Value::Null
        ));
        assert!(!volume(Value::Null, "local", Value::Null));
        assert!(!is_own_volume(&json!({}), &label));
    }
}
