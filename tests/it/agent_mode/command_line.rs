//! `sepal agent --call` and `--daemon`, and what a file alone means.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::{sepal, with_model};
use crate::model_stub::ModelStub;
use crate::support::{DEADLINE, TestApp};

async fn call(model: &ModelStub, args: &[&str], sandbox: &str) -> Output {
    let folder = TempDir::new().unwrap();
    let mut command = sepal(&folder);
    // As by default: a folder below the one that the program starts in.
    with_model(&mut command, model)
        .env("SPL_SANDBOX", sandbox)
        .env("SPL_DATA_DIR", "data");
    command.arg("agent").args(args).stdin(Stdio::null());
    let running = command.stderr(Stdio::piped()).output();
    tokio::time::timeout(DEADLINE, running)
        .await
        .unwrap()
        .unwrap()
}

fn answer(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text} {error}"))
}

#[tokio::test]
async fn one_question_is_answered_as_json_and_nothing_else_is_printed() {
    let model = ModelStub::start().await;
    model.will_say("It is noon.");
    let output = call(&model, &["--call", "What time is it?"], "none").await;
    assert_eq!(output.status.code(), Some(0));
    let answer = answer(&output);
    assert_eq!(answer["result"], "It is noon.");
    assert_eq!(answer["isError"], false);
    assert!(answer["session"].as_str().unwrap().starts_with("ses_"));
}

#[tokio::test]
async fn a_failure_exits_with_one_and_wrong_settings_with_two() {
    let model = ModelStub::start().await;
    model.will_fail(401, &[], r#"{"error": {"message": "no"}}"#);
    let output = call(&model, &["--call", "Hi"], "none").await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(answer(&output)["isError"], true);
    let output = call(&model, &["--call", "  "], "none").await;
    assert_eq!(output.status.code(), Some(1));
    let refused = answer(&output);
    assert_eq!(refused["session"], Value::Null);
    assert_eq!(refused["code"], "invalid_arguments", "{refused}");
    let output = call(&model, &["--call", "Hi", "--port", "x"], "none").await;
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let output = call(&model, &["--call", "Hi", "--daemon"], "none").await;
    assert_eq!(output.status.code(), Some(2));
}

/// S0.58.
#[tokio::test]
async fn one_question_has_the_time_limit_of_a_turn() {
    let model = ModelStub::start().await;
    model.will_say("never heard").stall();
    let folder = TempDir::new().unwrap();
    let mut command = sepal(&folder);
    with_model(&mut command, &model).env("SPL_CHAT_TURN_TIMEOUT", "1");
    command.args(["agent", "--call", "Hi"]).stdin(Stdio::null());
    let running = command.stderr(Stdio::piped()).output();
    let output = tokio::time::timeout(DEADLINE, running).await;
    let output = output.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let answer = answer(&output);
    assert_eq!(answer["code"], "turn_timeout", "{answer}");
}

#[tokio::test]
async fn without_a_terminal_tools_run_only_when_told() {
    let file = json!({"path": "a.txt", "content": "x"});
    for (approve, is_rejected) in [("ask", true), ("deny", true), ("auto", false)] {
        let model = ModelStub::start().await;
        model.will_call("write_file", file.clone()).then_say("Done");
        let args = ["--call", "Make a file", "--approve", approve];
        let output = call(&model, &args, "bubblewrap").await;
        assert_eq!(output.status.code(), Some(0), "{approve}");
        let read = model.requests()[1].body["messages"].to_string();
        assert_eq!(read.contains("Rejected"), is_rejected, "{approve}: {read}");
        assert!(is_rejected || read.contains("a.txt"), "{read}");
    }
}

/// Starts a daemon; the process, where it listens, and what else it says.
async fn daemon(
    folder: &TempDir,
    model: &ModelStub,
    args: &[&str],
) -> (Child, String, Lines<BufReader<ChildStdout>>) {
    let mut command = sepal(folder);
    with_model(&mut command, model)
        .args(args)
        .env("SPL_HTTP_PORT", "0")
        .env("SPL_HTTP_HOST", "127.0.0.1");
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    loop {
        let line = tokio::time::timeout(DEADLINE, lines.next_line())
            .await
            .unwrap();
        let line = line.unwrap().expect("the daemon has ended");
        if let Some((_, url)) = line.split_once("listens on ") {
            let url = url.trim().trim_end_matches('/').to_owned();
            return (process, url, lines);
        }
    }
}

/// S0.22, S0.49: whatever the file says of the listener.
#[tokio::test]
async fn the_flag_alone_makes_a_daemon_too_and_goes_with_nothing_else() {
    let (folder, model) = (TempDir::new().unwrap(), ModelStub::start().await);
    let file = folder.path().join("agent.yaml");
    let quiet = "runtime: {transports: {http: {enabled: false}}}";
    std::fs::write(&file, quiet).unwrap();
    let args = ["--config", file.to_str().unwrap(), "--daemon"];
    let (mut process, url, _lines) = daemon(&folder, &model, &args).await;
    model.will_say("It is noon.");
    let body = json!({"method": "tools/call",
        "params": {"name": "process", "arguments": {"input": "What time is it?"}}});
    let asked = TestApp::http().post(format!("{url}/message")).json(&body);
    let answered: Value = asked.send().await.unwrap().json().await.unwrap();
    assert_eq!(answered["result"]["content"][0]["text"], "It is noon.");
    let opened = TestApp::http()
        .get(format!("{url}/sse"))
        .send()
        .await
        .unwrap();
    assert_eq!(opened.headers()["content-type"], "text/event-stream");
    process.kill().await.unwrap();
    for args in [
        &["--daemon", "serve"][..],
        &["--daemon", "config", "check"],
        &["--daemon", "agent", "--call", "Hi"],
    ] {
        let mut command = sepal(&folder);
        let output = command.args(args).stderr(Stdio::piped()).output().await;
        assert_eq!(output.unwrap().status.code(), Some(2), "{args:?}");
    }
}

/// Asserts S0.29.
#[tokio::test]
async fn an_agent_whose_settings_switch_stdio_off_does_not_serve_on_it_but_answers_a_question() {
    let (folder, model) = (TempDir::new().unwrap(), ModelStub::start().await);
    let file = folder.path().join("agent.yaml");
    std::fs::write(&file, "runtime: {transports: {stdio: {enabled: false}}}").unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let mut command = sepal(&folder);
    let command = command.args(config).arg("agent");
    let output = command.stderr(Stdio::piped()).output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        said.contains("`runtime.transports.stdio.enabled` is off") && said.contains("--daemon"),
        "{said}"
    );
    assert!(output.stdout.is_empty());

    model.will_say("It is noon.");
    let mut command = sepal(&folder);
    let command = with_model(&mut command, &model).args(config);
    let output = command
        .args(["agent", "--call", "Hi"])
        .output()
        .await
        .unwrap();
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("It is noon.")
    );
}

/// Asserts S0.49.
#[tokio::test]
async fn a_daemon_answers_this_machine_without_a_key() {
    let (folder, model) = (TempDir::new().unwrap(), ModelStub::start().await);
    let (_process, url, mut lines) = daemon(&folder, &model, &["agent", "--daemon"]).await;
    let clients = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some((_, clients)) = line.split_once("MCP clients: ") {
            break clients.to_owned();
        }
    };
    assert_eq!(clients, format!("{url}/mcp, or {url}/sse for old ones"));
    model.will_say("It is noon.");
    let body = json!({"method": "tools/call",
        "params": {"name": "process", "arguments": {"input": "What time is it?"}}});
    let post = |headers: &[(&'static str, &'static str)]| {
        let request = TestApp::http().post(format!("{url}/message")).json(&body);
        let headers = headers.iter();
        headers
            .fold(request, |request, (name, value)| {
                request.header(*name, *value)
            })
            .send()
    };
    let answered: Value = post(&[]).await.unwrap().json().await.unwrap();
    assert_eq!(answered["result"]["content"][0]["text"], "It is noon.");
    for headers in [
        &[("authorization", "Bearer spl_wrong")][..],
        &[("x-forwarded-for", "192.0.2.1")],
    ] {
        assert_eq!(post(headers).await.unwrap().status(), 401, "{headers:?}");
    }
    let foreign = post(&[("origin", "https://evil.example")]);
    assert_eq!(foreign.await.unwrap().status(), 403);
}

/// What a gateway says first when it is started with these settings.
async fn first_line(settings: &[(&str, &str)]) -> String {
    let folder = TempDir::new().unwrap();
    let mut command = sepal(&folder);
    command
        .env("SPL_HTTP_PORT", "0")
        .env("LLM_PROVIDER", "scripted");
    for (name, value) in settings {
        command.env(name, value);
    }
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(DEADLINE, lines.next_line()).await;
    let line = line.unwrap().unwrap().expect("the gateway has ended");
    process.kill().await.unwrap();
    line
}

#[tokio::test]
async fn the_first_line_names_the_address_that_is_bound() {
    // As in a container, where the one to open is published by somebody else.
    let everywhere = first_line(&[("SPL_HTTP_HOST", "0.0.0.0")]).await;
    let (_, bound) = everywhere.split_once("listens on http://").unwrap();
    let port = bound
        .strip_prefix("0.0.0.0:")
        .unwrap_or_else(|| panic!("{everywhere}"));
    let (port, hint) = port.split_once(' ').unwrap();
    assert!(port.parse::<u16>().unwrap() > 0, "{everywhere}");
    assert_eq!(
        hint,
        format!("(every address; from this machine http://localhost:{port})")
    );

    let six = first_line(&[("SPL_HTTP_HOST", "::")]).await;
    assert!(six.contains("listens on http://[::]:"), "{six}");

    let one = first_line(&[("SPL_HTTP_HOST", "localhost")]).await;
    assert!(
        one.contains("listens on http://127.0.0.1:") || one.contains("listens on http://[::1]:"),
        "{one}"
    );
    assert!(!one.contains("every address"), "{one}");

    let public = first_line(&[
        ("SPL_HTTP_HOST", "127.0.0.1"),
        ("SPL_PUBLIC_URL", "https://agents.example/sepal"),
    ])
    .await;
    assert!(public.contains("listens on http://127.0.0.1:"), "{public}");
    assert!(
        public.ends_with("(open https://agents.example/sepal)"),
        "{public}"
    );
}
