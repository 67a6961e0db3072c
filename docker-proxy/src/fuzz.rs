//! Fuzzes requests to the proxy: every accepted request stays within the template.

use hyper::{Method, Uri};
use serde_json::{Value, json};

use crate::{
    filter::filter,
    name::{ContainerName, sandbox_of_volume},
    request, route,
    settings::{Settings, tests::settings},
    template,
};

const SANDBOX: &str = "sbx_0000000000000000000000000000000a";

#[test]
fn proxy_requests() {
    sepal_fuzz::check("proxy_requests", |input| {
        let (choice, input) = sepal_fuzz::choice(input);
        let end = input.iter().position(|byte| *byte == b'\n');
        let (line, body) = input.split_at(end.unwrap_or(input.len()));
        let Ok(line) = std::str::from_utf8(line) else {
            return;
        };
        match choice % 4 {
            0 => container(line, body),
            1 => volume(body),
            2 => filters(line),
            _ => request_line(line),
        }
    });
}

/// Returns the mounted volumes, and checks that each is mounted at an allowed place.
fn sources(mounts: &[Value], name: &ContainerName) -> Vec<String> {
    let mut sources = Vec::new();
    for mount in mounts {
        assert_eq!(mount["Type"], "volume");
        let source = mount["Source"].as_str().unwrap();
        if mount["Target"] == "/packages" || mount["Target"] == "/sepal" {
            assert!(sandbox_of_volume(source).is_some() && !name.measures);
            assert_eq!(mount["ReadOnly"], true);
        } else {
            assert_eq!(mount["Target"], "/workspace");
            assert_eq!(sandbox_of_volume(source), Some(name.sandbox.as_str()));
        }
        sources.push(source.to_owned());
    }
    sources
}

fn container(name: &str, body: &[u8]) {
    let settings = Settings {
        network: Some("inner".to_owned()),
        ..settings()
    };
    let usual = format!("sepal-sb-{SANDBOX}");
    let Some(name) = ContainerName::parse(name).or_else(|| ContainerName::parse(&usual)) else {
        return;
    };
    let Ok(made) = template::container(&name, body, &settings) else {
        return;
    };
    let (whole, walls) = (&made.body, &made.body["HostConfig"]);
    assert!(settings.allows_image(whole["Image"].as_str().unwrap()));
    assert_eq!(whole["Labels"]["sepal.proxy"], "test");
    assert_eq!(whole["Labels"]["sepal.sandbox"], name.sandbox);
    assert_eq!(walls["Privileged"], false);
    assert_eq!(walls["ReadonlyRootfs"], true);
    assert_eq!(walls["CapDrop"], json!(["ALL"]));
    assert_eq!(walls["SecurityOpt"], json!(["no-new-privileges:true"]));
    for empty in [
        "Binds",
        "VolumesFrom",
        "Devices",
        "DeviceRequests",
        "GroupAdd",
        "Links",
    ] {
        assert_eq!(walls[empty], json!([]), "{empty}");
    }
    for own in ["PidMode", "UTSMode", "UsernsMode"] {
        assert_eq!(walls[own], "", "{own}");
    }
    let network = walls["NetworkMode"].as_str().unwrap();
    assert!(["none", "inner"].contains(&network), "{network}");
    let rights = walls["CapAdd"].as_array().unwrap();
    assert!(rights.is_empty() || name.measures && *rights == [json!("DAC_READ_SEARCH")]);
    assert_eq!(whole["User"] == "0:0", name.measures);
    assert!((1..=settings.most.memory_bytes).contains(&walls["Memory"].as_i64().unwrap()));
    assert_eq!(walls["Memory"], walls["MemorySwap"]);
    let mounts = walls["Mounts"].as_array().unwrap();
    assert!(mounts.len() <= 3);
    assert_eq!(made.volumes, sources(mounts, &name));
    // The created request is itself a valid request that yields the same body; but our own label may exceed
    // the maximum.
    match template::container(&name, whole.to_string().as_bytes(), &settings) {
        Ok(again) => assert_eq!(again.body, *whole),
        Err(refusal) => assert!(refusal.to_string().contains("too many"), "{refusal}"),
    }
}

fn volume(body: &[u8]) {
    let Ok((name, made)) = template::volume(body, &settings()) else {
        return;
    };
    assert!(sandbox_of_volume(&name).is_some_and(|it| made["Labels"]["sepal.sandbox"] == it));
    assert_eq!(made["Driver"], "local");
    let options = made["DriverOpts"].as_object().unwrap();
    let is_size = |size: &Value| size.as_str().is_some_and(|it| it.parse::<u64>().is_ok());
    assert!(
        options
            .iter()
            .all(|(name, value)| name == "size" && is_size(value))
    );
    assert_eq!(made["Labels"]["sepal.proxy"], "test");
}

fn filters(asked: &str) {
    let label = "sepal.proxy=one".parse().unwrap();
    let Ok(filter) = filter(Some(asked), &label) else {
        return;
    };
    let filter: Value = serde_json::from_str(&filter).unwrap();
    let labels = filter["label"].as_array().unwrap();
    assert!(labels.contains(&json!("sepal.proxy=one")));
    assert!(
        labels
            .iter()
            .all(|it| it.as_str().unwrap().starts_with("sepal."))
    );
    assert_eq!(filter.as_object().unwrap().len(), 1);
}

fn request_line(line: &str) {
    let Some((method, uri)) = line.split_once(' ') else {
        return;
    };
    let (Ok(method), Ok(uri)) = (Method::from_bytes(method.as_bytes()), uri.parse::<Uri>()) else {
        return;
    };
    let Ok(path) = request::path(&uri) else {
        return;
    };
    assert!(path.starts_with('/') && !path.contains("..") || !path.contains("/../"));
    let Ok((route, name)) = route::find(&method, path) else {
        return;
    };
    assert_eq!(route.method, method.as_str());
    assert!(name.is_none_or(|name| !name.contains(['?', '#', '%', '\\']) && !name.is_empty()));
    if let Ok(query) = request::Query::parse(&uri, route.query) {
        let _ = route.query.iter().filter(|name| query.is_set(name)).count();
    }
}
