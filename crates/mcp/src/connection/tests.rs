//! Talks over a stream to servers that answer as servers really do.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{ClientOffer, Connection, ToolCall};
use crate::error::Error;
use crate::offers::Offers;
use crate::tools::result::ToolAnswer;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
const LISTED: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}"#;

/// Opens a connection to a server that answers the methods as told; `$ID` in an answer is the request's id.
async fn open(answers: &'static [(&'static str, &'static str)]) -> Result<Connection, Error> {
    let (ours, theirs) = duplex(1 << 16);
    let (output, input) = split(ours);
    let (asked, mut say) = split(theirs);
    let serve = async move {
        let mut lines = BufReader::new(asked).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            let method = request["method"].as_str().unwrap_or_default();
            let found = answers.iter().find(|(name, _)| *name == method);
            let answer = match (found, method) {
                (Some((_, answer)), _) => *answer,
                (None, "initialize") => INITIALIZED,
                (None, "tools/list") => LISTED,
                (None, _) => continue,
            };
            let answer = answer.replace("$ID", &request["id"].to_string());
            if say
                .write_all(format!("{answer}\n").as_bytes())
                .await
                .is_err()
            {
                return;
            }
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the server ends with its connection"
    )]
    tokio::spawn(serve);
    Connection::open("s", output, input, ClientOffer::default()).await
}

/// Calls the tool of a server that answers so; the call has to end at once.
async fn call(answer: &'static [(&'static str, &'static str)]) -> Result<ToolAnswer, Error> {
    let connection = open(answer).await.unwrap();
    let call = ToolCall {
        tool: "t".to_owned(),
        args: json!({}),
        limit: Duration::from_mins(1),
        standstill: None,
        task: None,
    };
    let begun = Instant::now();
    let answer = connection.call(call, &CancellationToken::new(), drop).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{answer:?}");
    answer
}

#[tokio::test(start_paused = true)]
async fn an_error_ends_its_call_at_once_with_the_servers_words() {
    for answer in [
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"INTERNAL","message":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":1e100,"message":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":5000000000,"message":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":null,"message":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"data":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"error":"disk on fire"}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"result":null,"error":{"code":1,"message":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":"$ID","error":{"code":1,"message":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"id":$ID,"error":{"code":1,"message":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"disk on fire"}}"#,
        )],
        &[(
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"disk on fire \ud83d"}}"#,
        )],
        &[(
            "tools/call",
            r#"[{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"disk on fire"}}]"#,
        )],
    ] {
        match call(answer).await {
            Err(Error::Refused(words)) => assert!(words.contains("disk on fire"), "{words}"),
            other => panic!("{answer:?}: {other:?}"),
        }
    }
    // An answer that is no JSON: the call may have run.
    let broken = call(&[(
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[}}"#,
    )]);
    assert!(matches!(broken.await, Err(Error::NoAnswer { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ran_is_never_told_as_refused() {
    for (answer, expected) in [
        (
            &[(
                "tools/call",
                r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":"done"}}"#,
            )],
            "done",
        ),
        (
            &[(
                "tools/call",
                r#"{"jsonrpc":"2.0","id":$ID,"result":"done"}"#,
            )],
            "done",
        ),
        (
            &[(
                "tools/call",
                r#"{"jsonrpc":"2.0","id":"$ID","result":{"toolResult":"done"}}"#,
            )],
            "done",
        ),
        (
            &[(
                "tools/call",
                r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"done"},null]}}"#,
            )],
            "part 2 of the answer is left out",
        ),
        (
            &[(
                "tools/call",
                r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"half \ud83d"}]}}"#,
            )],
            "half",
        ),
        (
            &[(
                "tools/call",
                r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":{"a":NaN}}}"#,
            )],
            "null",
        ),
        (
            &[("tools/call", r#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#)],
            "empty result",
        ),
        (
            &[(
                "tools/call",
                r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[],"content":[{"type":"text","text":"done"}]}}"#,
            )],
            "done",
        ),
        (
            &[("tools/call", r#"{"jsonrpc":"2.0","id":$ID}"#)],
            "without a result",
        ),
    ] {
        let answer = call(answer).await.unwrap();
        assert!(
            answer.text.contains(expected),
            "{expected}: {}",
            answer.text
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_list_lacks_is_named_and_a_cursor_that_repeats_ends_it() {
    let connection = open(&[(
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"nextCursor":1,"tools":[null,{"name":"t","inputSchema":{}},{"name":"bare"}]}}"#,
    )]);
    let connection = connection.await.unwrap();
    let tools = connection.tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["t", "bare"]);
    let problems = Offers::of(&connection).list().await.problems;
    for expected in [
        "tool 1 is left out",
        "`bare`: it has no input schema",
        "repeats a page",
    ] {
        assert!(
            problems.iter().any(|it| it.contains(expected)),
            "{expected}: {problems:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_can_list_tools_is_used_whatever_its_handshake_says() {
    for answer in [
        &[(
            "initialize",
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":null,"serverInfo":{"name":"s","version":"1"}}}"#,
        )],
        &[(
            "initialize",
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18"}}"#,
        )],
        &[(
            "initialize",
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"capabilities":{"tools":true},"serverInfo":{"name":"s","version":1}}}"#,
        )],
        &[(
            "initialize",
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"capabilities":["tools"],"protocolVersion":2}}"#,
        )],
        &[("initialize", r#"{"jsonrpc":"2.0","id":"$ID","result":{}}"#)],
    ] {
        let connection = open(answer).await.unwrap();
        assert_eq!(connection.tools().await.unwrap().len(), 1, "{answer:?}");
    }
    for (answer, expected) in [
        (
            &[(
                "initialize",
                r#"{"jsonrpc":"2.0","id":$ID,"result":"hello"}"#,
            )],
            "describes no MCP server",
        ),
        (
            &[(
                "initialize",
                r#"{"jsonrpc":"2.0","id":$ID,"error":"come back later"}"#,
            )],
            "come back later",
        ),
    ] {
        let Err(error) = open(answer).await else {
            panic!("{answer:?} is no handshake");
        };
        assert!(error.to_string().contains(expected), "{error}");
    }
}
