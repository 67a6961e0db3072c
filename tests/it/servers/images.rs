//! Servers that are images, each in a container of the session's own on a Docker engine.

use reqwest::Method;
use sepal::domain::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Api, wait_for_health};
use crate::model_stub::ModelStub;
use crate::support::docker::{self, docker, lines, named};
use crate::support::{
    DEADLINE, Door, Server, TestApp, TestSocket, behind_each_door, person, until,
};

/// The image of the tests, whose entry point is our own server for files and commands.
fn image(workspace: &str) -> Value {
    json!({
        "transport": "stdio-docker", "containerImage": docker::image(), "workspace": workspace,
    })
}

/// Runs a command through the server of that name; what it said.
async fn run(model: &ModelStub, socket: &mut TestSocket, tool: &str, command: &str) -> String {
    model
        .will_call(tool, json!({ "command": command }))
        .then_say("Done");
    socket.say("go").await;
    let card = socket.wait_for_approval().await;
    assert_eq!(card["name"], *tool);
    let is_own = tool == "execute_command";
    let place = if is_own { "sandbox" } else { "container" };
    assert_eq!(card["runsIn"]["kind"], place, "{card}");
    socket.approve(&card).await;
    let output = socket.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert_eq!(socket.wait_for_answer().await, "Done");
    output.text().to_owned()
}

fn inspect(name: &str) -> Value {
    let told = docker(&docker::address(), &["inspect", name]);
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    told[0].clone()
}

/// The session's limits (here with less memory), no network, nothing of the host.
fn check_walls(told: &Value) {
    let walls = &told["HostConfig"];
    assert_eq!(walls["Memory"], 256 << 20);
    assert_eq!(walls["NanoCpus"], 500_000_000);
    assert_eq!(walls["PidsLimit"], 128);
    assert_eq!(walls["NetworkMode"], "none");
    assert_eq!(walls["ReadonlyRootfs"], true);
    assert_eq!(walls["CapDrop"], json!(["ALL"]));
}

/// A server whose sandboxes have less memory than usual, and none of them is warm.
async fn small_app(engine: &str) -> TestApp {
    TestApp::start_with(&[
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", engine),
        ("SPL_SANDBOX_IMAGE", &docker::image()),
        ("SPL_SANDBOX_POOL_SIZE", "0"),
        ("SPL_SANDBOX_MEMORY_MB", "256"),
    ])
    .await
}

#[tokio::test]
async fn an_image_of_the_registry_runs_in_its_own_container_and_goes_with_the_session() {
    let app = small_app(&docker::address()).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    for (name, workspace) in [("apart", "none"), ("reader", "ro")] {
        api.add(name, image(workspace)).await;
        wait_for_health(&mut socket, name, "healthy").await;
    }
    let label = format!("sepal.installation={}", app.installation());
    let all = label.clone();
    until("what was started to list them goes", move || {
        named("container", &all).is_empty()
    })
    .await;

    let (model, own) = (&app.model, "execute_command");
    run(model, &mut socket, own, "echo hello > a.txt").await;
    let look = "ls -A /workspace; ls /sys/class/net; id -u";
    let said = run(model, &mut socket, "apart__execute_command", look).await;
    assert!(
        said.contains("lo\n65534") && !said.contains("a.txt"),
        "{said}"
    );
    assert!(!said.contains("eth"), "{said}");
    let read = "cat /workspace/a.txt; touch /workspace/b.txt || echo may not";
    let said = run(model, &mut socket, "reader__execute_command", read).await;
    assert!(said.contains("hello") && said.contains("may not"), "{said}");

    let mut names = named("container", &label);
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    let first = names[0].clone();
    assert_eq!(
        names[1..],
        [format!("{first}-apart"), format!("{first}-reader")]
    );
    for (name, mounts) in [(&names[1], 0), (&names[2], 1)] {
        let told = inspect(name);
        check_walls(&told);
        let labels = &told["Config"]["Labels"];
        assert_eq!(labels["sepal.installation"], *app.installation());
        assert_eq!(
            format!("sepal-sb-{}", labels["sepal.sandbox"].as_str().unwrap()),
            first
        );
        assert!(name.ends_with(labels["sepal.server"].as_str().unwrap()));
        assert!(labels["sepal.life"].is_string());
        assert_eq!(told["Mounts"].as_array().unwrap().len(), mounts, "{told}");
    }

    let path = format!("/api/sessions/{}", socket.session());
    let (status, _) = api.ask(Method::DELETE, &path, &Value::Null).await;
    assert!((200..300).contains(&status), "{status}");
    until("nothing of the session is left", move || {
        named("container", &label).is_empty() && named("volume", &label).is_empty()
    })
    .await;
}

/// The image of the tests with a volume of its own; it goes with this.
struct WithVolume(String);

impl WithVolume {
    fn build() -> Self {
        let host = docker::address();
        let name = format!("sepal-test-volume:{:08x}", rand::random::<u32>());
        let made = lines(&host, &["create", "--network", "none", &docker::image()]);
        let change = "VOLUME /data";
        lines(&host, &["commit", "--change", change, &made[0], &name]);
        lines(&host, &["rm", &made[0]]);
        Self(name)
    }
}

impl Drop for WithVolume {
    fn drop(&mut self) {
        docker(&docker::address(), &["rmi", &self.0]);
    }
}

behind_each_door!(an_image_with_a_volume_of_its_own_is_not_run);

async fn an_image_with_a_volume_of_its_own_is_not_run(door: Door) {
    let image = WithVolume::build();
    let door = door.open(&docker::address()).await;
    let app = small_app(&door.address).await;
    let owner = app.person_with("acme", Role::Owner).await;
    let mut socket = TestSocket::open(app.address, &owner, None).await;
    let api = Api::new(&app, &owner);
    let config = json!({ "transport": "stdio-docker", "containerImage": image.0 });
    api.add("filler", config).await;
    wait_for_health(&mut socket, "filler", "unhealthy").await;
    let told = api.server("filler").await.to_string();
    assert!(told.contains("declares volumes (`/data`)"), "{told}");
    let label = format!("sepal.installation={}", app.installation());
    assert_eq!(named("container", &label), Vec::<String>::new());
}

#[tokio::test]
async fn the_container_of_an_image_goes_at_the_next_start_after_a_kill() {
    let (folder, model) = (TempDir::new().unwrap(), ModelStub::start().await);
    let data = folder.path().join("data");
    let (host, stand_in) = (docker::address(), docker::image());
    let env = [
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", host.as_str()),
        ("SPL_SANDBOX_IMAGE", stand_in.as_str()),
        ("SPL_SANDBOX_POOL_SIZE", "0"),
    ];
    std::fs::create_dir(&data).unwrap();
    // Everything at the engine is seen by all tests; this name only by this one.
    let name = format!("k{:08x}", rand::random::<u32>());
    let file = json!({ "mcpServers": { &name: image("none") } });
    std::fs::write(data.join("mcp-config.json"), file.to_string()).unwrap();
    let server = Server::start_with(&data, &model, &env);
    let ana = person(&data, &env);
    let listed = async {
        let url = format!("http://{}/api/mcp/{name}", server.address);
        loop {
            let asked = TestApp::http().get(&url).bearer_auth(&ana.key).send();
            let told: Value = asked.await.unwrap().json().await.unwrap();
            if told["status"] == "healthy" {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, listed).await.unwrap();
    let mut socket = TestSocket::open(server.address, &ana, None).await;
    let tool = format!("{name}__execute_command");
    run(&model, &mut socket, &tool, "id -u").await;
    let of_it = format!("label=sepal.server={name}");
    let find = move || {
        lines(
            &docker::address(),
            &["ps", "--all", "--quiet", "--filter", &of_it],
        )
    };
    assert_eq!(find().len(), 1);
    server.kill();
    assert_eq!(find().len(), 1, "nobody was there to remove it");
    let _server = Server::start_with(&data, &model, &env);
    until("the next life removes it", move || find().is_empty()).await;
}
