//! A model vendor that executes the script of the last message, with the faults of real vendors.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use bytes::Bytes;
use fastrand::Rng;
use futures::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::check::ledger::Ledger;
use super::phase::Phase;
use super::script::{Script, word};
use crate::completions::{CompletionRequest, chunk, events, usage};

/// The vendor.
pub(crate) struct Model {
    phase: Arc<Phase>,
    ledger: Arc<Ledger>,
    rng: Mutex<Rng>,
    requests: AtomicU64,
}

/// The fault of one answer; the number is the index of the piece before which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Nothing,
    /// 429 with `Retry-After`.
    RateLimited,
    /// 500 or 503.
    Broken(StatusCode),
    /// The connection is cut.
    Cut(usize),
    /// An event that is not valid JSON.
    BadEvent(usize),
    /// A pause before the rest of the answer.
    Pause(usize, Duration),
    /// A pause, after which the connection is cut.
    PauseAndCut(usize, Duration),
    /// No further piece arrives.
    Silence(usize),
}

impl Model {
    /// Listens on a free port until the end of the run.
    pub(crate) async fn serve(
        phase: Arc<Phase>,
        ledger: Arc<Ledger>,
        rng: Rng,
        tasks: &TaskTracker,
    ) -> Result<SocketAddr> {
        let model = Arc::new(Self {
            phase,
            ledger,
            rng: Mutex::new(rng),
            requests: AtomicU64::new(0),
        });
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let address = listener.local_addr()?;
        let routes = Router::new()
            .route("/v1/chat/completions", post(answer))
            .layer(DefaultBodyLimit::disable())
            .with_state(model);
        tasks.spawn(async move { axum::serve(listener, routes).await });
        Ok(address)
    }

    fn trouble(&self, pieces: usize) -> Trouble {
        if self.phase.calm.is_cancelled() {
            return Trouble::Nothing;
        }
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let at = rng.usize(0..=pieces);
        let pause = Duration::from_millis(rng.u64(2_000..15_000));
        let (trouble, name) = match rng.u32(0..10_000) {
            0..300 => (Trouble::RateLimited, "fault: 429"),
            300..450 => (
                Trouble::Broken(StatusCode::INTERNAL_SERVER_ERROR),
                "fault: 500",
            ),
            450..600 => (
                Trouble::Broken(StatusCode::SERVICE_UNAVAILABLE),
                "fault: 503",
            ),
            600..900 => (Trouble::Cut(at), "fault: cut"),
            900..1_050 => (Trouble::BadEvent(at), "fault: bad event"),
            1_050..1_150 => (Trouble::Pause(at, pause), "fault: pause"),
            1_150..1_250 => (Trouble::PauseAndCut(at, pause), "fault: pause and cut"),
            1_250..1_256 if self.phase.is_long => (Trouble::Silence(at), "fault: silence"),
            _ => return Trouble::Nothing,
        };
        self.ledger.count(name);
        trouble
    }
}

async fn answer(State(model): State<Arc<Model>>, body: Bytes) -> Response {
    let request = model.requests.fetch_add(1, Ordering::Relaxed);
    let pieces = match pieces(&body, request) {
        Ok(pieces) => pieces,
        Err(problem) => {
            model.ledger.count("requests that make no sense");
            return (StatusCode::BAD_REQUEST, problem).into_response();
        }
    };
    let trouble = model.trouble(pieces.0.len());
    match trouble {
        Trouble::RateLimited => {
            let error = json!({ "error": { "message": "Slow down", "code": "rate_limit" } });
            let head = [(header::RETRY_AFTER, "1")];
            (StatusCode::TOO_MANY_REQUESTS, head, axum::Json(error)).into_response()
        }
        Trouble::Broken(status) => {
            let error = json!({ "error": { "message": "Something broke" } });
            (status, axum::Json(error)).into_response()
        }
        Trouble::Nothing
        | Trouble::Cut(_)
        | Trouble::BadEvent(_)
        | Trouble::Pause(..)
        | Trouble::PauseAndCut(..)
        | Trouble::Silence(_) => events(play(pieces, trouble, model.phase.calm.clone())),
    }
}

type Pieces = (Vec<Bytes>, Duration);

/// Returns the pieces of the answer, and the gap between two of them.
fn pieces(body: &[u8], request: u64) -> Result<Pieces, String> {
    let asked: CompletionRequest =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let mut rounds = 0;
    let mut script = None;
    for said in asked.messages.iter().rev() {
        if said.role == "user" {
            script = Script::read(&text_of(&said.content));
            break;
        }
        rounds += usize::from(said.role == "assistant");
    }
    let script = script.ok_or("nobody asks")?;
    let mut pieces = vec![chunk(&json!({ "role": "assistant", "content": "" }), None)];
    if let Some(round) = script.rounds.get(rounds) {
        pieces.push(chunk(&json!({ "content": "I look. " }), None));
        for (index, deed) in round.iter().enumerate() {
            let mark = format!("{}.{request}.{index}", script.id);
            let (tool, args) = deed.call(&script.tag, &mark);
            let name = asked.tool(tool).unwrap_or(tool);
            let call = json!({
                "index": index, "id": format!("call_{request}_{index}"), "type": "function",
                "function": { "name": name, "arguments": args.to_string() },
            });
            pieces.push(chunk(&json!({ "tool_calls": [call] }), None));
        }
        pieces.push(chunk(&json!({}), Some("tool_calls")));
    } else {
        let said = (0..script.words).map(|index| word(&script.id, request, index));
        pieces.extend(said.map(|word| chunk(&json!({ "content": word }), None)));
        pieces.push(chunk(&json!({}), Some("stop")));
    }
    pieces.push(usage(script.words));
    Ok((pieces, Duration::from_millis(script.gap_ms)))
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn play(
    (pieces, gap): Pieces,
    trouble: Trouble,
    calm: CancellationToken,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send + 'static {
    let state = (pieces.into_iter(), 0_usize, trouble);
    stream::unfold(state, move |(mut pieces, index, mut trouble)| {
        let calm = calm.clone();
        async move {
            let is_cut = || Err(io::Error::other("cut"));
            match trouble {
                Trouble::Cut(at) if at == index => {
                    return Some((is_cut(), (pieces, index, trouble)));
                }
                Trouble::BadEvent(at) if at == index => {
                    let bad = Bytes::from_static(b"data: {\"choices\": [oops\n\n");
                    return Some((Ok(bad), (pieces, index, Trouble::Nothing)));
                }
                Trouble::Pause(at, pause) if at == index => {
                    calm.run_until_cancelled(tokio::time::sleep(pause)).await;
                    trouble = Trouble::Nothing;
                }
                Trouble::PauseAndCut(at, pause) if at == index => {
                    calm.run_until_cancelled(tokio::time::sleep(pause)).await;
                    return Some((is_cut(), (pieces, index, trouble)));
                }
                Trouble::Silence(at) if at == index => {
                    calm.cancelled().await;
                    return Some((is_cut(), (pieces, index, trouble)));
                }
                Trouble::Nothing
                | Trouble::RateLimited
                | Trouble::Broken(_)
                | Trouble::Cut(_)
                | Trouble::BadEvent(_)
                | Trouble::Pause(..)
                | Trouble::PauseAndCut(..)
                | Trouble::Silence(_) => {}
            }
            let piece = pieces.next()?;
            if !gap.is_zero() {
                tokio::time::sleep(gap).await;
            }
            Some((Ok(piece), (pieces, index + 1, trouble)))
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::pieces;
    use crate::soak::script::{Deed, Script};

    #[test]
    fn rounds_come_one_after_the_other_and_then_the_answer() {
        let script = Script {
            id: "m".to_owned(),
            tag: "t".to_owned(),
            words: 2,
            gap_ms: 0,
            rounds: vec![vec![Deed::Quick], vec![Deed::Fails]],
        };
        let mut messages = vec![json!({ "role": "user", "content": script.text() })];
        let mut said = Vec::new();
        for _ in 0..3 {
            let tools = [json!({ "function": { "name": "bundled_execute_command" } })];
            let body = json!({ "messages": messages, "tools": tools }).to_string();
            let (pieces, _) = pieces(body.as_bytes(), 9).unwrap();
            said.push(String::from_utf8(pieces.concat()).unwrap());
            messages.push(json!({ "role": "assistant" }));
            messages.push(json!({ "role": "tool", "content": "x" }));
        }
        assert!(said[0].contains("bundled_execute_command") && said[0].contains("echo done"));
        assert!(said[1].contains("exit 3"));
        assert!(said[2].contains("m/9:0") && said[2].contains("m/9:1"));
        assert!(!said[2].contains("m/9:2"));
    }
}
