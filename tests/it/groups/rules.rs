//! Rules of a group.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::House;
use crate::replicas::Pair;
use crate::rest::Client;
use crate::support::TestSocket;
use crate::support::postgres::new_database;

fn rule(group: &str, effect: &str) -> Value {
    json!({
        "effect": effect, "scope": "group", "group": group, "server": "sandbox",
        "tool": "execute_command",
    })
}

#[tokio::test]
async fn a_rule_of_a_group_holds_for_its_members_from_their_next_call_on() {
    let database = new_database().await;
    let kinds: [&[(&str, &str)]; 2] = [&[], &[("DATABASE_URL", &database)]];
    for extra in kinds {
        let mut house = House::start(extra).await;
        let given = house
            .owner
            .post("/api/rules", rule(&house.group, "deny"))
            .await
            .ok(201);
        let rule_id = given["rule"]["id"].as_str().unwrap().to_owned();
        assert_eq!(given["rule"]["group"]["name"], "Finance", "{given}");
        let sentence = given["rule"]["sentence"].as_str().unwrap();
        assert!(
            sentence.contains("for the members of “Finance”"),
            "{sentence}"
        );
        // Nothing of it to somebody who is in no group.
        house.ask().await;
        house.socket.wait_for_approval().await;
        let listed = house.ann.get("/api/rules").await.ok(200);
        assert!(!listed.to_string().contains(&rule_id), "{listed}");
        // Whoever becomes a member has it at once, also for what waits.
        house.join().await;
        let decided = house.refused().await;
        assert!(decided.contains(&rule_id), "{decided}");
        house.ask().await;
        house.refused().await;
        let listed = house.ann.get("/api/rules").await.ok(200);
        let all = listed["rules"].as_array().unwrap();
        let theirs = all.iter().find(|it| it["id"] == rule_id.as_str()).unwrap();
        assert_eq!(theirs["group"]["name"], "Finance");
        assert_eq!(theirs["mayRemove"], false);
        let path = format!("/api/rules/{rule_id}");
        house.ann.delete(&path).await.problem(403, "not_allowed");
        let own = house.ann.post("/api/rules", rule(&house.group, "allow"));
        own.await.problem(403, "not_allowed");
        // To another tenant neither the group nor the rule is there.
        let stranger = house.app.person_with("other", Role::Owner).await;
        let stranger = Client::with_key(&house.app, &stranger.key);
        let theirs = stranger.post("/api/rules", rule(&house.group, "deny"));
        theirs.await.problem(404, "not_found");
        stranger.delete(&path).await.problem(404, "not_found");
        // It ends with the membership, and with the group.
        house.leave().await;
        house.ask().await;
        let card = house.socket.wait_for_approval().await;
        house.socket.decide(&card, false).await;
        house.socket.wait_for_answer().await;
        house.join().await;
        house.owner.delete(&house.path("")).await.done();
        let listed = house.owner.get("/api/rules").await.ok(200);
        assert!(!listed.to_string().contains(&rule_id), "{listed}");
        house.ask().await;
        house.socket.wait_for_approval().await;
    }
}

#[tokio::test]
async fn a_rule_of_a_group_stands_between_those_of_the_person_and_the_tenant() {
    let mut house = House::start(&[]).await;
    house.join().await;
    let of_tenant = json!({
        "effect": "ask", "scope": "tenant", "server": "sandbox", "tool": "execute_command",
    });
    house.owner.post("/api/rules", of_tenant).await.ok(201);
    let mut allow = rule(&house.group, "allow");
    allow["confirm"] = json!("execute_command");
    house.owner.post("/api/rules", allow).await.ok(201);
    house.ask().await;
    let decided = house.socket.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["approved"], true, "{decided}");
    house.socket.wait_for_answer().await;
    let own = json!({
        "effect": "ask", "scope": "person", "server": "sandbox", "tool": "execute_command",
    });
    house.ann.post("/api/rules", own).await.ok(201);
    house.ask().await;
    house.socket.wait_for_approval().await;
    // Whoever has none of the rights sees neither groups nor the rules of others.
    house
        .ann
        .get("/api/groups")
        .await
        .problem(403, "not_allowed");
}

#[tokio::test]
async fn a_membership_at_one_gateway_counts_at_the_other_at_once() {
    let pair = Pair::start_with(&[("SPL_SANDBOX", "bubblewrap")]).await;
    let (person, mut a, _b) = pair.sockets("groups").await;
    let boss = pair.b.person_with("acme", Role::Owner).await;
    let owner = Client::with_key(&pair.b, &boss.key);
    let added = owner
        .post("/api/groups", json!({ "name": "Finance" }))
        .await;
    let group = added.ok(201)["group"]["id"].as_str().unwrap().to_owned();
    owner.post("/api/rules", rule(&group, "deny")).await.ok(201);
    let command = json!({ "command": "date" });
    let model = &pair.a.model;
    model.will_call("execute_command", command).then_say("Done");
    a.say("go").await;
    a.wait_for_approval().await;
    let me = Client::with_key(&pair.a, &person.key)
        .get("/api/auth/me")
        .await
        .ok(200);
    let member = format!(
        "/api/groups/{group}/members/{}",
        me["user"]["id"].as_str().unwrap()
    );
    owner.put(&member, json!({})).await.done();
    let decided = a.wait_for("tool:decided").await.args[0].clone();
    assert_eq!(decided["approved"], false, "{decided}");
    TestSocket::wait_for_answer(&mut a).await;
}
