//! Tests the installation's file: reading, changes, broken content, edits by hand.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ConfigFile, FileError, Looks};
use sepal_core::domain::McpServerConfig;

fn config(command: &str) -> McpServerConfig {
    serde_json::from_value(json!({"command": command})).unwrap()
}

fn write(folder: &Path, content: &Value) {
    std::fs::write(folder.join("mcp-config.json"), content.to_string()).unwrap();
}

fn on_disk(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("mcp-config.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_common_shape_of_other_programs_loads() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &json!({
            "mcpServers": {
                "time": {"command": "uvx", "args": ["time"], "autoApprove": ["x"]},
                "far": {"type": "streamable-http", "url": "https://e.test/mcp"},
                "off": {"command": "x", "disabled": true},
                "bad name": {"command": "x"},
                "empty": {},
            },
            "settings": {"toolNamespacing": "prefix"},
        }),
    );
    let state = ConfigFile::open(folder.path()).state();
    let names: Vec<&String> = state.servers.keys().collect();
    assert_eq!(names, ["far", "off", "time"]);
    assert!(!state.servers["off"].enabled);
    assert_eq!(state.naming, crate::Naming::Prefix);
    assert_eq!(state.problems.len(), 2, "{:?}", state.problems);
    assert!(state.problems[1].contains("`empty`") && state.problems[1].contains("command"));
}

#[test]
fn the_file_is_read_as_people_write_it_and_a_change_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp-config.json");
    for text in [
        "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}",
        "{// a remark\n\"mcpServers\": {\"a\": {\"command\": \"x\",},},}",
        "{“mcpServers”: {“a”: {“command”: “x”}}}",
        "\"mcpServers\": {\"a\": {\"command\": \"x\"}}",
        r#"{"servers": {"a": {"type": "local", "command": ["x"]}}}"#,
        r#"{"context_servers": {"a": {"command": {"path": "x", "args": []}}}}"#,
        r#"{"mcp": {"servers": {"a": {"command": "cmd.exe", "args": ["/C", "x.cmd"]}}}}"#,
    ] {
        std::fs::write(&path, text).unwrap();
        let state = ConfigFile::open(folder.path()).state();
        let entry = state.servers.get("a");
        let command = entry.and_then(|entry| entry.command.as_deref());
        assert_eq!(command, Some("x"), "{text}: {:?}", state.problems);
    }
}

#[tokio::test]
async fn a_file_with_remarks_is_not_overwritten_and_one_of_another_program_keeps_its_form() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp-config.json");
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}} // mine";
    std::fs::write(&path, text).unwrap();
    let refused = ConfigFile::open(folder.path()).add("b", &config("y")).await;
    assert!(matches!(refused, Err(FileError::Broken(_))), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let other = json!({"mcp": {"servers": {"a": {"command": "x"}}}, "theirs": 1});
    write(folder.path(), &other);
    let file = ConfigFile::open(folder.path());
    file.add("b", &config("y")).await.unwrap();
    assert_eq!(
        on_disk(folder.path())["mcp"]["servers"]["b"]["command"],
        "y"
    );
    assert_eq!(file.state().servers.len(), 2);
}

#[test]
fn settings_say_when_servers_are_connected_and_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let state = |settings: Value| {
        write(folder.path(), &json!({ "settings": settings }));
        ConfigFile::open(folder.path()).state()
    };
    let usual = state(json!({}));
    assert_eq!((usual.connects_ahead, usual.looks), (false, Looks::Usual));
    let set = state(json!({"autoConnect": true, "healthCheckInterval": 5000}));
    let every = Looks::Every(Duration::from_secs(5));
    assert_eq!((set.connects_ahead, set.looks), (true, every));
    assert_eq!(set.problems, [""; 0]);
    let never = state(json!({"autoConnect": false, "healthCheckInterval": 0}));
    assert_eq!((never.connects_ahead, never.looks), (false, Looks::Never));
    for wrong in [json!("true"), json!(1), json!(null)] {
        let problems = state(json!({ "autoConnect": wrong })).problems.clone();
        assert!(problems[0].contains("settings.autoConnect"), "{problems:?}");
    }
    for wrong in [
        json!("5000"),
        json!(999),
        json!(-1),
        json!(1e9),
        json!(true),
    ] {
        let wrong = state(json!({ "healthCheckInterval": wrong }));
        assert_eq!(wrong.looks, Looks::Usual);
        assert!(
            wrong.problems[0].contains("1000 to 86400000"),
            "{:?}",
            wrong.problems
        );
    }
}

#[tokio::test]
async fn changes_keep_what_is_not_ours_and_are_private() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &json!({"mcpServers": {"a": {"command": "x", "theirs": 1, "type": "stdio"}}, "other": true}),
    );
    let file = ConfigFile::open(folder.path());
    file.add("b", &config("y")).await.unwrap();
    file.put("a", &config("z")).await.unwrap();
    let kept = on_disk(folder.path());
    assert_eq!(kept["other"], true);
    assert_eq!(kept["mcpServers"]["a"]["theirs"], 1);
    assert_eq!(kept["mcpServers"]["a"]["command"], "z");
    assert_eq!(kept["mcpServers"]["b"]["command"], "y");
    assert_eq!(file.state().servers.len(), 2);
    let again = file.add("b", &config("y")).await.unwrap_err();
    assert!(matches!(again, FileError::Taken(_)));
    file.remove("b").await.unwrap();
    let missing = file.remove("b").await.unwrap_err();
    assert!(matches!(missing, FileError::Missing(_)));
    let mode = std::fs::metadata(folder.path().join("mcp-config.json")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_kill_at_any_moment_leaves_a_whole_file() {
    use std::io::Read as _;

    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &json!({"mcpServers": {"a": {"command": "x"}}}),
    );
    let path = folder.path().join("mcp-config.json");
    let file = ConfigFile::open(folder.path());
    // A reader with the old file open still reads all of it: the old file is never written to, so the name
    // leads to a complete file at whatever point the process dies.
    let mut old = std::fs::File::open(&path).unwrap();
    file.add("b", &config("y")).await.unwrap();
    let mut text = String::new();
    old.read_to_string(&mut text).unwrap();
    assert_eq!(
        text,
        json!({"mcpServers": {"a": {"command": "x"}}}).to_string()
    );
    // A temporary file that a killed writer left behind neither blocks a write nor becomes an entry.
    let beside = folder
        .path()
        .join(format!(".mcp-config.json.{}", std::process::id()));
    std::fs::write(&beside, "{ half of").unwrap();
    file.add("c", &config("z")).await.unwrap();
    assert!(!beside.exists());
    assert_eq!(ConfigFile::open(folder.path()).state().servers.len(), 3);
}

#[tokio::test]
async fn a_broken_file_keeps_the_last_state_says_so_and_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &json!({"mcpServers": {"a": {"command": "x"}}}),
    );
    let file = ConfigFile::open(folder.path());
    std::fs::write(folder.path().join("mcp-config.json"), "{ half of").unwrap();
    file.reload().await;
    let state = file.state();
    assert!(state.servers.contains_key("a"));
    assert!(
        state.problems[0].contains("ignored"),
        "{:?}",
        state.problems
    );
    let refused = file.add("b", &config("y")).await.unwrap_err();
    assert!(matches!(refused, FileError::Broken(_)), "{refused}");
    let text = std::fs::read_to_string(folder.path().join("mcp-config.json")).unwrap();
    assert_eq!(text, "{ half of");
}

#[tokio::test]
async fn an_edit_by_hand_is_seen_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = ConfigFile::open(folder.path());
    let mut changes = file.changes();
    let edited = async {
        // Writes made before and after the watch began are both noticed.
        write(
            folder.path(),
            &json!({"mcpServers": {"a": {"command": "x"}}}),
        );
        changes
            .wait_for(|state| state.servers.contains_key("a"))
            .await
            .unwrap();
        write(
            folder.path(),
            &json!({"mcpServers": {"b": {"command": "x"}}}),
        );
        changes
            .wait_for(|state| state.servers.contains_key("b"))
            .await
            .unwrap();
    };
    let done = async {
        tokio::select! {
            never = file.watch() => match never {},
            () = edited => {}
        }
    };
    tokio::time::timeout(Duration::from_secs(10), done)
        .await
        .unwrap();
}

/// A member that `MEMBERS` lacks would be lost silently when an entry is changed.
#[test]
fn every_member_of_an_entry_is_written() {
    let whole = json!({
        "transport": "stdio", "enabled": true, "description": "x", "toolPrefix": "x",
        "includeTools": [], "excludeTools": [], "timeout": 1, "trusted": true, "sampling": true,
        "command": "x", "args": ["x"], "allowScripts": true, "bundle": { "sha256": "x" }, "env": { "A": "1" }, "cwd": "x",
        "containerImage": "x", "containerEnv": { "A": "1" }, "containerMemory": 64,
        "containerCpu": 1.0, "network": ["a.example"], "secretHosts": { "A": ["a.example"] },
        "workspace": "ro", "url": "https://a.example", "headers": { "A": "1" },
        "oauth": { "clientId": "x" },
    });
    let config: McpServerConfig = serde_json::from_value(whole.clone()).unwrap();
    let written = serde_json::to_value(&config).unwrap();
    assert_eq!(written, whole, "a member is missing in this test");
    let mut names: Vec<_> = written.as_object().unwrap().keys().collect();
    names.sort_unstable();
    let mut known = crate::config::pasted::MEMBERS;
    known.sort_unstable();
    assert_eq!(names, known);
    // This pattern fails to compile when the type gets a new member.
    let McpServerConfig {
        transport: _,
        enabled: _,
        description: _,
        tool_prefix: _,
        include_tools: _,
        exclude_tools: _,
        timeout: _,
        trusted: _,
        sampling: _,
        command: _,
        args: _,
        allow_scripts: _,
        bundle: _,
        env: _,
        cwd: _,
        container_image: _,
        container_env: _,
        container_memory: _,
        container_cpu: _,
        network: _,
        secret_hosts: _,
        workspace: _,
        url: _,
        headers: _,
        oauth: _,
    } = config;
}
