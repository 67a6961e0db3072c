//! What is not offered to the model, and what an offer costs.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::{Api, offered, shell, tool, wait_for_health};
use crate::support::{Log, TestApp, TestSocket};

#[tokio::test]
async fn a_tool_that_works_only_as_a_task_is_not_offered_and_that_is_said() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let with = |name: &str, support: &str| {
        let mut tool: Value = serde_json::from_str(&tool(name, "Says it")).unwrap();
        tool["execution"] = json!({ "taskSupport": support });
        tool.to_string()
    };
    let mut config = shell("say fine");
    let tools = [
        with("long", "required"),
        with("either", "optional"),
        with("plain", "forbidden"),
    ];
    config["env"]["TOOLS"] = json!(tools.join(","));
    let body = json!({ "name": "aux", "config": config });
    let (_, tried) = api.ask(Method::POST, "/api/mcp/test", &body).await;
    let needs = |it: &Value| it["needsTasks"].as_bool().unwrap();
    let tried: Vec<bool> = tried["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(needs)
        .collect();
    assert_eq!(tried, [true, false, false], "the trial says so");
    api.add("aux", config).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    let server = api.server("aux").await;
    assert_eq!(
        (&server["toolCount"], &server["enabledTools"]),
        (&json!(3), &json!(2))
    );
    let problems = server["problems"].to_string();
    assert!(
        problems.contains("`long`") && problems.contains("task"),
        "{server}"
    );
    let tools = api.get("/api/mcp/aux/tools").await;
    let said: Vec<bool> = tools["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(needs)
        .collect();
    assert_eq!(said, [true, false, false], "{tools}");
    app.model.will_call("long", json!({})).then_say("I see");
    socket.say("go").await;
    let output = socket.wait_for("tool:output").await;
    assert!(output.text().contains("no tool `long`"), "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "I see");
    let names = offered(&app);
    assert!(!names.contains(&"long".to_owned()), "{names:?}");
    assert!(names.contains(&"either".to_owned()), "{names:?}");
}

#[tokio::test]
async fn above_a_hundred_tools_the_log_says_what_they_cost() {
    let log = Log::start();
    let settings = [
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_LLM_DEFER_TOOLS_PERCENT", "0"),
    ];
    let app = TestApp::start_with(&settings).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    for (count, is_said) in [(96, false), (97, true)] {
        let name = format!("with-{count}");
        let mut config = shell("say fine");
        let list = format!(
            r#"list() {{ n=0; all=; while [ $n -lt {count} ]; do all="$all,{{\"name\":\"t$n\",\"inputSchema\":{{\"type\":\"object\"}}}}"; n=$((n+1)); done; answer "{{\"tools\":[${{all#,}}]}}"; }}"#
        );
        let script = config["args"][1].as_str().unwrap();
        config["args"][1] = json!(script.replace("while IFS=", &format!("{list}\nwhile IFS=")));
        api.add(&name, config).await;
        wait_for_health(&mut socket, &name, "healthy").await;
        app.model.will_say("Hello");
        socket.say("hi").await;
        assert_eq!(socket.wait_for_answer().await, "Hello");
        // With the four of the sandbox.
        let offered = offered(&app).len();
        assert_eq!(offered, count + 4);
        let text = log.text();
        let said = format!("{offered} tools are offered: their definitions cost about");
        assert_eq!(text.contains(&said), is_said, "{offered}");
        let path = format!("/api/mcp/{name}");
        let (status, _) = api.ask(Method::DELETE, &path, &Value::Null).await;
        assert_eq!(status, 200);
    }
}
