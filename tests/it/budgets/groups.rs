//! Budgets of groups: for each member, and for all of them together.

use sepal::domain::Role;
use serde_json::{Value, json};

use super::{PRICED, counted, set};
use crate::rest::Client;
use crate::support::postgres::new_database;
use crate::support::{Person, TestApp, TestSocket};

/// A request of 5,000 tokens in and a few out costs a little more than this.
const REQUEST_USD: f64 = 0.0125;

struct Team {
    app: TestApp,
    owner: Client,
    group: String,
}

impl Team {
    async fn start(extra: &[(&str, &str)]) -> Self {
        let app = TestApp::start_with(&[&PRICED[..], extra].concat()).await;
        let boss = app.person_with("acme", Role::Owner).await;
        let owner = Client::with_key(&app, &boss.key);
        let added = owner
            .post("/api/groups", json!({ "name": "Research" }))
            .await;
        let group = added.ok(201)["group"]["id"].as_str().unwrap().to_owned();
        Self { app, owner, group }
    }

    async fn member(&self) -> Person {
        let person = self.app.person_with("acme", Role::Member).await;
        let path = self.path_of(&person).await;
        self.owner.put(&path, json!({})).await.done();
        person
    }

    async fn path_of(&self, person: &Person) -> String {
        let me = Client::with_key(&self.app, &person.key)
            .get("/api/auth/me")
            .await
            .ok(200);
        let id = me["user"]["id"].as_str().unwrap();
        format!("/api/groups/{}/members/{id}", self.group)
    }

    fn budget(&self, level: &str, limit: f64) -> Value {
        json!({ "level": level, "subject": self.group, "period": "month", "limitUsd": limit })
    }

    /// One request of a person: the answer, or why there is none.
    async fn ask(&self, person: &Person) -> Result<String, String> {
        let mut socket = TestSocket::open(self.app.address, person, None).await;
        self.app.model.forget_rest();
        self.app.model.will(counted("well", (5_000, 5)));
        socket.say(&"word ".repeat(4_900)).await;
        let ends = |name: &str| name == "agent:error" || name == "agent:response";
        let end = socket.wait_where(|said| ends(&said.name)).await;
        if end.name == "agent:error" {
            assert_eq!(end.rest()["code"], "budget_exhausted", "{end:?}");
            return Err(end.text().to_owned());
        }
        Ok(end.text().to_owned())
    }

    /// The budget of that level, as somebody sees it; `None` if it is not theirs.
    async fn standing(&self, person: &Person, level: &str) -> Option<Value> {
        let client = Client::with_key(&self.app, &person.key);
        let page = client.get("/api/budgets").await.ok(200);
        let mut all = page["inForce"].as_array().unwrap().clone().into_iter();
        all.find(|item| item["level"] == level)
    }
}

#[tokio::test]
async fn members_spend_the_pool_of_their_group_together() {
    let database = new_database().await;
    let kinds: [&[(&str, &str)]; 2] = [&[], &[("DATABASE_URL", &database)]];
    for extra in kinds {
        let team = Team::start(extra).await;
        let (ann, ben) = (team.member().await, team.member().await);
        let cleo = team.app.person_with("acme", Role::Member).await;
        set(&team.owner, team.budget("group_pooled", 2.5 * REQUEST_USD)).await;
        team.ask(&cleo).await.unwrap();
        assert_eq!(team.standing(&cleo, "group_pooled").await, None);
        team.ask(&ann).await.unwrap();
        // What others spent is not for members to see.
        let seen = team.standing(&ben, "group_pooled").await.unwrap();
        assert_eq!(
            (&seen["name"], &seen["usedUsd"]),
            (&json!("Research"), &Value::Null)
        );
        assert_eq!(seen["mayChange"], false);
        team.ask(&ben).await.unwrap();
        let refused = team.ask(&ann).await.unwrap_err();
        assert!(refused.contains("of the group `Research`"), "{refused}");
        assert!(team.ask(&ben).await.is_err());
        let set = team.owner.get("/api/budgets").await.ok(200)["set"].clone();
        let used = set[0]["usedUsd"].as_f64().unwrap();
        assert!((used - 2.0 * REQUEST_USD).abs() < 0.001, "{set}");
        // Whoever leaves is not held by it, and takes nothing along.
        let path = team.path_of(&ben).await;
        team.owner.delete(&path).await.done();
        team.ask(&ben).await.unwrap();
        let set = team.owner.get("/api/budgets").await.ok(200)["set"].clone();
        assert_eq!(
            set[0]["usedUsd"].as_f64().unwrap().to_bits(),
            used.to_bits()
        );
    }
}

#[tokio::test]
async fn each_member_has_the_budget_of_each_of_their_groups() {
    let team = Team::start(&[]).await;
    let (ann, ben) = (team.member().await, team.member().await);
    set(&team.owner, team.budget("group_each", 1.5 * REQUEST_USD)).await;
    team.ask(&ann).await.unwrap();
    let refused = team.ask(&ann).await.unwrap_err();
    assert!(
        refused.contains("the group `Research` gives each member"),
        "{refused}"
    );
    team.ask(&ben).await.unwrap();
    let seen = team.standing(&ben, "group_each").await.unwrap();
    assert!(seen["usedUsd"].as_f64().unwrap() >= REQUEST_USD, "{seen}");
    // Only those with the right set them, for groups of their own tenant.
    let member = Client::with_key(&team.app, &ann.key);
    let theirs = member.put("/api/budgets", team.budget("group_each", 9.0));
    theirs.await.problem(403, "not_allowed");
    let stranger = team.app.person_with("other", Role::Owner).await;
    let stranger = Client::with_key(&team.app, &stranger.key);
    let theirs = stranger.put("/api/budgets", team.budget("group_each", 9.0));
    theirs.await.problem(404, "not_found");
    // The group cannot go without the right for what it carries.
    let path = format!(
        "/api/budgets?level=group_each&period=month&subject={}",
        team.group
    );
    team.owner.delete(&path).await.done();
    team.ask(&ann).await.unwrap();
}
