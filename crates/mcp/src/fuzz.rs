//! Fuzzes what MCP servers send: lines, tool definitions and tool results.

use std::time::Duration;

use rmcp::model::{
    CallToolResult, GetPromptResult, InitializeResult, ListPromptsResult, ListResourcesResult,
    ListToolsResult, ReadResourceResult,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::tools::listing;
use super::wire::lenient;
use super::{Cleaner, ClientOffer, Connection, Naming, Offer, ToolAnswer, ToolCall, Toolbox};
use sepal_core::domain::Tool;

/// Separates the answers in one input: the server sends the next one at each request. JSON cannot contain
/// this byte.
const NEXT: u8 = 0x1e;

/// Fuzzes a whole connection: handshake, list and one call, with arbitrary answers from the server.
#[test]
fn mcp_lines() {
    sepal_fuzz::check("mcp_lines", |input| {
        // The paused clock advances whenever all tasks are idle, so timeouts cost no time.
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (output, say) = tokio::io::split(ours);
        let (asked, answers) = tokio::io::split(theirs);
        runtime.unwrap().block_on(async {
            tokio::join!(use_server(output, say), serve(input, asked, answers));
        });
    });
}

async fn use_server(
    output: impl AsyncRead + Send + Unpin + 'static,
    input: impl AsyncWrite + Send + Unpin + 'static,
) {
    let Ok(connection) = Connection::open("s", output, input, ClientOffer::default()).await else {
        return;
    };
    if let Ok(tools) = connection.tools().await {
        check_tools(&tools);
    }
    let call = ToolCall {
        tool: "t".to_owned(),
        args: json!({"a": 1}),
        limit: Duration::from_secs(3),
        standstill: None,
        task: None,
    };
    let answer = connection.call(call, &CancellationToken::new(), drop).await;
    if let Ok(answer) = answer {
        check_answer(&answer);
    }
    connection.close().await;
}

async fn serve(input: &[u8], asked: impl AsyncRead + Unpin, mut answers: impl AsyncWrite + Unpin) {
    let mut asked = BufReader::new(asked).lines();
    let mut turns = input.split(|byte| *byte == NEXT);
    while let Ok(Some(line)) = asked.next_line().await {
        if !line.contains("\"id\"") {
            continue;
        }
        let Some(turn) = turns.next() else { return };
        if answers.write_all(turn).await.is_err() {
            return;
        }
    }
}

/// Fuzzes tool definitions and results without the lines around them.
#[test]
fn mcp_tools() {
    sepal_fuzz::check("mcp_tools", |input| {
        if let Ok(odd) = lenient::parse(input) {
            check_neighbours(&odd);
        }
        if let Ok(result) = serde_json::from_slice::<CallToolResult>(input) {
            check_answer(&ToolAnswer::from_wire(result, &Cleaner::default()));
        }
        let Ok(listed) = serde_json::from_slice::<ListToolsResult>(input) else {
            return;
        };
        let mut tools: Vec<Tool> = Vec::new();
        for tool in &listed.tools {
            tools.extend(listing::read(tool, &tools));
        }
        check_tools(&tools);
        let mut toolbox = Toolbox::default();
        let offer = Offer {
            server: "s",
            prefix: "",
            naming: Naming::Auto,
            is_trusted: false,
        };
        drop(toolbox.add(offer, &tools));
        for tool in toolbox.tools() {
            for args in [
                json!({}),
                json!({"a": 1, "b": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}),
            ] {
                let _ = tool.problem_with(&args);
            }
        }
    });
}

/// One odd element changes only itself, and rmcp reads the whole in the form that was asked for.
fn check_neighbours(odd: &Value) {
    let text = |text: &str| json!({"type": "text", "text": text});
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let resource = |name: &str| json!({"name": name, "uri": "a:b"});
    let contents = |text: &str| json!({"uri": "a:b", "text": text});
    let prompt = |name: &str| json!({"name": name, "arguments": []});
    let message = |name: &str| json!({"role": "user", "content": text(name)});
    let around = |fine: &dyn Fn(&str) -> Value| json!([fine("a"), odd, fine("b")]);
    let check = |method: &str, member: &str, fine: &dyn Fn(&str) -> Value| {
        let read = lenient::mended(method, json!({ member: around(fine) }));
        let all = read[member].as_array().unwrap();
        assert_eq!(all.first(), Some(&fine("a")), "{method}: {odd}");
        assert_eq!(all.last(), Some(&fine("b")), "{method}: {odd}");
        let alone = lenient::mended(method, json!({ member: [odd] }));
        let alone = alone[member].as_array().unwrap();
        assert_eq!(all.len(), alone.len() + 2, "{method}: {odd}");
        read
    };
    let read = check("tools/call", "content", &text);
    serde_json::from_value::<CallToolResult>(read).unwrap();
    let read = check("tools/list", "tools", &tool);
    serde_json::from_value::<ListToolsResult>(read).unwrap();
    let read = check("resources/list", "resources", &resource);
    serde_json::from_value::<ListResourcesResult>(read).unwrap();
    let read = check("resources/read", "contents", &contents);
    serde_json::from_value::<ReadResourceResult>(read).unwrap();
    let read = check("prompts/list", "prompts", &prompt);
    serde_json::from_value::<ListPromptsResult>(read).unwrap();
    let read = check("prompts/get", "messages", &message);
    serde_json::from_value::<GetPromptResult>(read).unwrap();
    let whole = lenient::mended("initialize", odd.clone());
    if odd.is_object() && odd.get("supportedVersions").is_none() {
        serde_json::from_value::<InitializeResult>(whole).unwrap();
    }
}

fn check_tools(tools: &[Tool]) {
    assert!(tools.len() <= 1_000);
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let is_fit = |name: &&str| name.len() <= 200 && name.bytes().all(|it| it.is_ascii_graphic());
    assert!(names.iter().all(is_fit), "{names:?}");
    assert!(tools.iter().all(|tool| tool.input_schema.is_object()));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), tools.len(), "no name comes twice");
}

fn check_answer(answer: &ToolAnswer) {
    assert!(answer.text.len() < 61 * 1024, "{} bytes", answer.text.len());
    let structured = answer.structured.as_ref().map(Value::to_string);
    assert!(structured.is_none_or(|text| text.len() <= 60 * 1024));
}
