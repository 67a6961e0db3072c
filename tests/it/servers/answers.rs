//! Answers that nobody can use: each ends its call at once, and says what is known of it.

use std::io::Cursor;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ImageFormat, Rgb, RgbImage};
use sepal::domain::Role;
use serde_json::json;

use super::odd::{Answer, Odd};
use super::{Api, operator, shell, wait_for_health};
use crate::model_stub::Vendor;
use crate::support::{Said, TestApp, TestSocket};

/// What is read of one message.
const LIMIT: &str = "4194304";
/// Half of the time limit of a call: 64 MiB take 8 s here, and more beside other tests.
const AT_ONCE: Duration = Duration::from_secs(30);

/// How the only call of a server ended, whose outcome has to come at once.
async fn outcome(socket: &mut TestSocket, app: &TestApp) -> Said {
    app.model.will_call("echo", json!({})).then_say("I see");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    let begun = Instant::now();
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    let took = begun.elapsed();
    assert!(took < AT_ONCE, "{took:?}: {output:?}");
    assert_eq!(socket.wait_for_answer().await, "I see");
    output
}

/// The same of a server over HTTP, and how often it was called.
async fn outcome_of(answer: Answer) -> (Said, usize) {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let odd = Odd::start(answer).await;
    let mut socket = TestSocket::open(app.address, &person, None).await;
    let api = Api::new(&app, &person);
    api.add("odd", json!({ "url": odd.url, "trusted": true }))
        .await;
    wait_for_health(&mut socket, "odd", "healthy").await;
    let output = outcome(&mut socket, &app).await;
    (output, odd.calls())
}

fn check_too_large(output: &Said, bytes: &str) {
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    let text = output.text();
    assert!(
        text.contains("too large") && text.contains(bytes) && text.contains(LIMIT),
        "{text}"
    );
    assert!(text.contains("the call ran"), "{text}");
}

#[tokio::test]
async fn a_result_over_stdio_that_is_too_large_ends_its_call_at_once_and_the_server_goes_on() {
    let app = TestApp::with_sandbox().await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    // 65 bytes stand around 5 MiB, and the number of the request.
    let call = r#"case "$line" in
      *last*) printf '{"result":{"content":[{"type":"text","text":"'
        head -c 5242880 /dev/zero | tr '\0' x; printf '"}]},"jsonrpc":"2.0","id":%s}\n' "$id" ;;
      *small*) say fine ;;
      *) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
        head -c 5242880 /dev/zero | tr '\0' x; printf '"}]}}\n' ;;
    esac"#;
    api.add("aux", shell(call)).await;
    wait_for_health(&mut socket, "aux", "healthy").await;
    for how in ["first", "last", "small"] {
        app.model
            .will_call("echo", json!({ "how": how }))
            .then_say("I see");
        socket.say("go").await;
        let card = socket.wait_for_approval().await;
        let begun = Instant::now();
        socket.approve(&card).await;
        let output = socket.wait_for("tool:output").await;
        assert!(begun.elapsed() < AT_ONCE, "{output:?}");
        if how == "small" {
            assert_eq!(output.text(), "fine", "{output:?}");
        } else {
            check_too_large(&output, "52429");
        }
        assert_eq!(socket.wait_for_answer().await, "I see");
    }
    let logs = api.get("/api/mcp/aux/logs").await.to_string();
    // Once when it was listed, once for the session.
    assert_eq!(logs.matches("started").count(), 2, "{logs}");
}

/// Asserts S0.52.
#[tokio::test]
async fn a_result_over_http_that_is_too_large_ends_its_call_at_once() {
    const MANY: usize = 100_000_000;
    let (output, calls) = outcome_of(Answer::Long(MANY)).await;
    check_too_large(&output, "1000000");
    assert_eq!(calls, 1);
    for kind in ["application/json", "text/event-stream"] {
        let bytes = 5_242_880;
        let (output, calls) = outcome_of(Answer::Pieces { kind, bytes }).await;
        check_too_large(&output, "52429");
        assert_eq!(calls, 1, "{kind}");
        let bytes = MANY;
        let (output, _) = outcome_of(Answer::Pieces { kind, bytes }).await;
        check_too_large(&output, "more than ");
    }
}

/// Asserts S0.52.
#[tokio::test]
async fn a_refusal_that_names_no_call_ends_it_at_once_and_what_is_unknown_stays_unknown() {
    for (answer, status, said) in [
        // Nobody began what was refused as the client's mistake.
        (Answer::Nameless(400, -32_000), "failed", "not run: "),
        (Answer::Nameless(500, -32_600), "failed", "not run: "),
        // A server that broke may have begun it.
        (Answer::Nameless(500, -32_603), "unknown", "status 500"),
        (Answer::Nameless(503, -32_000), "unknown", "status 503"),
        (Answer::Bare(502), "unknown", "status 502"),
        // Nobody but the server itself names the call.
        (Answer::Named(500, -32_603), "failed", "not today"),
    ] {
        let (output, _) = outcome_of(answer).await;
        assert_eq!(output.rest()["status"], status, "{output:?}");
        assert!(output.text().contains(said), "{said}: {output:?}");
        let is_quoted = output.text().contains("not today") || said == "status 502";
        assert!(is_quoted, "{output:?}");
    }
}

#[tokio::test]
async fn a_401_says_that_the_credentials_are_refused_and_what_helps() {
    let (output, _) = outcome_of(Answer::Bare(401)).await;
    assert_eq!(output.rest()["status"], "failed", "{output:?}");
    let text = output.text();
    for said in ["not run: ", "status 401", "credentials", "`headers`"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[tokio::test]
async fn a_server_that_forgot_its_sessions_is_called_again_in_a_new_one() {
    let (output, calls) = outcome_of(Answer::Forgets).await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!((output.text(), calls), ("fine", 2));
}

/// Asserts S3.19: a picture that a tool returns is kept, whatever it says of its type, shown to people,
/// and seen by the model in the form that its vendor takes.
#[tokio::test]
async fn a_picture_that_a_tool_returns_is_kept_and_seen() {
    let image = RgbImage::from_pixel(7, 5, Rgb([1, 2, 3]));
    let mut picture = Cursor::new(Vec::new());
    image.write_to(&mut picture, ImageFormat::Png).unwrap();
    let picture = picture.into_inner();
    for vendor in Vendor::ALL {
        let app = TestApp::start_as(vendor, &[("SPL_SANDBOX", "none")]).await;
        let person = operator(&app, "house").await;
        let odd = Odd::start(Answer::Picture(picture.clone())).await;
        let mut socket = TestSocket::open(app.address, &person, None).await;
        let api = Api::new(&app, &person);
        api.add("odd", json!({ "url": odd.url, "trusted": true }))
            .await;
        wait_for_health(&mut socket, "odd", "healthy").await;
        let output = outcome(&mut socket, &app).await;
        assert_eq!(output.rest()["status"], "completed", "{output:?}");
        let kept = output.rest()["attachments"][0].clone();
        assert_eq!(
            (&kept["width"], &kept["name"]),
            (&json!(7), &json!("image.png"))
        );
        let asked = app.model.requests().pop().unwrap().body;
        let list = asked["messages"]
            .as_array()
            .or(asked["contents"].as_array())
            .or(asked["input"].as_array());
        let newest = list.unwrap().last().unwrap();
        let sent = match vendor {
            Vendor::Chat => newest.pointer("/content/1/image_url/url"),
            Vendor::Responses => newest.pointer("/output/1/image_url"),
            Vendor::Messages => newest.pointer("/content/0/content/1/source/data"),
            Vendor::Gemini => newest.pointer("/parts/1/inlineData/data"),
        };
        let sent = sent.and_then(serde_json::Value::as_str).unwrap_or_default();
        let data = sent.trim_start_matches("data:image/png;base64,");
        let seen = image::load_from_memory(&STANDARD.decode(data).unwrap()).unwrap();
        assert_eq!(seen.into_rgb8(), image, "{vendor:?} {asked}");
    }
}

/// The row of a session is written up to a second after its first commit, and a call can be faster.
#[tokio::test]
async fn the_first_picture_of_every_new_session_is_kept() {
    let app = TestApp::start().await;
    let person = operator(&app, "house").await;
    let mut picture = Cursor::new(Vec::new());
    let image = RgbImage::from_pixel(7, 5, Rgb([1, 2, 3]));
    image.write_to(&mut picture, ImageFormat::Png).unwrap();
    let odd = Odd::start(Answer::Picture(picture.into_inner())).await;
    let api = Api::new(&app, &person);
    let config = json!({ "url": odd.url, "trusted": true });
    let mut first = TestSocket::open(app.address, &person, None).await;
    api.add("odd", config).await;
    wait_for_health(&mut first, "odd", "healthy").await;
    for session in 0..5 {
        let mut socket = TestSocket::open(app.address, &person, None).await;
        let output = outcome(&mut socket, &app).await;
        let attached = output.rest()["attachments"].as_array().map(Vec::len);
        assert_eq!(attached, Some(1), "session {session}: {output:?}");
    }
}
