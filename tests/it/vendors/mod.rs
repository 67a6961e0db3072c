//! OpenAI's Responses, Anthropic and Gemini against strict stand-ins on loopback, one file per subject, alone and below the whole app.

mod compaction;
mod compatible;
mod endings;
mod hosts;
mod long_arguments;
mod mid_turn;
mod refusals;
mod responses;
mod stories;
mod switching;
mod thinking;
mod tool_search;
mod vendor_compaction;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use secrecy::SecretString;
use sepal::domain::{CallId, Entry, ModelCall, Native, Tool, ToolAnnotations};
use sepal::llm::{
    self, Answer, Api, CacheTtl, Collector, CompactionSetting, Error, ModelEvent, Provider,
    ProviderKind, Request, Settings,
};
use sepal::net;
use serde_json::Value;
use tokio::time::timeout;

use crate::model_stub::{ModelStub, STUB_KEY, Vendor};
use crate::support::DEADLINE;

/// The vendors that the tests of this folder are about.
const VENDORS: [Vendor; 3] = [Vendor::Responses, Vendor::Messages, Vendor::Gemini];

fn provider(stub: &ModelStub, key: &str) -> Arc<dyn Provider> {
    connect("stub", stub, key)
}

/// The same under another name.
fn provider_called(id: &str, stub: &ModelStub) -> Arc<dyn Provider> {
    connect(id, stub, STUB_KEY)
}

fn connect(id: &str, stub: &ModelStub, key: &str) -> Arc<dyn Provider> {
    net::install_tls();
    let settings = Settings {
        id: id.to_owned(),
        kind: ProviderKind::parse(stub.vendor.provider()).unwrap(),
        api_key: Some(SecretString::from(key)),
        base_url: Some(stub.base_url()),
        api: match stub.vendor {
            Vendor::Responses => Api::Responses,
            Vendor::Chat | Vendor::Messages | Vendor::Gemini => Api::Auto,
        },
        cache_ttl: CacheTtl::default(),
        compaction: CompactionSetting::default(),
        pace: Duration::ZERO,
    };
    llm::connect(settings, net::client(&net::Settings::default()).unwrap()).unwrap()
}

fn user(text: &str) -> Entry {
    Entry::User {
        seq: 1,
        text: text.to_owned(),
        attachments: vec![],
    }
}

fn said(text: &str, calls: Vec<ModelCall>, native: Option<Native>) -> Entry {
    Entry::Assistant {
        text: text.to_owned(),
        calls,
        native,
    }
}

fn call(index: usize, provider_id: &str, name: &str, args: Value) -> ModelCall {
    ModelCall {
        id: CallId::new(1, index),
        provider_id: provider_id.to_owned(),
        name: name.to_owned(),
        args,
    }
}

fn result(call: &ModelCall, text: &str) -> Entry {
    Entry::ToolResult {
        call_id: call.id.clone(),
        provider_id: call.provider_id.clone(),
        name: call.name.clone(),
        text: text.to_owned(),
        is_error: false,
        attachments: vec![],
    }
}

fn tool(name: &str, input_schema: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        title: None,
        description: "A tool".to_owned(),
        input_schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    }
}

fn request(vendor: Vendor, entries: Vec<Entry>) -> Request {
    Request {
        model: vendor.model().to_owned(),
        system: Some("Be kind.".into()),
        entries: entries.into(),
        contents: llm::Contents::default(),
        tools: Arc::from([tool("read_file", Value::Null)]),
        deferral: None,
        temperature: None,
        effort: None,
        max_tokens: None,
        max_output: None,
        affordable: None,
        compacting: None,
    }
}

async fn collect(provider: &Arc<dyn Provider>, request: Request) -> Result<Answer, Error> {
    let mut collector = Collector::default();
    let mut stream = provider.stream(request).await?;
    while let Some(event) = timeout(DEADLINE, stream.next()).await.unwrap() {
        collector.push(&event?);
    }
    Ok(collector.finish())
}

/// Asks once and gives the answer to one question.
async fn tell(stub: &ModelStub) -> Result<Answer, Error> {
    let request = request(stub.vendor, vec![user("hi")]);
    collect(&provider(stub, STUB_KEY), request).await
}

/// Asks, and gives what was said to be left out.
async fn left_out(provider: &Arc<dyn Provider>, request: Request) -> Vec<String> {
    let mut told = Vec::new();
    let mut stream = provider.stream(request).await.unwrap();
    while let Some(event) = timeout(DEADLINE, stream.next()).await.unwrap() {
        if let ModelEvent::LeftOut(text) = event.unwrap() {
            told.push(text);
        }
    }
    told
}
