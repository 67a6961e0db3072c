//! Two gateways on one store and one Docker engine: a session's container has the same name
//! wherever the session runs, and nobody removes what is another's.

use serde_json::json;
use tempfile::TempDir;

use crate::rest::Client;
use crate::support::docker::{self, lines};
use crate::support::postgres::new_database;
use crate::support::{Person, RedisServer, Server, TestApp, TestSocket, until};

/// All gateways of an installation have the same.
const SECRET_KEY: &str = "a key of thirty-two characters or more";

/// Containers of the installation that carry this: id, name and life.
fn containers(installation: &str) -> Vec<(String, String, String)> {
    let label = format!("label=sepal.installation={installation}");
    let format = "{{.ID}} {{.Names}} {{.Label \"sepal.life\"}}";
    let asked = [
        "ps",
        "--all",
        "--no-trunc",
        "--filter",
        &label,
        "--format",
        format,
    ];
    let listed = lines(&docker::address(), &asked);
    let words = listed.iter().map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        (
            words.next().unwrap(),
            words.next().unwrap(),
            words.next().unwrap(),
        )
    });
    words.collect()
}

/// The container of that name: its id and the life that made it.
fn of(installation: &str, name: &str) -> (String, String) {
    let mut found = containers(installation)
        .into_iter()
        .filter(|it| it.1 == name);
    let (id, _, life) = found.next().unwrap();
    assert!(found.next().is_none());
    (id, life)
}

/// The session reads back what it wrote before, through this socket.
async fn append(app: &TestApp, socket: &mut TestSocket, word: &str) -> String {
    let command = format!("echo {word} >> words; cat words");
    app.model
        .will_call("execute_command", json!({ "command": command }))
        .then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    output.text().replace('\n', " ")
}

/// What a gateway leaves whose life is over: a container that nobody waits for.
fn plant_orphan(installation: &str) -> String {
    let name = format!("sepal-sb-orphan-{installation}");
    let label = format!("sepal.installation={installation}");
    let image = docker::image();
    let mut make = vec!["create", "--name", &name, "--label", &label];
    make.extend(["--label", "sepal.life=over", &image]);
    lines(&docker::address(), &make);
    name
}

struct Two {
    a: TestApp,
    b: Option<Server>,
    person: Person,
    _redis: RedisServer,
    _folder: TempDir,
}

impl Two {
    async fn start() -> Self {
        let (redis, database) = (RedisServer::start(), new_database().await);
        let (url, host, image) = (redis.url(), docker::address(), docker::image());
        let env = [
            ("SPL_REDIS_URL", url.as_str()),
            ("DATABASE_URL", database.as_str()),
            ("SPL_SECRET_KEY", SECRET_KEY),
            ("SPL_SANDBOX", "docker"),
            ("SPL_SANDBOX_DOCKER_HOST", &host),
            ("SPL_SANDBOX_IMAGE", &image),
            ("SPL_SANDBOX_POOL_SIZE", "1"),
            ("SPL_LLM_RETRY_MAX_RETRIES", "0"),
        ];
        let a = TestApp::start_with(&env).await;
        let person = a.person("acme").await;
        let folder = TempDir::new().unwrap();
        let b = Server::start_with(&folder.path().join("data"), &a.model, &env);
        Self {
            a,
            b: Some(b),
            person,
            _redis: redis,
            _folder: folder,
        }
    }

    /// Restarts A until nothing is left of that life.
    async fn rounds_until_gone(mut self, installation: &str, life: &str) {
        let extra = self.a.environment();
        let extra: Vec<(&str, &str)> = extra
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        // A round of A's janitor for each start, until it has heard nothing of B for long enough.
        for round in 0.. {
            let orphan = plant_orphan(installation);
            self.a = self.a.restart_with(&extra).await;
            let all = installation.to_owned();
            until("a round of the janitor", move || {
                containers(&all).iter().all(|it| it.1 != orphan)
            })
            .await;
            if containers(installation).iter().all(|it| it.2 != life) {
                return;
            }
            assert!(round < 5, "{:?}", containers(installation));
        }
    }
}

#[tokio::test]
async fn a_session_moves_and_nobody_removes_what_is_anothers() {
    let mut two = Two::start().await;
    let installation = two.a.installation();
    let mut at_a = TestSocket::open(two.a.address, &two.person, Some("moves")).await;
    append(&two.a, &mut at_a, "one").await;
    let name = containers(&installation).remove(0).1;
    let (first, life_of_a) = of(&installation, &name);

    let b = two.b.as_ref().unwrap().address;
    let mut at_b = TestSocket::open(b, &two.person, Some("moves")).await;
    // It goes on at B, which does not take the name before A has let go.
    let said = append(&two.a, &mut at_b, "two").await;
    assert!(said.contains("one two"), "{said}");
    let (second, life_of_b) = of(&installation, &name);
    assert!(first != second && life_of_a != life_of_b);

    // A ends in order and starts again: what it cleans up is its own and what a dead life left.
    let orphan = plant_orphan(&installation);
    let warm_of_b = {
        let (installation, life, name) = (installation.clone(), life_of_b.clone(), name.clone());
        move || {
            let all = containers(&installation).into_iter();
            all.filter(|it| it.2 == life && it.1 != name).count()
        }
    };
    let full = warm_of_b.clone();
    until("B keeps one warm", move || full() == 1).await;
    drop(at_a);
    let extra = two.a.environment();
    let extra: Vec<(&str, &str)> = extra
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    two.a = two.a.restart_with(&extra).await;
    let (all, gone) = (installation.clone(), orphan.clone());
    until("what a dead life left goes", move || {
        containers(&all).iter().all(|it| it.1 != gone)
    })
    .await;
    assert_eq!(
        of(&installation, &name),
        (second.clone(), life_of_b.clone())
    );
    assert_eq!(warm_of_b(), 1, "nor its warm one");
    let said = append(&two.a, &mut at_b, "three").await;
    assert!(said.contains("one two three"), "{said}");
    assert_eq!(of(&installation, &name).0, second, "it was never away");

    // B is killed: what it left goes with its life, and the session goes on at A.
    two.b.take().unwrap().kill();
    let mut at_a = TestSocket::open(two.a.address, &two.person, Some("moves")).await;
    let said = append(&two.a, &mut at_a, "four").await;
    assert!(said.contains("one two three four"), "{said}");
    let (third, life) = of(&installation, &name);
    assert!(third != second && life != life_of_b);
    two.rounds_until_gone(&installation, &life_of_b).await;
}

/// The history of the files goes where the session goes: it is kept with the records.
#[tokio::test]
async fn what_changed_at_one_gateway_is_undone_at_another() {
    let two = Two::start().await;
    let mut at_a = TestSocket::open(two.a.address, &two.person, Some("moves")).await;
    append(&two.a, &mut at_a, "one").await;
    append(&two.a, &mut at_a, "two").await;
    let b = two.b.as_ref().unwrap().address;
    let session = at_a.session();
    let at = |path: &str| format!("/api/sessions/{session}/changes{path}");
    let client = Client::at(b, &two.person.key);
    let history = client.get(&at("")).await.ok(200);
    let number = history["items"][0]["number"].as_u64().unwrap();
    let undo = at(&format!("/{number}/undo"));
    let plan = client.get(&undo).await.ok(200);
    let digest = json!({ "digest": plan["digest"] });
    assert_eq!(client.post(&undo, digest).await.ok(200)["restored"], 1);
    let mut at_b = TestSocket::open(b, &two.person, Some("moves")).await;
    let said = append(&two.a, &mut at_b, "three").await;
    assert!(said.contains("one three"), "{said}");
    // And back: the first gateway knows nothing of it but what is kept.
    drop(at_a);
    let mut at_a = TestSocket::open(two.a.address, &two.person, Some("moves")).await;
    let said = append(&two.a, &mut at_a, "four").await;
    assert!(said.contains("one three four"), "{said}");
    let history = Client::with_key(&two.a, &two.person.key)
        .get(&at(""))
        .await
        .ok(200);
    let numbers = history["items"].as_array().unwrap().iter();
    let numbers: Vec<_> = numbers
        .map(|step| step["number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [5, 4, 3, 2, 1]);
    assert_eq!(history["items"][2]["undoes"], number);
}
