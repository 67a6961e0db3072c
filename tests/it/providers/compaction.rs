//! What makes room in contexts, where admins said so for their tenant.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};

use crate::servers::Api;
use crate::support::{Person, TestApp, TestSocket};

const PATH: &str = "/api/models/compaction";

/// The texts of the newest request after four short turns of a new session, where six entries fit.
async fn read_after_four_turns(app: &TestApp, person: &Person) -> Vec<String> {
    let mut socket = TestSocket::open(app.address, person, None).await;
    for text in ["one", "two", "three", "four"] {
        app.model.will_say(&format!("re {text}"));
        socket.say(text).await;
        socket.wait_for_answer().await;
    }
    let asked = app.model.requests();
    let messages = asked.last().unwrap().body["messages"].as_array().unwrap();
    let told = messages.iter().filter(|said| said["role"] != "system");
    told.map(|said| said["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// An admin sets it for the tenant and for nobody else, and takes it back; members and viewers read it.
/// Asserts S3.13.
#[tokio::test]
async fn an_admin_says_what_leaves_the_contexts_of_the_tenant() {
    let few = [("SPL_SANDBOX", "none"), ("SPL_CHAT_MAX_MESSAGES", "6")];
    let app = TestApp::start_with(&few).await;
    let admin = app.person_with("acme", Role::Admin).await;
    let member = app.person_with("acme", Role::Member).await;
    let viewer = app.person_with("acme", Role::Viewer).await;
    let stranger = app.person_with("other", Role::Owner).await;
    let usual = json!(["delete-middle", "delete-old"]);
    let by_admin = Api::new(&app, &admin);
    let said = by_admin.get(PATH).await;
    assert_eq!(
        said,
        json!({ "strategies": usual, "tenant": null, "settings": usual })
    );

    let set = json!({ "strategies": ["none"] });
    for person in [&member, &viewer] {
        let api = Api::new(&app, person);
        for (method, body) in [(Method::PUT, &set), (Method::DELETE, &Value::Null)] {
            let (status, refused) = api.ask(method, PATH, body).await;
            assert_eq!((status, &refused["code"]), (403, &json!("not_allowed")));
        }
    }
    for wrong in [
        json!([]),
        json!(["none", "delete-old"]),
        json!(["delete-old", "delete-old"]),
        json!(["shrink"]),
    ] {
        let body = json!({ "strategies": wrong });
        let (status, refused) = by_admin.ask(Method::PUT, PATH, &body).await;
        assert_eq!(
            (status, &refused["code"]),
            (400, &json!("invalid_arguments")),
            "{wrong}"
        );
    }
    let (status, said) = by_admin.ask(Method::PUT, PATH, &set).await;
    assert_eq!(
        (status, &said["strategies"]),
        (200, &json!(["none"])),
        "{said}"
    );
    for person in [&member, &viewer] {
        let said = Api::new(&app, person).get(PATH).await;
        assert_eq!(said["tenant"], json!(["none"]));
    }
    // Another tenant neither has it nor can take it back.
    let by_stranger = Api::new(&app, &stranger);
    assert_eq!(by_stranger.get(PATH).await["strategies"], usual);
    let (status, _) = by_stranger.ask(Method::DELETE, PATH, &Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(by_admin.get(PATH).await["tenant"], json!(["none"]));

    assert_eq!(read_after_four_turns(&app, &member).await.len(), 7);
    let read = read_after_four_turns(&app, &stranger).await;
    assert!(read.len() < 7, "{read:?}");

    let app = app.restart().await;
    assert_eq!(read_after_four_turns(&app, &member).await.len(), 7);
    let by_admin = Api::new(&app, &admin);
    let (status, said) = by_admin.ask(Method::DELETE, PATH, &Value::Null).await;
    assert_eq!((status, &said["strategies"]), (200, &usual), "{said}");
    let read = read_after_four_turns(&app, &member).await;
    assert!(read.len() < 7, "{read:?}");
}
