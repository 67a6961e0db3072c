//! Reduces the engine's answers to the fields that Sepal reads: no addresses, paths or secrets of the machine
//! or of other users.

use serde_json::{Map, Value, json};

const VERSION: &[&str] = &["Version", "Os", "Arch", "KernelVersion"];
const INFO: &[&str] = &[
    "ID",
    "Name",
    "ServerVersion",
    "OSType",
    "Architecture",
    "NCPU",
    "MemTotal",
    "MemoryLimit",
    "SwapLimit",
    "CpuCfsPeriod",
    "CpuCfsQuota",
    "PidsLimit",
    "OomKillDisable",
    "CgroupDriver",
    "CgroupVersion",
    "DefaultRuntime",
    "SecurityOptions",
];
const IMAGE: &[&str] = &["Id", "RepoTags", "Created", "Architecture", "Os", "Size"];
const LISTED: &[&str] = &[
    "Id", "Names", "Image", "ImageID", "Created", "Labels", "State", "Status",
];
const INSPECTED: &[&str] = &["Id", "Name", "Created", "Image", "State", "RestartCount"];
const CREATED: &[&str] = &["Id", "Warnings"];
const VOLUME: &[&str] = &[
    "Name",
    "Driver",
    "Mountpoint",
    "CreatedAt",
    "Labels",
    "Scope",
];

fn only(about: &Value, fields: &[&str]) -> Map<String, Value> {
    let found = fields.iter().filter_map(|field| {
        let value = about.get(*field)?;
        Some(((*field).to_owned(), value.clone()))
    });
    found.collect()
}

/// Does the same for the configuration of an image or a container.
fn config(about: &Value, fields: &[&str]) -> Value {
    Value::Object(only(about.get("Config").unwrap_or(&Value::Null), fields))
}

/// Returns the versions of engine and proxy, with the API version that the proxy speaks.
pub(crate) fn version(about: &Value, minor: u16) -> Value {
    let mut told = only(about, VERSION);
    for name in ["ApiVersion", "MinAPIVersion"] {
        told.insert(name.to_owned(), json!(format!("1.{minor}")));
    }
    Value::Object(told)
}

pub(crate) fn info(about: &Value) -> Value {
    let mut told = only(about, INFO);
    // The names of the runtimes, but not the paths of their programs.
    let names = about.get("Runtimes").and_then(Value::as_object);
    let runtimes = names.into_iter().flat_map(Map::keys);
    let runtimes: Map<String, Value> = runtimes.map(|name| (name.clone(), json!({}))).collect();
    told.insert("Runtimes".to_owned(), Value::Object(runtimes));
    Value::Object(told)
}

pub(crate) fn image(about: &Value) -> Value {
    let mut told = only(about, IMAGE);
    // The volumes that the image declares, because Sepal runs no such image, and the command that it runs.
    let fields = ["Volumes", "Entrypoint", "Cmd"];
    told.insert("Config".to_owned(), config(about, &fields));
    Value::Object(told)
}

pub(crate) fn listed(about: &Value) -> Value {
    Value::Object(only(about, LISTED))
}

pub(crate) fn created(about: &Value) -> Value {
    Value::Object(only(about, CREATED))
}

pub(crate) fn inspected(about: &Value) -> Value {
    let mut told = only(about, INSPECTED);
    told.insert("Config".to_owned(), config(about, &["Image", "Labels"]));
    Value::Object(told)
}

pub(crate) fn volume(about: &Value) -> Value {
    let mut told = only(about, VOLUME);
    told.insert("Options".to_owned(), json!({}));
    Value::Object(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_addresses_stay_at_the_engine() {
        let about = json!({
            "ID": "x", "HttpProxy": "http://me:secret@proxy", "DockerRootDir": "/secret",
            "Swarm": { "secret": 1 }, "Runtimes": { "runc": { "path": "/secret" } },
        });
        let expected = json!({ "ID": "x", "Runtimes": { "runc": {} } });
        assert_eq!(info(&about), expected);
        let about = json!({
            "Id": "x", "LogPath": "/secret", "Mounts": ["secret"],
            "Config": { "Env": ["TOKEN=secret"], "Labels": { "a": "b" } },
        });
        let expected = json!({ "Id": "x", "Config": { "Labels": { "a": "b" } } });
        assert_eq!(inspected(&about), expected);
    }
}
