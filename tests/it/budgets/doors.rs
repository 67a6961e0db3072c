//! Who sees budgets and who sets them: every door is tried by a member, a viewer and another tenant.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::{PRICED, client, counted, set, standing};
use crate::rest::Client;
use crate::support::{TestApp, TestSocket};

/// What may be set, and who may.
fn changes(session: &str, person: &str) -> Vec<(Value, &'static str)> {
    let of = |level: &str, subject: Option<&str>, period: &str| json!({"level": level, "subject": subject, "period": period, "limitUsd": 5});
    vec![
        (of("own", Some(session), "whole"), "own"),
        (of("session", Some(session), "whole"), "admin"),
        (of("session", None, "whole"), "admin"),
        (of("person", Some(person), "day"), "admin"),
        (of("person", None, "month"), "admin"),
        (of("tenant", None, "day"), "admin"),
    ]
}

fn address(change: &Value) -> String {
    let subject = change["subject"].as_str().unwrap_or_default();
    format!(
        "/api/budgets?level={}&period={}&subject={subject}",
        change["level"].as_str().unwrap(),
        change["period"].as_str().unwrap()
    )
}

async fn statuses(client: &Client, change: &Value) -> (u16, u16) {
    let put = client.put("/api/budgets", change.clone()).await.status;
    let deleted = client.delete(&address(change)).await.status;
    (put, deleted)
}

async fn id_of(client: &Client) -> String {
    let me = client.get("/api/auth/me").await.ok(200);
    me["user"]["id"].as_str().unwrap().to_owned()
}

/// Asserts S1.12 and O14: authorisation.
#[tokio::test]
async fn people_set_their_own_sessions_budget_admins_their_tenants_and_nobody_anothers() {
    let app = TestApp::start_with(&PRICED).await;
    let (ana, member) = client(&app, "acme", Role::Member).await;
    let (_, other) = client(&app, "acme", Role::Member).await;
    let (_, viewer) = client(&app, "acme", Role::Viewer).await;
    let (_, boss) = client(&app, "acme", Role::Admin).await;
    let (_, stranger) = client(&app, "globex", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will(counted("Hello.", (100, 2)));
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let session = socket.session();
    let anas = id_of(&member).await;
    for (change, who) in changes(&session, &anas) {
        let is_own = who == "own";
        let names_one = !change["subject"].is_null();
        let (yes, no) = ((204, 204), (403, 403));
        let expected = if is_own { yes } else { no };
        assert_eq!(statuses(&member, &change).await, expected, "{change}");
        let expected = if is_own { (404, 404) } else { no };
        assert_eq!(statuses(&other, &change).await, expected, "{change}");
        assert_eq!(statuses(&viewer, &change).await, no, "{change}");
        let expected = if is_own { (404, 404) } else { yes };
        assert_eq!(statuses(&boss, &change).await, expected, "{change}");
        // In another tenant there is neither the session nor the person.
        let expected = if names_one { (404, 404) } else { yes };
        assert_eq!(statuses(&stranger, &change).await, expected, "{change}");
        let nobody = Client::nobody(&app);
        assert_eq!(statuses(&nobody, &change).await, (401, 401), "{change}");
    }
    let of_session = format!("/api/budgets?session={session}");
    for client in [&other, &boss, &stranger, &viewer] {
        client
            .get(&of_session)
            .await
            .problem(404, "session_not_found");
    }
    assert_eq!(Client::nobody(&app).get("/api/budgets").await.status, 401);
}

/// Asserts S1.12.
#[tokio::test]
async fn sums_of_a_tenant_are_for_its_admins_and_another_tenant_sees_nothing() {
    let app = TestApp::start_with(&PRICED).await;
    let (ana, member) = client(&app, "acme", Role::Member).await;
    let (_, boss) = client(&app, "acme", Role::Admin).await;
    let (_, stranger) = client(&app, "globex", Role::Owner).await;
    let month =
        |level: &str, limit: u64| json!({"level": level, "period": "month", "limitUsd": limit});
    set(&boss, month("tenant", 7)).await;
    set(&boss, month("person", 3)).await;
    let mut socket = TestSocket::open(app.address, &ana, None).await;
    app.model.will(counted("Hello.", (1_000, 100)));
    socket.say("hello").await;
    socket.wait_for_answer().await;
    let seen = standing(&boss, "", "tenant").await;
    assert_eq!(seen["usedUsd"], 0.0035, "{seen}");
    assert_eq!(seen["mayChange"], true, "{seen}");
    let hidden = standing(&member, "", "tenant").await;
    for sum in ["usedUsd", "reservedUsd", "leftUsd"] {
        assert_eq!(hidden[sum], Value::Null, "{hidden}");
    }
    assert_eq!(
        (&hidden["limitUsd"], &hidden["mayChange"]),
        (&json!(7.0), &json!(false))
    );
    let own = standing(&member, "", "person").await;
    assert_eq!(
        (&own["usedUsd"], &own["source"]),
        (&json!(0.0035), &json!("each"))
    );
    let resets = own["resetsAt"].as_str().unwrap();
    assert!(resets.ends_with("-01T00:00:00.000Z"), "{resets}");
    let set_of = async |client: &Client| client.get("/api/budgets").await.ok(200)["set"].clone();
    assert_eq!(set_of(&boss).await.as_array().unwrap().len(), 2);
    assert_eq!(set_of(&member).await, json!([]));
    let nothing = stranger.get("/api/budgets").await.ok(200);
    assert_eq!(nothing, json!({"inForce": [], "set": []}));
}

#[tokio::test]
async fn a_wrong_budget_is_refused_and_the_field_is_named() {
    let app = TestApp::start().await;
    let (_, boss) = client(&app, "acme", Role::Admin).await;
    let good = json!({"level": "tenant", "period": "day", "limitUsd": 1});
    for (field, value, code) in [
        ("level", json!("galaxy"), "invalid_arguments"),
        ("level", json!("turn"), "invalid_arguments"),
        ("period", json!("whole"), "invalid_arguments"),
        ("period", json!("year"), "invalid_arguments"),
        ("limitUsd", json!(-1), "invalid_arguments"),
        ("limitUsd", json!(1e7), "invalid_arguments"),
        ("warnPercent", json!(0), "invalid_arguments"),
        ("warnPercent", json!(101), "invalid_arguments"),
        ("subject", json!("ses_1"), "invalid_arguments"),
    ] {
        let mut wrong = good.clone();
        wrong[field] = value;
        let refused = boss.put("/api/budgets", wrong.clone()).await;
        assert_eq!(refused.code(), code, "{wrong}: {}", refused.text);
    }
    // The budget of a turn is a setting, so the description does not offer the level.
    let turn = json!({"level": "turn", "period": "whole", "limitUsd": 1});
    let refused = boss.put("/api/budgets", turn).await;
    refused.problem(400, "invalid_arguments");
    assert!(
        refused.text.contains(
            "is not `own`, `session`, `person`, `group_each`, `group_pooled` or `tenant`"
        ),
        "{}",
        refused.text
    );
    let refused = boss.delete("/api/budgets?level=turn&period=whole").await;
    refused.problem(400, "invalid_arguments");
    let missing = boss.delete("/api/budgets?level=tenant&period=day").await;
    missing.problem(404, "not_found");
}
