//! Attachments through the whole house: uploaded, said, seen by the model, read again, deleted.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use reqwest::Method;
use serde_json::{Value, json};

use crate::model_stub::Vendor;
use crate::rest::{Answer, Client};
use crate::support::{Person, TestApp, TestSocket};

const PLAIN: &[(&str, &str)] = &[("SPL_SANDBOX", "none")];

pub(crate) fn png(width: u32, height: u32, color: [u8; 3]) -> Vec<u8> {
    let image: DynamicImage = RgbImage::from_pixel(width, height, Rgb(color)).into();
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn at(session: &str) -> String {
    format!("/api/sessions/{session}/attachments")
}

pub(crate) async fn upload(client: &Client, session: &str, name: &str, bytes: Vec<u8>) -> Answer {
    let path = format!("{}?name={name}", at(session));
    let request = client.request(Method::POST, &path).body(bytes);
    Answer::of(request.send().await.unwrap()).await
}

async fn read(client: &Client, session: &str, id: &str) -> (Answer, Vec<u8>) {
    let path = format!("{}/{id}", at(session));
    let response = client.request(Method::GET, &path).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.unwrap().to_vec();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (
        Answer {
            status,
            headers,
            text,
        },
        bytes,
    )
}

/// Somebody with a session.
pub(crate) async fn with_session(app: &TestApp, tenant: &str) -> (Person, Client, String) {
    let person = app.person(tenant).await;
    let client = Client::with_key(app, &person.key);
    let created = client.post("/api/sessions", json!({})).await.ok(201);
    let id = created["id"].as_str().unwrap().to_owned();
    (person, client, id)
}

/// The pictures of a request in each vendor's form, as their base64.
fn pictures(vendor: Vendor, body: &Value) -> Vec<String> {
    let (list, parts) = match vendor {
        Vendor::Chat | Vendor::Messages => ("messages", "content"),
        Vendor::Responses => ("input", "content"),
        Vendor::Gemini => ("contents", "parts"),
    };
    let messages = body[list].as_array().unwrap().iter();
    let parts = messages.flat_map(|message| message[parts].as_array().into_iter().flatten());
    let data = |part: &Value| {
        match vendor {
            Vendor::Chat => part.pointer("/image_url/url"),
            Vendor::Responses => part.pointer("/image_url"),
            Vendor::Messages => part.pointer("/source/data"),
            Vendor::Gemini => part.pointer("/inlineData/data"),
        }
        .and_then(Value::as_str)
        .map(|data| data.trim_start_matches("data:image/png;base64,").to_owned())
    };
    parts.filter_map(data).collect()
}

/// Asserts S3.19: the model sees exactly the picture that was uploaded, in the form of its vendor, in
/// the next turn and after a restart too; the transcript names it.
#[tokio::test]
async fn a_picture_reaches_the_model_in_its_vendors_form_and_survives_a_restart() {
    for vendor in Vendor::ALL {
        let app = TestApp::start_as(vendor, PLAIN).await;
        let (person, client, session) = with_session(&app, "acme").await;
        let item = upload(&client, &session, "cat.png", png(6, 4, [9, 8, 7]))
            .await
            .ok(201);
        assert_eq!(item["mediaType"], "image/png");
        assert_eq!((&item["width"], &item["height"]), (&json!(6), &json!(4)));
        let id = item["id"].as_str().unwrap().to_owned();
        let (_, kept) = read(&client, &session, &id).await;
        let image = image::load_from_memory(&kept).unwrap().into_rgb8();
        assert_eq!(image.get_pixel(3, 2), &Rgb([9, 8, 7]));

        app.model.will_say("A cat");
        let mut ana = TestSocket::open(app.address, &person, Some(&session)).await;
        let said = ana
            .ask(
                "message",
                &[json!({ "text": "what is it?", "attachments": [id] })],
            )
            .await;
        assert_eq!(said["ok"], true, "{said}");
        let shown = ana.wait_for("user:message").await;
        assert_eq!(shown.rest()["attachments"], json!([item]));
        assert_eq!(ana.wait_for_answer().await, "A cat");
        let data = STANDARD.encode(&kept);
        let asked = app.model.requests().pop().unwrap().body;
        assert_eq!(
            pictures(vendor, &asked),
            std::slice::from_ref(&data),
            "{vendor:?} {asked}"
        );
        drop(ana);

        let app = app.restart().await;
        let client = Client::with_key(&app, &person.key);
        assert_eq!(read(&client, &session, &id).await.1, kept);
        app.model.will_say("Still a cat");
        let body = json!({ "text": "sure?" });
        let path = format!("/api/sessions/{session}/messages");
        client.post(&path, body).await.ok(202);
        app.model.asked(2).await;
        let events = format!("/api/sessions/{session}/events");
        let transcript = client.get(&events).await.ok(200).to_string();
        assert!(transcript.contains(&id), "{transcript}");
        let asked = app.model.requests().pop().unwrap().body;
        assert_eq!(pictures(vendor, &asked), [data], "{vendor:?} {asked}");
    }
}

/// Asserts S3.19: text goes in as text, a PDF where the vendor reads it, and in words where not.
#[tokio::test]
async fn texts_and_papers_reach_the_model_or_are_named() {
    for vendor in Vendor::ALL {
        let app = TestApp::start_as(vendor, PLAIN).await;
        let (_, client, session) = with_session(&app, "acme").await;
        let note = upload(&client, &session, "note.txt", b"buy milk".to_vec())
            .await
            .ok(201);
        let paper = upload(&client, &session, "p.pdf", b"%PDF-1.4 x".to_vec())
            .await
            .ok(201);
        app.model.will_say("Read");
        let path = format!("/api/sessions/{session}/messages");
        let body = json!({ "text": "", "attachments": [note["id"], paper["id"]] });
        client.post(&path, body).await.ok(202);
        app.model.asked(1).await;
        let asked = app.model.requests().pop().unwrap().body.to_string();
        assert!(asked.contains("buy milk"), "{asked}");
        let data = STANDARD.encode(b"%PDF-1.4 x");
        let is_sent = asked.contains(&data);
        assert_eq!(is_sent, vendor != Vendor::Chat, "{vendor:?} {asked}");
        assert_eq!(
            asked.contains("this model cannot read PDF"),
            !is_sent,
            "{asked}"
        );
    }
}

/// A model that is known to see nothing gets words in the place of a picture.
#[tokio::test]
async fn a_model_without_eyes_reads_that_there_was_a_picture() {
    let extra = [("SPL_SANDBOX", "none"), ("SPL_LLM_MODEL", "gpt-3.5-turbo")];
    let app = TestApp::start_with(&extra).await;
    let (_, client, session) = with_session(&app, "acme").await;
    let item = upload(&client, &session, "cat.png", png(6, 4, [0; 3]))
        .await
        .ok(201);
    app.model.will_say("I cannot see");
    let path = format!("/api/sessions/{session}/messages");
    let body = json!({ "text": "look", "attachments": [item["id"]] });
    client.post(&path, body).await.ok(202);
    app.model.asked(1).await;
    let asked = app.model.requests().pop().unwrap().body.to_string();
    let words = r#"look\n\n[image \"cat.png\", 6×4: this model cannot see images]"#;
    assert!(asked.contains(words), "{asked}");
}

/// Asserts S3.19: neither another tenant nor another person gets in at any door, and what they upload
/// themselves tells them nothing.
#[tokio::test]
async fn nobody_else_gets_at_an_attachment() {
    let app = TestApp::start().await;
    let (_, client, session) = with_session(&app, "acme").await;
    let bytes = png(5, 5, [1, 2, 3]);
    let item = upload(&client, &session, "cat.png", bytes.clone())
        .await
        .ok(201);
    let id = item["id"].as_str().unwrap();
    for tenant in ["acme", "other"] {
        let (_, stranger, own) = with_session(&app, tenant).await;
        let (refused, _) = read(&stranger, &session, id).await;
        refused.problem(404, "session_not_found");
        let refused = upload(&stranger, &session, "x.png", bytes.clone()).await;
        refused.problem(404, "session_not_found");
        let (refused, _) = read(&stranger, &own, id).await;
        refused.problem(404, "not_found");
        let path = format!("/api/sessions/{own}/messages");
        let message = json!({ "text": "x", "attachments": [id] });
        let refused = stranger.post(&path, message.clone()).await;
        refused.problem(400, "invalid_arguments");
        let path = format!("/api/sessions/{session}/messages");
        let refused = stranger.post(&path, message).await;
        refused.problem(404, "session_not_found");
        // The same bytes are the same to somebody who has them, first or not.
        let again = upload(&stranger, &own, "cat.png", bytes.clone())
            .await
            .ok(201);
        assert_eq!(again, item);
        client
            .get(&format!("{}/{id}", at(&own)))
            .await
            .problem(404, "session_not_found");
    }
    let nobody = Client::nobody(&app);
    read(&nobody, &session, id)
        .await
        .0
        .problem(401, "unauthorized");
    upload(&nobody, &session, "x", bytes)
        .await
        .problem(401, "unauthorized");
}

/// Asserts S3.19: what is served cannot run in a browser, and goes with its session.
#[tokio::test]
async fn contents_are_served_safely_and_go_with_their_session() {
    let app = TestApp::start().await;
    let (_, client, session) = with_session(&app, "acme").await;
    let cat = upload(&client, &session, "%C3%A4.png", png(2, 2, [0; 3]))
        .await
        .ok(201);
    let page = b"<script>alert(1)</script>".to_vec();
    let page = upload(&client, &session, "page.html", page).await.ok(201);
    for (item, kind, way) in [
        (&cat, "image/png", "inline; filename*=UTF-8''%C3%A4%2Epng"),
        (
            &page,
            "text/plain; charset=utf-8",
            "attachment; filename*=UTF-8''page%2Ehtml",
        ),
    ] {
        let (answer, _) = read(&client, &session, item["id"].as_str().unwrap()).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), kind);
        assert_eq!(answer.header("content-disposition"), way);
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(
            answer
                .header("content-security-policy")
                .contains("default-src 'none'")
        );
        assert!(answer.header("cache-control").starts_with("private, "));
    }
    client.delete(&format!("/api/sessions/{session}")).await;
    let (gone, _) = read(&client, &session, cat["id"].as_str().unwrap()).await;
    gone.problem(404, "session_not_found");
    let late = upload(&client, &session, "late.png", png(2, 2, [0; 3])).await;
    late.problem(404, "session_not_found");
}

/// Asserts S3.19: a file that is too large, lies about its type, or hides a huge picture is refused in
/// words, and so is one too many.
#[tokio::test]
async fn what_does_not_fit_is_refused_in_words() {
    let extra = [
        ("SPL_SANDBOX", "none"),
        ("SPL_LIMIT_ATTACHMENT_MB", "1"),
        ("SPL_LIMIT_ATTACHMENTS_MB_PER_SESSION", "2"),
    ];
    let app = TestApp::start_with(&extra).await;
    let (_, client, session) = with_session(&app, "acme").await;
    let mut bomb = png(2, 2, [0; 3]);
    bomb[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    for (bytes, status, code) in [
        (vec![b'a'; 1_100_000], 413, "too_large"),
        (Vec::new(), 400, "invalid_arguments"),
        (b"\x7fELF\0 lies".to_vec(), 400, "invalid_arguments"),
        (b"MZ\x90\0 lies".to_vec(), 400, "invalid_arguments"),
        (bomb, 400, "invalid_arguments"),
    ] {
        let refused = upload(&client, &session, "cat.png", bytes).await;
        let problem = refused.problem(status, code);
        assert_eq!(problem["errors"][0]["field"], "file", "{problem}");
    }
    let paper = |fill: u8| [b"%PDF-".to_vec(), vec![fill; 900_000]].concat();
    for fill in [1, 2] {
        upload(&client, &session, "p.pdf", paper(fill))
            .await
            .ok(201);
    }
    let full = upload(&client, &session, "p.pdf", paper(3)).await;
    let problem = full.problem(413, "too_large");
    assert!(
        problem["detail"].as_str().unwrap().contains("2 MiB"),
        "{problem}"
    );

    let path = format!("/api/sessions/{session}/messages");
    let many: Vec<String> = (0..11).map(|n| format!("{n:064x}")).collect();
    for wrong in [json!(many), json!(["x"]), json!([format!("{:064x}", 1)])] {
        let refused = client
            .post(&path, json!({ "text": "x", "attachments": wrong }))
            .await;
        let problem = refused.problem(400, "invalid_arguments");
        assert_eq!(problem["errors"][0]["field"], "attachments", "{problem}");
    }
}
