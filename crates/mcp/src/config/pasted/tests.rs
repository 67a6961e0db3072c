//! Tests what people paste, by the programs and pages that it comes from.

use std::borrow::Borrow;

use serde_json::{Value, json};

use super::{PastedKind, name_from, read_pasted};

/// Checks that a text is these servers, by name.
fn check(text: &str, expected: impl Borrow<Value>) {
    let pasted = read_pasted(text);
    let servers = pasted.servers.iter().map(|server| {
        let mut config = serde_json::to_value(&server.config).unwrap();
        // Every entry has these.
        for (member, usual) in [
            ("enabled", json!(true)),
            ("trusted", json!(false)),
            ("workspace", json!("none")),
        ] {
            if config[member] == usual {
                config.as_object_mut().unwrap().remove(member);
            }
        }
        (server.name.clone(), config)
    });
    let servers: Value = Value::Object(servers.collect());
    assert_eq!(servers, *expected.borrow(), "{text}\n{:?}", pasted.problems);
}

fn time() -> Value {
    json!({"time": {"command": "npx", "args": ["-y", "time"]}})
}

#[test]
fn files_of_every_program_are_read() {
    for text in [
        // Claude Desktop, Cursor, and an entry alone or with its name.
        r#"{"mcpServers": {"time": {"command": "npx", "args": ["-y", "time"]}}}"#,
        r#"{"command": "npx", "args": ["-y", "time"]}"#,
        r#"{"time": {"command": "npx", "args": ["-y", "time"]}}"#,
        r#"{"name": "time", "command": "npx", "args": ["-y", "time"]}"#,
        r#"[{"name": "time", "command": "npx", "args": ["-y", "time"]}]"#,
        // VS Code, with settings around it too.
        r#"{"servers": {"time": {"command": "npx", "args": ["-y", "time"]}}, "inputs": []}"#,
        r#"{"mcp": {"servers": {"time": {"command": "npx", "args": ["-y", "time"]}}}}"#,
        // Zed, in both forms.
        r#"{"context_servers": {"time": {"source": "custom", "command": "npx", "args": ["-y", "time"]}}}"#,
        r#"{"context_servers": {"time": {"command": {"path": "npx", "args": ["-y", "time"], "env": null}}}}"#,
        // Programs with their name before it.
        r#"{"amp.mcpServers": {"time": {"command": "npx", "args": ["-y", "time"]}}}"#,
        // Odd members.
        r#"{"mcpServers": {"time": {"command": "npx -y time"}}}"#,
        r#"{"mcpServers": {"time": {"command": "npx", "args": "-y time"}}}"#,
        r#"{"mcpServers": {"time": {"command": "npx", "args": ["-y", "time"], "env": {}, "headers": null}}}"#,
        // Windows.
        r#"{"mcpServers": {"time": {"command": "cmd", "args": ["/c", "npx", "-y", "time"]}}}"#,
        r#"{"mcpServers": {"time": {"command": "cmd.exe", "args": ["/C", "npx.cmd", "-y", "time"]}}}"#,
        r#"{"mcpServers": {"time": {"command": "C:\\Windows\\System32\\cmd.exe", "args": ["/d", "/c", "npx", "-y", "time"]}}}"#,
        r#"{"mcpServers": {"time": {"command": "npx.cmd", "args": ["-y", "time"]}}}"#,
        // JSON as people write it.
        "{\n  // the clock\n  \"mcpServers\": {\"time\": {\"command\": \"npx\", \"args\": [\"-y\", \"time\",],},},\n}",
        "{/* the clock */ mcpServers: {time: {command: 'npx', args: ['-y', 'time']}}}",
        "{“mcpServers”: {“time”: {“command”: “npx”, “args”: [“-y”, “time”]}}}",
        "\u{feff}{\"mcpServers\": {\"time\": {\"command\": \"npx\", \"args\": [\"-y\", \"time\"]}}}",
        "{\u{a0}\"mcpServers\": {\"time\": {\"command\": \"npx\", \"args\": [\"-y\", \"time\"]}}}",
        // Fragments.
        r#""mcpServers": {"time": {"command": "npx", "args": ["-y", "time"]}}"#,
        r#""time": {"command": "npx", "args": ["-y", "time"]},"#,
        "\"command\": \"npx\",\n\"args\": [\"-y\", \"time\"]",
        "“time”: {“command”: “npx”, “args”: [“-y”, “time”]}",
        // Markdown.
        "```json\n{\"mcpServers\": {\"time\": {\"command\": \"npx\", \"args\": [\"-y\", \"time\"]}}}\n```",
        "Add this to your file:\n\n```\n{\"time\": {\"command\": \"npx\", \"args\": [\"-y\", \"time\"]}}\n```\nand restart.",
    ] {
        let pasted = read_pasted(text);
        assert_eq!(
            (pasted.kind, &pasted.problems),
            (PastedKind::Json, &vec![]),
            "{text}"
        );
        check(text, time());
    }
    // opencode.
    check(
        r#"{"mcp": {
            "time": {"type": "local", "command": ["npx", "-y", "time"], "environment": {"ZONE": 2}, "enabled": false},
            "far": {"type": "remote", "url": "https://e.test/mcp", "headers": {"X-Id": 5}}
        }}"#,
        json!({
            "time": {"transport": "stdio", "command": "npx", "args": ["-y", "time"], "env": {"ZONE": "2"}, "enabled": false},
            "far": {"transport": "http", "url": "https://e.test/mcp", "headers": {"X-Id": "5"}},
        }),
    );
}

#[test]
fn addresses_are_read_under_every_name() {
    for (entry, expected) in [
        (
            json!({"url": "https://e.test/mcp"}),
            json!({"url": "https://e.test/mcp"}),
        ),
        (
            json!({"serverUrl": "https://e.test/mcp"}),
            json!({"url": "https://e.test/mcp"}),
        ),
        (
            json!({"httpUrl": "https://e.test/mcp"}),
            json!({"url": "https://e.test/mcp", "transport": "http"}),
        ),
        (
            json!({"sseUrl": "https://e.test/sse"}),
            json!({"url": "https://e.test/sse", "transport": "sse"}),
        ),
        (
            json!({"type": "http", "url": "https://e.test"}),
            json!({"url": "https://e.test", "transport": "http"}),
        ),
        (
            json!({"type": "sse", "url": "https://e.test"}),
            json!({"url": "https://e.test", "transport": "sse"}),
        ),
        (
            json!({"type": "remote", "url": "https://e.test"}),
            json!({"url": "https://e.test", "transport": "http"}),
        ),
        (
            json!({"type": "streamable-http", "url": "https://e.test"}),
            json!({"url": "https://e.test", "transport": "http"}),
        ),
        (
            json!({"type": "streamable_http", "url": "https://e.test"}),
            json!({"url": "https://e.test", "transport": "http"}),
        ),
        (
            json!({"type": "streamableHttp", "url": "https://e.test"}),
            json!({"url": "https://e.test", "transport": "http"}),
        ),
        (
            json!({"transportType": "SSE", "url": "https://e.test"}),
            json!({"url": "https://e.test", "transport": "sse"}),
        ),
        (
            json!({"transport": {"type": "http"}, "url": "https://e.test"}),
            json!({"url": "https://e.test", "transport": "http"}),
        ),
        (
            json!({"url": "https://e.test", "headers": ["Authorization: Bearer ${env:my-key}"]}),
            json!({"url": "https://e.test", "headers": {"Authorization": "Bearer ${secret:MY_KEY}"}}),
        ),
    ] {
        check(
            &json!({"mcpServers": {"far": entry}}).to_string(),
            json!({"far": expected}),
        );
    }
}

#[test]
fn variables_are_texts_however_they_are_written() {
    for (env, expected) in [
        (
            json!({"PORT": 8080, "RATE": 0.5, "DEBUG": true, "NONE": null}),
            json!({"PORT": "8080", "RATE": "0.5", "DEBUG": "true"}),
        ),
        (json!(["KEY=a=b"]), json!({"KEY": "a=b"})),
        (json!([{"name": "KEY", "value": 5}]), json!({"KEY": "5"})),
        (
            json!({"KEY": "${input:api-key} ${input:b}"}),
            json!({"KEY": "${secret:API_KEY} ${secret:B}"}),
        ),
    ] {
        check(
            &json!({"mcpServers": {"a": {"command": "x", "env": env}}}).to_string(),
            json!({"a": {"command": "x", "env": expected}}),
        );
    }
}

#[test]
fn command_lines_are_read_as_pages_show_them() {
    let time = || json!({"time": {"transport": "stdio", "command": "npx", "args": ["-y", "time"]}});
    let keyed = || {
        let mut keyed = time();
        keyed["time"]["env"] = json!({"KEY": "x"});
        keyed
    };
    for (text, expected) in [
        ("npx -y time", time()),
        ("$ npx -y time", time()),
        ("> npx -y time", time()),
        ("`npx -y time`", time()),
        ("```bash\n$ npx -y time\n```", time()),
        ("# the clock\nnpx -y time", time()),
        ("npx \\\n  -y time", time()),
        ("npx.cmd -y time", time()),
        ("cmd /c npx -y time", time()),
        ("cmd.exe /C npx.cmd -y time", time()),
        ("KEY=x npx -y time", keyed()),
        ("env KEY=x npx -y time", keyed()),
        ("export KEY=x\nnpx -y time", keyed()),
        ("export KEY=x && npx -y time", keyed()),
        // Other programs' own commands.
        ("claude mcp add time npx -y time", time_added()),
        ("claude mcp add time -- npx -y time", time_added()),
        ("claude mcp add -s user time -- npx -y time", time_added()),
        (
            "claude mcp add --scope=user time -- npx -y time",
            time_added(),
        ),
        (
            "claude mcp add --transport stdio time -- npx -y time",
            time(),
        ),
        ("claude mcp add time 'npx -y time'", time_added()),
        ("$ claude mcp add time -- cmd /c npx -y time", time_added()),
        ("codex mcp add time -- npx -y time", time_added()),
        ("gemini mcp add time npx -y time", time_added()),
    ] {
        check(text, expected);
    }
    let mut keyed = time_added();
    keyed["time"]["env"] = json!({"KEY": "x"});
    check("claude mcp add time -e KEY=x -- npx -y time", keyed.clone());
    check("claude mcp add --env KEY=x -- time npx -y time", json!({}));
    check("claude mcp add -e KEY=x time -- npx -y time", keyed);
    check(
        "claude mcp add-json time '{\"type\":\"stdio\",\"command\":\"npx\",\"args\":[\"-y\",\"time\"]}'",
        time(),
    );
    check(
        "code --add-mcp '{\"name\":\"time\",\"command\":\"npx\",\"args\":[\"-y\",\"time\"]}'",
        time_added(),
    );
}

fn time_added() -> Value {
    json!({"time": {"command": "npx", "args": ["-y", "time"]}})
}

#[test]
fn commands_that_add_an_address_are_read() {
    for (text, expected) in [
        (
            "claude mcp add --transport http far https://e.test/mcp",
            json!({"transport": "http", "url": "https://e.test/mcp"}),
        ),
        (
            "claude mcp add -t sse far https://e.test/x",
            json!({"transport": "sse", "url": "https://e.test/x"}),
        ),
        (
            "claude mcp add far https://e.test/sse",
            json!({"transport": "sse", "url": "https://e.test/sse"}),
        ),
        (
            "codex mcp add far --url https://e.test/mcp",
            json!({"transport": "http", "url": "https://e.test/mcp"}),
        ),
        (
            "claude mcp add --transport http far https://e.test/mcp --header \"Authorization: Bearer x\"",
            json!({"transport": "http", "url": "https://e.test/mcp", "headers": {"Authorization": "Bearer x"}}),
        ),
        (
            "claude mcp add -H 'X-Key: a:b' far https://e.test/mcp",
            json!({"transport": "http", "url": "https://e.test/mcp", "headers": {"X-Key": "a:b"}}),
        ),
    ] {
        check(text, json!({"far": expected}));
    }
    check(
        "claude mcp add a https://a.test/mcp\nclaude mcp add b -- npx b",
        json!({
            "a": {"transport": "http", "url": "https://a.test/mcp"},
            "b": {"command": "npx", "args": ["b"]},
        }),
    );
    check(
        " https://mcp.example.com/mcp ",
        json!({"example": {"transport": "http", "url": "https://mcp.example.com/mcp"}}),
    );
    check(
        "http://localhost:9/sse",
        json!({"localhost": {"transport": "sse", "url": "http://localhost:9/sse"}}),
    );
}

#[test]
fn images_are_images() {
    let line = "docker run -i --rm -e KEY=1 --network=none mcp/time:2 --utc";
    assert_eq!(read_pasted(line).kind, PastedKind::Image);
    check(
        line,
        json!({"time": {"transport": "stdio-docker", "containerImage": "mcp/time:2", "args": ["--utc"], "env": {"KEY": "1"}}}),
    );
    check(
        r#"{"mcpServers":{"gh":{"command":"docker","args":["run","-i","--rm","-e","TOKEN","ghcr.test/gh"],"env":{"TOKEN":"t"}}}}"#,
        json!({"gh": {"transport": "stdio-docker", "containerImage": "ghcr.test/gh", "env": {"TOKEN": "t"}}}),
    );
}

#[test]
fn what_cannot_be_used_says_what_to_change() {
    for (text, expected) in [
        ("{", "no valid JSON"),
        ("{\"a\": 1}", "no server is in it"),
        ("{\"mcpServers\": {}}", "no server is in it"),
        ("{\"mcpServers\": {\"a\": 5}}", "`a` has to be an object"),
        (
            "{\"mcpServers\": {\"a\": {\"enabled\": true}}}",
            "`a` has neither a `command` nor a `url`",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": 5}}}",
            "`args` has to be a list",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [{}]}}}",
            "`args` has to be a list",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": \"A\"}}}",
            "`env` has to be an object",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"A\": []}}}}",
            "`env.A` has to be a text",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"type\": \"websocket\", \"url\": \"wss://e.test\"}}}",
            "give the address of its HTTP",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"type\": \"pipe\", \"command\": \"x\"}}}",
            "unknown transport `pipe`",
        ),
        ("npx 'a", "a quote that does not end"),
        ("claude mcp add", "names no server"),
        ("claude mcp add time", "neither a command nor an address"),
        (
            "claude mcp add -e KEY time -- npx",
            "has to be `NAME=value`",
        ),
        ("docker run -i", "names no image"),
    ] {
        let problems = read_pasted(text).problems;
        assert!(
            problems.iter().any(|it| it.contains(expected)),
            "{text}: {problems:?}"
        );
    }
    // One entry that cannot be used hides no other.
    let pasted = read_pasted(r#"{"mcpServers": {"a": 5, "b": {"command": "x"}}}"#);
    assert_eq!((pasted.servers.len(), pasted.problems.len()), (1, 1));
    for text in ["", "  ", "hello", "npx"] {
        let pasted = read_pasted(text);
        assert_eq!(
            (pasted.kind, pasted.problems.len()),
            (PastedKind::Nothing, 0),
            "{text}"
        );
    }
}

#[test]
fn names_are_those_of_packages_and_programs() {
    for (text, expected) in [
        (
            "npx -y @modelcontextprotocol/server-filesystem@1.2 \"/work space\"",
            "filesystem",
        ),
        ("npx @playwright/mcp@latest", "mcp"),
        ("uvx mcp-server-time", "time"),
        ("uvx --from git+https://e.test/x some-mcp", "x"),
        ("node ./build/index.js", "index"),
        ("./my-server --port 5", "my-server"),
    ] {
        let pasted = read_pasted(text);
        let names: Vec<&str> = pasted
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .collect();
        assert_eq!(names, [expected], "{text}");
    }
    for (text, expected) in [("Größe & mehr!", "Gr-e-mehr"), ("***", "server")] {
        assert_eq!(name_from(text), expected);
    }
    assert_eq!(name_from(&"x".repeat(99)).len(), 64);
}
