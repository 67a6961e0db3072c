//! A free model vendor: streams Chat Completions as the message's plan requests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::completions::{CompletionRequest, chunk, events, usage};
use crate::plan::{Plan, token};

/// Serves until the process is ended; prints its address on standard output.
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("{}", listener.local_addr()?);
    let routes = Router::new()
        .route("/v1/chat/completions", post(answer))
        .layer(axum::extract::DefaultBodyLimit::disable());
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        // Otherwise a token could wait for the acknowledgement of the previous one.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, routes).await?;
    Ok(())
}

async fn answer(body: Bytes) -> Response {
    match plan(&body) {
        Ok((plan, None)) => streamed(plan),
        Ok((plan, Some(tool))) => calls(plan, &tool),
        Err(problem) => (axum::http::StatusCode::BAD_REQUEST, problem).into_response(),
    }
}

/// Returns the plan in the last user message, and the tool to call, if a call is due.
fn plan(body: &[u8]) -> Result<(Plan, Option<String>), String> {
    let asked: CompletionRequest =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let last = asked.messages.last().ok_or("there is no message")?;
    let said = asked.messages.iter().rev().find(|said| said.role == "user");
    let text = said.and_then(|said| said.content.as_str());
    let plan: Plan =
        serde_json::from_str(text.ok_or("nobody asks")?).map_err(|error| error.to_string())?;
    if plan.calls == 0 || last.role == "tool" {
        return Ok((plan, None));
    }
    let tool = asked.tool("list_files").ok_or("the tool is not offered")?;
    Ok((plan, Some(tool.to_owned())))
}

fn streamed(plan: Plan) -> Response {
    let said = move |_| Ok::<_, Infallible>(chunk(&json!({ "content": token() }), None));
    let end = stream::iter([Ok(chunk(&json!({}), Some("stop"))), Ok(usage(plan.tokens))]);
    let first = stream::iter([Ok(chunk(
        &json!({ "role": "assistant", "content": "" }),
        None,
    ))]);
    if plan.gap_us == 0 {
        return events(
            first
                .chain(stream::iter(0..plan.tokens).map(said))
                .chain(end),
        );
    }
    let gap = Duration::from_micros(plan.gap_us);
    let mut ticks = interval_at(Instant::now() + plan.until_first(), gap);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let paced = stream::unfold((ticks, plan.tokens), move |(mut ticks, left)| async move {
        let left = left.checked_sub(1)?;
        ticks.tick().await;
        Some((said(left), (ticks, left)))
    });
    events(first.chain(paced).chain(end))
}

fn calls(plan: Plan, tool: &str) -> Response {
    let call = |index: usize| {
        json!({
            "index": index, "id": format!("call_{}_{index}", crate::plan::now_ns()), "type": "function",
            "function": { "name": tool, "arguments": "{\"path\":\".\"}" },
        })
    };
    let pieces: Vec<_> = (0..plan.calls)
        .map(|index| chunk(&json!({ "tool_calls": [call(index)] }), None))
        .chain([chunk(&json!({}), Some("tool_calls")), usage(plan.calls)])
        .map(Ok::<_, Infallible>)
        .collect();
    events(stream::iter(pieces))
}
