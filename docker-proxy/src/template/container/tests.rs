//! Tests the container's template with tables.

use super::*;
use crate::settings::tests::settings;

const SANDBOX: &str = "sbx_0000000000000000000000000000000a";

/// Returns the request that Sepal sends.
fn asked() -> Value {
    json!({
        "Hostname": "sandbox",
        "User": "65534:65534",
        "Image": "sepal/sandbox:1",
        "Entrypoint": ["/sepal/mcp-server"],
        "Cmd": ["--workspace", "/workspace"],
        "Env": ["HOME=/workspace"],
        "Labels": { "sepal.sandbox": SANDBOX, "sepal.installation": "x", "sepal.server": "a/b c" },
        "WorkingDir": "/workspace",
        "StdinOnce": true,
        "NetworkDisabled": true,
        "HostConfig": {
            "Memory": 1 << 29, "MemorySwap": 1 << 29, "NanoCpus": 500_000_000, "PidsLimit": 128,
            "NetworkMode": "none", "CapDrop": ["ALL"], "Init": false,
            "Ulimits": [
                { "Name": "nofile", "Soft": 1024, "Hard": 1024 },
                { "Name": "fsize", "Soft": 1 << 30, "Hard": 1 << 30 },
                { "Name": "core", "Soft": 0, "Hard": 0 },
            ],
            "Mounts": [{
                "Type": "volume", "Source": format!("sepal-ws-{SANDBOX}"), "Target": "/workspace",
                "ReadOnly": false,
            }],
        },
    })
}

fn made_as(end: &str, asked: &Value, settings: &Settings) -> Result<Value, String> {
    let name = ContainerName::parse(&format!("sepal-sb-{SANDBOX}{end}")).unwrap();
    let made = container(&name, asked.to_string().as_bytes(), settings);
    made.map(|made| made.body).map_err(|it| it.to_string())
}

fn refused(change: impl FnOnce(&mut Value), expected: &str) {
    let mut asked = asked();
    change(&mut asked);
    let text = made_as("", &asked, &settings()).unwrap_err();
    assert!(text.contains(expected), "{text}");
}

#[test]
fn what_sepal_asks_for_is_made() {
    let made = made_as("", &asked(), &settings()).unwrap();
    assert_eq!(made["Labels"]["sepal.proxy"], "test");
    assert_eq!(made["Labels"]["sepal.server"], "a/b c");
    assert_eq!(made["HostConfig"]["Memory"], 1 << 29);
    assert_eq!(made["HostConfig"]["Mounts"][0]["ReadOnly"], false);
    assert_eq!(made["HostConfig"]["Init"], false);
}

#[test]
fn what_is_left_open_is_closed() {
    let little = json!({ "Image": "a", "Labels": { "sepal.sandbox": SANDBOX } });
    let made = made_as("", &little, &settings()).unwrap();
    let walls = &made["HostConfig"];
    assert_eq!(made["User"], "65534:65534");
    assert_eq!(made["NetworkDisabled"], true);
    assert_eq!(walls["NetworkMode"], "none");
    assert_eq!(walls["CapDrop"], json!(["ALL"]));
    assert_eq!(walls["SecurityOpt"], json!(["no-new-privileges:true"]));
    assert_eq!(walls["ReadonlyRootfs"], true);
    assert_eq!(walls["Memory"], 2_i64 << 30);
    assert_eq!(walls["MemorySwap"], 2_i64 << 30);
    assert_eq!(walls["PidsLimit"], 512);
    assert_eq!(walls["LogConfig"]["Type"], "none");
    assert_eq!(walls["Mounts"], json!([]));
}

#[test]
fn every_hole_is_refused_by_name() {
    let walls: [(&str, Value); 30] = [
        ("Privileged", json!(true)),
        ("Binds", json!(["/:/host"])),
        ("CapAdd", json!(["SYS_ADMIN"])),
        ("CapDrop", json!([])),
        ("SecurityOpt", json!(["seccomp=unconfined"])),
        ("Devices", json!([{ "PathOnHost": "/dev/sda" }])),
        ("DeviceRequests", json!([{ "Driver": "nvidia" }])),
        ("DeviceCgroupRules", json!(["a *:* rwm"])),
        ("NetworkMode", json!("host")),
        ("PidMode", json!("host")),
        ("IpcMode", json!("host")),
        ("UTSMode", json!("host")),
        ("UsernsMode", json!("host")),
        ("CgroupnsMode", json!("host")),
        ("CgroupParent", json!("/")),
        ("Cgroup", json!("container:x")),
        ("VolumesFrom", json!(["db"])),
        ("VolumeDriver", json!("x")),
        ("MaskedPaths", json!([])),
        ("ReadonlyPaths", json!([])),
        ("ReadonlyRootfs", json!(false)),
        ("OomKillDisable", json!(true)),
        ("OomScoreAdj", json!(-1000)),
        ("Sysctls", json!({ "kernel.shm_rmid_forced": "1" })),
        ("StorageOpt", json!({ "size": "1T" })),
        ("LogConfig", json!({ "Type": "syslog" })),
        ("RestartPolicy", json!({ "Name": "always" })),
        ("AutoRemove", json!(true)),
        ("Runtime", json!("other")),
        ("Tmpfs", json!({ "/etc": "" })),
    ];
    for (name, value) in walls {
        let expected = format!("`HostConfig.{name}");
        refused(|it| it["HostConfig"][name] = value, &expected);
    }
    let config = [
        ("User", json!("0:0")),
        ("Tty", json!(true)),
        ("WorkingDir", json!("/etc")),
        ("Volumes", json!({ "/host": {} })),
        (
            "NetworkingConfig",
            json!({ "EndpointsConfig": { "x": {} } }),
        ),
        ("NetworkDisabled", json!(false)),
        ("Image", json!("../x")),
        ("hostconfig", json!({ "Privileged": true })),
        ("HostConfig ", json!({})),
        ("MacAddress", json!("02:00:00:00:00:00")),
    ];
    for (name, value) in config {
        refused(|it| it[name] = value, &format!("`{name}`"));
    }
}

#[test]
fn only_the_own_workspace_is_mounted() {
    let mount = |name: &'static str, value: Value| {
        let expected = format!("`HostConfig.Mounts[0].{name}");
        refused(|it| it["HostConfig"]["Mounts"][0][name] = value, &expected);
    };
    mount("Type", json!("bind"));
    mount("Source", json!("/etc"));
    mount(
        "Source",
        json!("sepal-ws-sbx_0000000000000000000000000000000b"),
    );
    mount("Target", json!("/usr"));
    mount("BindOptions", json!({ "Propagation": "shared" }));
    mount(
        "VolumeOptions",
        json!({ "DriverConfig": { "Options": { "o": "bind" } } }),
    );
    mount("VolumeOptions", json!({ "Subpath": "../x" }));
    refused(
        |it| {
            let first = it["HostConfig"]["Mounts"][0].clone();
            it["HostConfig"]["Mounts"] = json!([first, { "Type": "bind", "Source": "/" }]);
        },
        "`HostConfig.Mounts`",
    );
}

#[test]
fn what_was_installed_in_another_sandbox_is_mounted_read_only_in_its_one_place() {
    let other = "sepal-ws-sbx_0000000000000000000000000000000b";
    let with = |source: &str, target: &str, read_only: bool| {
        let mut asked = asked();
        let first = asked["HostConfig"]["Mounts"][0].clone();
        asked["HostConfig"]["Mounts"] = json!([first, {
            "Type": "volume", "Source": source, "Target": target, "ReadOnly": read_only,
        }]);
        asked
    };
    let made = made_as("", &with(other, "/packages", true), &settings()).unwrap();
    let mounts = &made["HostConfig"]["Mounts"];
    assert_eq!(mounts[1]["Source"], other);
    assert_eq!(mounts[1]["ReadOnly"], true);
    assert_eq!(mounts[0]["Target"], "/workspace");
    for wrong in [
        with(other, "/packages", false),
        with(other, "/sepal", false),
        with(other, "/workspace", true),
        with(other, "/usr", true),
        with("data", "/packages", true),
        with("data", "/sepal", true),
        with("/etc", "/packages", true),
    ] {
        assert!(made_as("", &wrong, &settings()).is_err(), "{wrong}");
    }
    let mut alone = asked();
    alone["HostConfig"]["Mounts"] = json!([{
        "Type": "volume", "Source": other, "Target": "/packages", "ReadOnly": true,
    }]);
    let made = made_as("", &alone, &settings()).unwrap();
    assert_eq!(made["HostConfig"]["Mounts"].as_array().unwrap().len(), 1);
}

/// The volume that all containers of every tenant mount must not be filled from an arbitrary image.
#[test]
fn the_volume_of_our_programs_is_filled_by_our_own_image_alone() {
    let programs = "sepal-ws-sbx_0000000000000000000000000000000c";
    let asked = |image: &str, options: Value| {
        let mut asked = asked();
        asked["Image"] = json!(image);
        asked["HostConfig"]["Mounts"] = json!([{
            "Type": "volume", "Source": programs, "Target": "/sepal", "ReadOnly": true,
            "VolumeOptions": options,
        }]);
        asked
    };
    let made = |asked: Value| made_as("", &asked, &settings());
    let own = made(asked("sepal/sandbox:1", Value::Null)).unwrap();
    let mount = &own["HostConfig"]["Mounts"][0];
    assert_eq!(mount["VolumeOptions"], json!({}));
    assert_eq!(mount["ReadOnly"], true);
    let none = || json!({ "NoCopy": true });
    for (image, options) in [
        ("mcp/fetch:1", Value::Null),
        ("mcp/fetch:1", none()),
        ("sepal/sandbox:1", none()),
    ] {
        let other = made(asked(image, options)).unwrap();
        let mount = &other["HostConfig"]["Mounts"][0];
        assert_eq!(mount["VolumeOptions"], json!({ "NoCopy": true }));
        assert_eq!(mount["Source"], programs);
    }
    let copying = made(asked("mcp/fetch:1", json!({ "NoCopy": false })));
    assert!(copying.unwrap_err().contains("NoCopy"));
}

#[test]
fn limits_are_at_most_those_of_the_settings() {
    for (name, value) in [
        ("Memory", json!(3_i64 << 30)),
        ("Memory", json!(0)),
        ("Memory", json!(-1)),
        ("MemorySwap", json!(-1)),
        ("NanoCpus", json!(3_000_000_000_i64)),
        ("NanoCpus", json!(0)),
        ("PidsLimit", json!(-1)),
        ("PidsLimit", json!(10_000)),
    ] {
        let expected = format!("`HostConfig.{name}`");
        refused(|it| it["HostConfig"][name] = value, &expected);
    }
    refused(
        |it| it["HostConfig"]["Ulimits"][1]["Hard"] = json!(9_i64 << 30),
        "fsize",
    );
    refused(
        |it| it["HostConfig"]["Ulimits"][0]["Hard"] = json!(1 << 20),
        "`HostConfig.Ulimits[0].Hard`",
    );
}

#[test]
fn odd_json_is_no_way_around() {
    let check = |body: &[u8], expected: &str| {
        let name = ContainerName::parse(&format!("sepal-sb-{SANDBOX}")).unwrap();
        let text = container(&name, body, &settings()).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    };
    let twice = asked()
        .to_string()
        .replacen('{', r#"{"HostConfig":{"Privileged":true},"#, 1);
    check(twice.as_bytes(), "duplicate");
    let trailing = format!(r#"{}{{"Image":"x"}}"#, asked());
    check(trailing.as_bytes(), "trailing");
    check(br#"{"Image":5}"#, "Image");
    check(b"[]", "");
    check(b"", "");
    check("[".repeat(100_000).as_bytes(), "");
    let deep = format!(
        r#"{{"HostConfig":{}1{}}}"#,
        r#"{"a":"#.repeat(1000),
        "}".repeat(1000)
    );
    check(deep.as_bytes(), "");
}

#[test]
fn a_count_is_one_find_in_our_own_image() {
    let mut asked = asked();
    let measure = |asked: &Value| made_as(".measure", asked, &settings());
    let wrong = measure(&asked).unwrap_err();
    assert!(wrong.contains('`'), "{wrong}");
    asked["User"] = json!("0:0");
    asked["Entrypoint"] = json!(["/usr/bin/env"]);
    asked["Cmd"] = json!(["find", "/workspace", "-depth", "-printf", "%d %b\\n"]);
    asked.as_object_mut().unwrap().remove("Env");
    asked["HostConfig"]["CapAdd"] = json!(["DAC_READ_SEARCH"]);
    asked["HostConfig"]["Mounts"][0]["ReadOnly"] = json!(true);
    let made = measure(&asked).unwrap();
    assert_eq!(made["HostConfig"]["Mounts"][0]["ReadOnly"], true);
    // The same with a value of the caller's choice, or as another container.
    assert!(made_as("", &asked, &settings()).is_err());
    for (name, value) in [
        ("Env", json!(["LD_PRELOAD=/workspace/x.so"])),
        ("Cmd", json!(["sh"])),
        ("Image", json!("mine")),
    ] {
        let mut other = asked.clone();
        other[name] = value;
        let text = measure(&other).unwrap_err();
        assert!(text.contains(&format!("`{name}")), "{text}");
    }
}

#[test]
fn a_network_has_to_be_of_the_settings() {
    let mut asked = asked();
    asked["HostConfig"]["NetworkMode"] = json!("sepal-inside");
    asked.as_object_mut().unwrap().remove("NetworkDisabled");
    assert!(made_as("", &asked, &settings()).is_err());
    let mut settings = settings();
    settings.network = Some("sepal-inside".to_owned());
    let made = made_as("", &asked, &settings).unwrap();
    assert_eq!(made["HostConfig"]["NetworkMode"], "sepal-inside");
    assert_eq!(made["NetworkDisabled"], false);
    asked["HostConfig"]["NetworkMode"] = json!("bridge");
    assert!(made_as("", &asked, &settings).is_err());
}
