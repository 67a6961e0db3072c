//! A disk that is really nearly full: running tools stand still, people are told, nothing is lost, and
//! everything goes on by itself.

use std::path::PathBuf;

use sepal::domain::Role;
use sepal::sandbox::free_bytes;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use crate::servers::Api;
use crate::support::{Door, Said, TestApp, TestSocket, behind_each_door, docker};

behind_each_door!(containers_stand_still_while_the_disk_is_full,);

const MB: u64 = 1 << 20;
/// What is left above the floor, more than the margin above which pressure ends.
const ROOM: u64 = 96;
/// More than that.
const BALLAST: u64 = 128;

/// A file system that no other test fills or makes room on: the small one of `tests/servers`, or
/// without it the one in memory that every Linux has.
fn disk() -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "the servers that tests need are told by the environment"
    )]
    let small = std::env::var_os("SEPAL_TEST_DISK");
    small.map_or_else(|| "/dev/shm".into(), PathBuf::from)
}

/// A data folder on that disk, and a floor a little below what is left.
struct Disk {
    folder: TempDir,
    floor: String,
    /// One of these tests at a time: they would fill it for each other.
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::const_new(());

impl Disk {
    async fn new() -> Self {
        let turn = TURN.lock().await;
        let disk = disk();
        let free = free_bytes(&disk).unwrap() / MB;
        assert!(free > 2 * BALLAST, "{} has only {free} MB", disk.display());
        Self {
            folder: TempDir::new_in(disk).unwrap(),
            floor: (free - ROOM).to_string(),
            _turn: turn,
        }
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    /// The engine's disk is held to the same floor, so it has to have more room than that.
    fn assert_that_the_engine_has_more_room(&self) {
        let engine = free_bytes(&std::env::temp_dir()).unwrap() / MB;
        let floor: u64 = self.floor.parse().unwrap();
        assert!(
            engine > floor + ROOM,
            "the engine's disk has only {engine} MB left: make room for {} MB there",
            floor + ROOM
        );
    }

    fn fill(&self) {
        let ballast = usize::try_from(BALLAST * MB).unwrap();
        std::fs::write(self.folder.path().join("ballast"), vec![1; ballast]).unwrap();
    }

    fn clear(&self) {
        std::fs::remove_file(self.folder.path().join("ballast")).unwrap();
    }
}

/// What open pages are told of the sandbox.
async fn hears(socket: &mut TestSocket) -> Value {
    socket.wait_for("system:sandbox").await.args[0]["sandbox"].clone()
}

/// What administrators read of the disk.
async fn check(api: &Api<'_>) -> Value {
    let system = api.get("/api/system").await;
    let checks = system["checks"].as_array().unwrap();
    let check = checks.iter().find(|it| it["name"] == "disk").unwrap();
    assert_eq!(
        system["sandbox"]["diskPressure"].is_null(),
        check["ok"] == true
    );
    check.clone()
}

async fn figure(app: &TestApp, name: &str) -> String {
    let url = format!("http://{}/metrics", app.metrics.unwrap());
    let text = TestApp::http()
        .get(url)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().to_owned()
}

/// Asks for a command and says yes to it; which call that is.
async fn run(app: &TestApp, socket: &mut TestSocket, command: &str) -> Value {
    app.model
        .will_call("execute_command", json!({ "command": command }));
    socket.say("run").await;
    let card = socket.wait_for_approval().await;
    socket.approve(&card).await;
    card["callId"].clone()
}

/// Until what a command says is told of its call.
async fn progress(socket: &mut TestSocket, text: &str) {
    let fits =
        |said: &Said| said.name == "tool:progress" && said.args[0].to_string().contains(text);
    socket.wait_where(fits).await;
}

async fn story(app: TestApp, disk: Disk) {
    let owner = app.person_with("acme", Role::Owner).await;
    let api = Api::new(&app, &owner);
    let mut ana = TestSocket::open(app.address, &owner, None).await;
    assert!(ana.ready["sandbox"]["diskPressure"].is_null());
    assert_eq!(check(&api).await["ok"], true);
    // In a session of her own: of what ana hears, the order is not fixed.
    let mut eve = TestSocket::open(app.address, &owner, None).await;

    let command = "echo begun; for i in $(seq 1 100); do echo $i >> counted; sleep 0.1; done; \
                   wc -l < counted; echo whole";
    run(&app, &mut ana, command).await;
    progress(&mut ana, "begun").await;
    disk.fill();
    everybody_is_told(&app, &api, &mut eve, &disk).await;
    progress(&mut ana, "Paused: the disk").await;
    nothing_starts(&app, &mut TestSocket::open(app.address, &owner, None).await).await;

    app.model.will_say("Done");
    disk.clear();
    assert!(hears(&mut eve).await["diskPressure"].is_null());
    let output = ana.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "completed", "{output:?}");
    assert!(output.text().contains("100\nwhole"), "{output:?}");
    assert_eq!(ana.wait_for_answer().await, "Done");
    assert_eq!(check(&api).await["ok"], true);

    a_call_that_stands_still_can_be_stopped(&app, &mut ana, &disk).await;
    app.stop().await;
}

async fn everybody_is_told(app: &TestApp, api: &Api<'_>, eve: &mut TestSocket, disk: &Disk) {
    let told = hears(eve).await["diskPressure"].clone();
    let floor = disk.floor.parse::<u64>().unwrap() * MB;
    assert_eq!(told["minFreeBytes"], floor);
    assert!(told["freeBytes"].as_u64().unwrap() < floor, "{told}");
    let lack = check(api).await;
    let remedy = lack["remedy"].to_string();
    assert!(remedy.contains("sandbox.min_free_mb"), "{lack}");
    assert_eq!(figure(app, "sepal_disk_pressure ").await, "1");
}

/// Who comes now is told at once; a call fails with what to do, and the session goes on.
async fn nothing_starts(app: &TestApp, bob: &mut TestSocket) {
    assert!(!bob.ready["sandbox"]["diskPressure"].is_null());
    run(app, bob, "echo never").await;
    app.model.will_say("Not now");
    let failed = bob.wait_for("agent:error").await.rest().clone();
    assert_eq!(failed["code"], "sandbox_unavailable", "{failed}");
    assert_eq!(bob.wait_for_answer().await, "Not now");
}

async fn a_call_that_stands_still_can_be_stopped(app: &TestApp, ana: &mut TestSocket, disk: &Disk) {
    let call = run(app, ana, "echo begun; sleep 20").await;
    progress(ana, "begun").await;
    disk.fill();
    progress(ana, "Paused: the disk").await;
    let asked = json!({ "callId": call });
    assert_eq!(ana.ask("tool:cancel", &[asked]).await["ok"], true);
    let output = ana.wait_for("tool:output").await;
    assert_eq!(output.rest()["status"], "cancelled", "{output:?}");
    app.model.will_say("Stopped");
    assert_eq!(ana.wait_for_answer().await, "Stopped");
    disk.clear();
}

#[tokio::test]
async fn bubblewrap_stands_still_while_the_disk_is_full() {
    let disk = Disk::new().await;
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "bubblewrap"),
        ("SPL_DATA_DIR", &disk.data()),
        ("SPL_SANDBOX_MIN_FREE_MB", &disk.floor),
        ("SPL_METRICS_LISTEN", "127.0.0.1:0"),
    ])
    .await;
    story(app, disk).await;
}

async fn containers_stand_still_while_the_disk_is_full(door: Door) {
    let disk = Disk::new().await;
    disk.assert_that_the_engine_has_more_room();
    let door = door.open(&docker::address()).await;
    let app = TestApp::start_with(&[
        ("SPL_SANDBOX", "docker"),
        ("SPL_SANDBOX_DOCKER_HOST", &door.address),
        ("SPL_SANDBOX_IMAGE", &docker::image()),
        ("SPL_DATA_DIR", &disk.data()),
        ("SPL_SANDBOX_MIN_FREE_MB", &disk.floor),
        ("SPL_METRICS_LISTEN", "127.0.0.1:0"),
    ])
    .await;
    story(app, disk).await;
}
