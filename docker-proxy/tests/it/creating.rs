//! Tests that created containers have every wall, and that no request opens one.

use serde_json::{Value, json};

use crate::harness::{Proxy, docker, lines};

#[tokio::test]
async fn what_is_made_has_every_wall() {
    let proxy = Proxy::start().await;
    let id = proxy.create(&proxy.body("true")).await;
    let told: Value = serde_json::from_slice(&docker(&["inspect", &id]).stdout).unwrap();
    let (walls, config) = (&told[0]["HostConfig"], &told[0]["Config"]);
    for (name, expected) in [
        ("Privileged", json!(false)),
        ("CapDrop", json!(["ALL"])),
        ("SecurityOpt", json!(["no-new-privileges:true"])),
        ("NetworkMode", json!("none")),
        ("ReadonlyRootfs", json!(true)),
        ("PidMode", json!("")),
        ("IpcMode", json!("private")),
        ("Memory", json!(2_i64 << 30)),
        ("MemorySwap", json!(2_i64 << 30)),
        ("NanoCpus", json!(2_000_000_000_i64)),
        ("PidsLimit", json!(512)),
        ("AutoRemove", json!(false)),
    ] {
        assert_eq!(walls[name], expected, "{name}");
    }
    assert_eq!(walls["LogConfig"]["Type"], "none");
    assert_eq!(config["User"], "65534:65534");
    let (name, value) = proxy.label.split_once('=').unwrap();
    assert_eq!(config["Labels"][name], value);
    let (status, told) = proxy
        .ask(&format!("DELETE /containers/{id}?force=1"), None)
        .await;
    assert_eq!(status, 204, "{told}");
    assert!(proxy.made().is_empty());
}

/// The fields below `HostConfig` that would open a container.
fn holes() -> Vec<(&'static str, Value)> {
    vec![
        ("Privileged", json!(true)),
        ("Binds", json!(["/:/host"])),
        (
            "Mounts",
            json!([{ "Type": "bind", "Source": "/", "Target": "/workspace" }]),
        ),
        (
            "Mounts",
            json!([{ "Type": "volume", "Target": "/workspace", "VolumeOptions": {
            "DriverConfig": { "Options": { "type": "none", "o": "bind", "device": "/etc" } } } }]),
        ),
        ("NetworkMode", json!("host")),
        ("NetworkMode", json!("container:db")),
        ("PidMode", json!("host")),
        ("IpcMode", json!("host")),
        ("UTSMode", json!("host")),
        ("UsernsMode", json!("host")),
        ("CgroupnsMode", json!("host")),
        ("CgroupParent", json!("/")),
        (
            "Devices",
            json!([{ "PathOnHost": "/dev/kmsg", "PathInContainer": "/dev/kmsg" }]),
        ),
        ("DeviceCgroupRules", json!(["a *:* rwm"])),
        ("CapAdd", json!(["SYS_ADMIN"])),
        ("CapDrop", json!([])),
        ("SecurityOpt", json!(["apparmor=unconfined"])),
        (
            "SecurityOpt",
            json!(["no-new-privileges:true", "seccomp=unconfined"]),
        ),
        ("VolumesFrom", json!(["db"])),
        ("Runtime", json!("other")),
        ("Sysctls", json!({ "net.ipv4.ip_forward": "1" })),
        ("MaskedPaths", json!([])),
        ("Memory", json!(1_i64 << 50)),
        ("PidsLimit", json!(-1)),
    ]
}

#[tokio::test]
async fn no_container_gets_a_hole() {
    let proxy = Proxy::start().await;
    let line = format!("POST /containers/create?name={}", proxy.name());
    for (name, value) in holes() {
        let mut body = proxy.body("true");
        body["HostConfig"][name] = value;
        proxy
            .refuses(&line, Some(&body), &format!("HostConfig.{name}"))
            .await;
    }
    for (name, value) in [
        ("User", json!("root")),
        ("Volumes", json!({ "/x": {} })),
        (
            "NetworkingConfig",
            json!({ "EndpointsConfig": { "bridge": {} } }),
        ),
        ("hostconfig", json!({ "Privileged": true })),
    ] {
        let mut body = proxy.body("true");
        body[name] = value;
        proxy.refuses(&line, Some(&body), name).await;
    }
    for name in [
        "",
        "db",
        "sepal-sb-x",
        "sepal-sb-..%2f..",
        &proxy.name().to_uppercase(),
    ] {
        let line = format!("POST /containers/create?name={name}");
        proxy
            .refuses(&line, Some(&proxy.body("true")), "?name")
            .await;
    }
    let platform = format!("{line}&platform=windows");
    proxy
        .refuses(&platform, Some(&proxy.body("true")), "?platform")
        .await;
    assert!(proxy.made().is_empty());
}

#[tokio::test]
async fn no_volume_is_a_folder_of_the_machine() {
    let proxy = Proxy::start().await;
    let (volume, labels) = (proxy.volume(), json!({ "sepal.sandbox": proxy.sandbox }));
    let bind = json!({ "type": "none", "o": "bind", "device": "/etc" });
    for (name, value) in [
        ("DriverOpts", bind),
        ("Driver", json!("other")),
        ("Name", json!("data")),
        ("Labels", json!({ "sepal.sandbox": "sbx_1" })),
    ] {
        let mut body = json!({ "Name": volume, "Labels": labels });
        body[name] = value;
        proxy
            .refuses("POST /volumes/create", Some(&body), name)
            .await;
    }
    assert!(proxy.made().is_empty());
    let body = json!({ "Name": volume, "Labels": labels });
    let (status, told) = proxy.ask("POST /volumes/create", Some(&body)).await;
    assert_eq!((status, &told["Name"]), (201, &json!(volume)), "{told}");
    assert_eq!(proxy.made(), [volume]);
}

/// Somebody with the whole engine could prepare one; ours is not a way to use it.
#[tokio::test]
async fn a_prepared_volume_is_not_mounted_whatever_its_labels_say() {
    let proxy = Proxy::start().await;
    let (volume, label) = (proxy.volume(), proxy.label.clone());
    let mut prepare = vec!["volume", "create", "--label", &label];
    prepare.extend([
        "--opt",
        "type=none",
        "--opt",
        "o=bind",
        "--opt",
        "device=/etc",
    ]);
    prepare.push(&volume);
    lines(&prepare);
    let mut body = proxy.body("cat /workspace/shadow");
    body["HostConfig"]["Mounts"] = json!([{
        "Type": "volume", "Source": volume, "Target": "/workspace",
    }]);
    let line = format!("POST /containers/create?name={}", proxy.name());
    proxy
        .refuses(&line, Some(&body), "is not of this proxy")
        .await;
    let body = json!({ "Name": volume, "Labels": { "sepal.sandbox": proxy.sandbox } });
    proxy
        .refuses("POST /volumes/create", Some(&body), "is not of this proxy")
        .await;
    let (_, listed) = proxy.ask("GET /volumes", None).await;
    assert_eq!(listed["Volumes"], json!([]));
    assert_eq!(
        proxy
            .ask(&format!("DELETE /volumes/{volume}"), None)
            .await
            .0,
        404
    );
    assert_eq!(proxy.made(), [volume]);
}

#[tokio::test]
async fn only_images_of_the_settings_run_once_some_are_named() {
    let proxy = Proxy::with(|it| it.other_images = vec!["mcp/time".to_owned()]).await;
    let line = format!("POST /containers/create?name={}", proxy.name());
    let mut body = proxy.body("true");
    body["Image"] = json!("busybox");
    proxy.refuses(&line, Some(&body), "`Image`").await;
    proxy
        .refuses("GET /images/busybox/json", None, "`busybox`")
        .await;
    // Allowed, but not there.
    assert_eq!(proxy.ask("GET /images/mcp/time/json", None).await.0, 404);
    proxy.create(&proxy.body("true")).await;
}
