//! What a tool's result may hold: each kind of content comes to people and to models as what it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sepal::domain::Role;
use serde_json::{Value, json};

use super::stand_in::StandIn;
use super::{Api, operator, wait_for_health};
use crate::model_stub::Vendor;
use crate::support::{Person, Said, TestApp, TestSocket};

/// A sound that is long enough to be one.
fn wave() -> Vec<u8> {
    let mut wave =
        b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data"
            .to_vec();
    wave.extend([0; 40]);
    wave
}

/// The end of the one call of a server's `echo`, and what the model was sent then.
async fn result_of(app: &TestApp, server: &StandIn) -> (Said, Value, (TestSocket, Person)) {
    let person = operator(app, "house").await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let api = Api::new(app, &person);
    api.add("odd", json!({ "url": server.url, "trusted": true }))
        .await;
    wait_for_health(&mut socket, "odd", "healthy").await;
    app.model.will_call("echo", json!({})).then_say("I see");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(socket.wait_for_answer().await, "I see");
    let asked = app.model.requests().pop().unwrap().body;
    (output, asked, (socket, person))
}

fn tool() -> Value {
    json!({ "name": "echo", "inputSchema": { "type": "object" } })
}

/// Asserts S0.52: sound, resources and links beside a text; what is for people alone stays with them.
#[tokio::test]
async fn every_kind_of_content_reaches_people_and_the_models_that_take_it() {
    let sound = STANDARD.encode(wave());
    let result = json!({ "content": [
        { "type": "text", "text": "for both" },
        { "type": "text", "text": "for eyes", "annotations": { "audience": ["user"] } },
        { "type": "text", "text": "for the model", "annotations": { "audience": ["assistant"] } },
        { "type": "audio", "data": sound, "mimeType": "audio/wav" },
        { "type": "resource", "resource": { "uri": "demo://note", "mimeType": "text/html",
            "text": "<script>alert(1)</script>" } },
        { "type": "resource", "resource": { "uri": "demo://x/data.bin?v=1", "blob": "AAECAw==" } },
        { "type": "resource_link", "uri": "demo://more", "name": "more", "mimeType": "text/plain" },
    ] });
    for vendor in Vendor::ALL {
        let app = TestApp::start_as(vendor, &[("SPL_SANDBOX", "none")]).await;
        let server = StandIn::with_result(tool(), result.clone()).await;
        let (output, asked, _) = result_of(&app, &server).await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
        let blocks = output.rest()["blocks"].as_array().unwrap().clone();
        let kinds: Vec<&str> = blocks
            .iter()
            .map(|it| it["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "text",
                "text",
                "text",
                "file",
                "resource",
                "file",
                "resource_link"
            ]
        );
        assert_eq!(blocks[1]["audience"], "user");
        assert_eq!(blocks[2]["audience"], "assistant");
        assert_eq!(blocks[3]["attachment"]["mediaType"], "audio/wav");
        assert_eq!(blocks[4]["text"], "<script>alert(1)</script>");
        let blob = &blocks[5]["attachment"];
        assert_eq!(blob["mediaType"], "application/octet-stream");
        assert_eq!(blob["name"], "data.bin");
        assert_eq!(
            blob["source"],
            json!({ "server": "odd", "uri": "demo://x/data.bin?v=1" })
        );
        assert_eq!(blocks[6]["uri"], "demo://more");

        let asked = asked.to_string();
        let is_sent = |text: &str| asked.contains(text);
        assert!(is_sent("for both") && is_sent("for the model") && is_sent("demo://more"));
        assert!(is_sent("alert(1)"), "{asked}");
        assert!(!is_sent("for eyes"), "{vendor:?} {asked}");
        // Gemini hears; all others are told what they are not sent.
        let hears = vendor == Vendor::Gemini;
        assert_eq!(is_sent(&sound), hears, "{vendor:?} {asked}");
        assert_eq!(is_sent("this model cannot hear"), !hears, "{vendor:?}");
        assert!(
            is_sent("no model can read this kind of file"),
            "{vendor:?} {asked}"
        );
    }
}

/// Asserts S0.52: A file of a result is saved, never shown as a page; strangers do not get it.
#[tokio::test]
async fn a_file_of_a_result_is_its_session_s_alone_and_never_runs() {
    let svg =
        STANDARD.encode("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>");
    let result = json!({ "content": [
        { "type": "resource", "resource": { "uri": "demo://a.svg", "mimeType": "image/svg+xml", "blob": svg } },
        { "type": "image", "data": svg, "mimeType": "image/svg+xml" },
    ] });
    let app = TestApp::start().await;
    let server = StandIn::with_result(tool(), result).await;
    let (output, _, (socket, owner)) = result_of(&app, &server).await;
    let blocks = output.rest()["blocks"].as_array().unwrap().clone();
    let kept = &blocks[0]["attachment"];
    assert_eq!(kept["mediaType"], "text/plain");
    assert!(
        blocks[1]["text"].as_str().unwrap().contains("not kept"),
        "{blocks:?}"
    );
    let path = format!(
        "/api/sessions/{}/attachments/{}",
        socket.session(),
        kept["id"].as_str().unwrap()
    );
    let ask = async |person: &Person| {
        let request = TestApp::http().get(app.url(&path)).bearer_auth(&person.key);
        request.send().await.unwrap()
    };
    let answer = ask(&owner).await;
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert!(header("content-disposition").starts_with("attachment"));
    assert!(header("content-security-policy").contains("sandbox"));
    for stranger in [
        app.person_with("house", Role::Member).await,
        app.person_with("acme", Role::Owner).await,
    ] {
        assert_eq!(ask(&stranger).await.status(), 404);
    }
}

/// Asserts S0.52: what a tool promised of its structured result is held against it; what does not fit is
/// told and nothing is lost.
#[tokio::test]
async fn a_structured_result_is_read_by_the_model_and_a_mismatch_is_told() {
    let schema = json!({ "type": "object", "properties": { "degrees": { "type": "number" } },
        "required": ["degrees"] });
    let tool =
        json!({ "name": "echo", "inputSchema": { "type": "object" }, "outputSchema": schema });
    for (structured, text, told) in [
        (json!({ "degrees": 21.5 }), "warm", None),
        (json!({ "degrees": "hot" }), "warm", Some("at `/degrees`")),
        (Value::Null, "warm", Some("no structured result")),
    ] {
        let app = TestApp::start().await;
        let mut result = json!({ "content": [{ "type": "text", "text": text }] });
        if !structured.is_null() {
            result["structuredContent"] = structured.clone();
        }
        let server = StandIn::with_result(tool.clone(), result).await;
        let (output, asked, _) = result_of(&app, &server).await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
        assert_eq!(
            output.rest().get("structured").cloned().unwrap_or_default(),
            structured
        );
        let said = output.text();
        assert!(said.contains(text) && asked.to_string().contains(text));
        let has_problem = said.contains("output schema");
        assert_eq!(has_problem, told.is_some(), "{said}");
        assert!(told.is_none_or(|told| said.contains(told)), "{said}");
        if structured.is_object() {
            assert!(said.contains(&structured.to_string()), "{said}");
        }
    }
}

/// What a command writes beyond what a record shows is there whole for its person, up to the limit of the
/// setting, and for nobody else.
#[tokio::test]
async fn a_long_output_of_a_command_can_be_opened_whole() {
    let limit = ("SPL_SANDBOX_OUTPUT_KB", "256");
    let app = TestApp::start_with(&[("SPL_SANDBOX", "bubblewrap"), limit]).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    for (command, bytes) in [
        ("seq 20000; seq 9 >&2", Some(108_894)),
        ("seq 100000", None),
    ] {
        app.model
            .will_call("execute_command", json!({ "command": command }))
            .then_say("I see");
        socket.say("go").await;
        let card = socket.wait_for_approval().await;
        socket.approve(&card).await;
        let output = socket.wait_for("tool:output").await;
        assert_eq!(socket.wait_for_answer().await, "I see");
        assert!(output.text().contains("bytes left out"), "{output:?}");
        let asked = app.model.requests().pop().unwrap().body.to_string();
        assert!(!asked.contains("stdout.txt"), "{asked}");
        let files: Vec<Value> = output.rest()["blocks"]
            .as_array()
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let files: Vec<&Value> = files.iter().filter(|it| it["type"] == "file").collect();
        let Some(bytes) = bytes else {
            assert!(files.is_empty(), "{output:?}");
            continue;
        };
        let [file] = files.as_slice() else {
            panic!("{output:?}")
        };
        assert_eq!(
            (&file["audience"], &file["attachment"]["name"]),
            (&json!("user"), &json!("stdout.txt"))
        );
        assert_eq!(file["attachment"]["bytes"], bytes);
        let id = file["attachment"]["id"].as_str().unwrap();
        let path = format!("/api/sessions/{}/attachments/{id}", socket.session());
        let read = |key: String| TestApp::http().get(app.url(&path)).bearer_auth(key).send();
        let text = read(owner.key.clone()).await.unwrap().text().await.unwrap();
        assert!(text.starts_with("1\n2\n") && text.ends_with("19999\n20000\n"));
        let stranger = app.person_with("other", Role::Owner).await;
        assert_eq!(read(stranger.key).await.unwrap().status(), 404);
    }
}
