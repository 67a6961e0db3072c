//! What only containers have: the engine's own view, images, the shelf of warm ones.

use std::io::Write as _;
use std::time::{Duration, Instant};

use sepal::domain::SandboxId;
use sepal::sandbox::{Access, Bounds, Docker, Error, Launch, Program, ProgramEnd};
use serde_json::{Value, json};

use super::house::{House, Served, docker_settings, in_time, new_installation};
use crate::support::docker::{self, docker, lines, named};
use crate::support::{Door, behind_each_door};

behind_each_door!(
    the_engine_holds_every_wall_and_keeps_no_log,
    an_image_runs_with_its_own_entry_point_behind_the_same_walls,
    servers_of_a_session_are_containers_of_their_own,
    a_warm_sandbox_answers_at_once_and_is_handed_out_once,
    a_killed_life_is_cleaned_by_the_next_and_nobody_elses_is_touched,
);

/// Asserts S2.11, S2.52, S2.53.
async fn the_engine_holds_every_wall_and_keeps_no_log(door: Door) {
    let house = House::docker(door).await;
    let served = house.serve(1, Bounds::default()).await;
    // MCP traffic on stdout would grow a log without limit.
    let flood = json!({ "command": "head -c 100000 /dev/zero | tr '\\0' x" });
    assert!(served.call("execute_command", flood).await.len() > 10_000);
    let name = format!("sepal-sb-{}", house.sandbox(1));
    let told = docker(&docker::address(), &["inspect", &name]);
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    let (walls, config) = (&told[0]["HostConfig"], &told[0]["Config"]);
    assert_eq!(walls["Memory"], 512 << 20);
    assert_eq!(walls["MemorySwap"], 512 << 20);
    assert_eq!(walls["NanoCpus"], 500_000_000);
    assert_eq!(walls["PidsLimit"], 128);
    assert_eq!(walls["NetworkMode"], "none");
    assert_eq!(walls["ReadonlyRootfs"], true);
    assert_eq!(walls["CapDrop"], json!(["ALL"]));
    assert_eq!(walls["SecurityOpt"], json!(["no-new-privileges:true"]));
    assert_eq!(walls["Privileged"], false);
    assert_eq!(walls["LogConfig"]["Type"], "none");
    assert_eq!(told[0]["LogPath"], "");
    assert_eq!(config["User"], "65534:65534");
    assert_eq!(config["Labels"]["sepal.installation"], *house.installation);
    assert_eq!(config["Labels"]["sepal.sandbox"], house.sandbox(1).as_str());
    assert_eq!(config["Labels"]["sepal.server"], "test");
    let seccomp = json!({ "command": "grep -c 'Seccomp:.2' /proc/self/status" });
    assert!(
        served
            .call("execute_command", seccomp)
            .await
            .ends_with("1\n")
    );
    drop(served);
    house.close().await;
}

async fn an_image_runs_with_its_own_entry_point_behind_the_same_walls(door: Door) {
    let house = House::docker(door).await;
    let launch = |arguments: &[&str], workspace| Launch {
        program: Program::Image {
            image: docker::image(),
            arguments: arguments.iter().copied().map(str::to_owned).collect(),
        },
        workspace,
        ..house.bash(1, "")
    };
    // The image of the tests has our server as its entry point.
    let (said, ended) = house
        .run_launch(launch(&["--describe"], Access::None))
        .await;
    assert!(said.contains("execute_command"), "{said}");
    assert_eq!(ended, ProgramEnd::Exited(0));
    let running = house.start(launch(&[], Access::ReadWrite)).await;
    let served = Served::connect(running).await;
    let script = json!({ "command": "id -u; touch mine && echo may write" });
    let told = served.call("execute_command", script).await;
    assert!(told.ends_with("65534\nmay write\n"), "{told}");
    let missing = Launch {
        program: Program::Image {
            image: "no/such:image".to_owned(),
            arguments: Vec::new(),
        },
        workspace: Access::None,
        ..house.bash(2, "")
    };
    let error = house.runtime.start(missing).await.unwrap_err().to_string();
    assert!(error.contains("`docker pull no/such:image`"), "{error}");
    drop(served);
    house.close().await;
}

/// Asserts S2.11, S2.53.
async fn servers_of_a_session_are_containers_of_their_own(door: Door) {
    let house = House::docker(door).await;
    let bundled = house.serve(1, Bounds::default()).await;
    let mut lives = Vec::new();
    for server in ["github", "time"] {
        let launch = Launch {
            server: server.to_owned(),
            environment: [("TOKEN".to_owned(), format!("of {server}"))].into(),
            workspace: Access::None,
            ..house.bash(1, "sleep 1000")
        };
        lives.push(house.start(launch).await);
    }
    let label = format!("sepal.sandbox={}", house.sandbox(1));
    let mut names = named("container", &label);
    names.sort();
    let first = format!("sepal-sb-{}", house.sandbox(1));
    assert_eq!(
        names,
        [
            first.clone(),
            format!("{first}-github"),
            format!("{first}-time")
        ]
    );
    // The model's shell sees no other server's process, and so no other server's secret.
    let spy = json!({ "command": "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c TOKEN" });
    assert!(bundled.call("execute_command", spy).await.contains("0\n"));
    drop((bundled, lives));
    house.close().await;
}

async fn a_warm_sandbox_answers_at_once_and_is_handed_out_once(door: Door) {
    let house = House::docker_with(door, |settings| settings.pool_size = 2).await;
    assert_eq!(house.runtime.reserve(), None, "nobody called a tool yet");
    let cold = Instant::now();
    let first = house.serve(1, Bounds::default()).await;
    first.call("list_files", json!({})).await;
    let cold = cold.elapsed();
    let sandbox = warm(&house).await;
    assert_eq!(
        house.runtime.workspaces().await.unwrap(),
        [house.sandbox(1)],
        "what is warm is no session's"
    );
    let (took, served) = first_answer(&house, sandbox.clone()).await;
    let mut expected = vec![house.sandbox(1), sandbox];
    expected.sort();
    assert_eq!(house.runtime.workspaces().await.unwrap(), expected);
    let mut times = vec![took];
    for _ in 0..4 {
        let sandbox = warm(&house).await;
        times.push(first_answer(&house, sandbox).await.0);
    }
    let warm = median(&mut times);
    let mut out = std::io::stdout();
    writeln!(out, "first answer: cold {cold:?}, warm {warm:?}").unwrap();
    assert!(warm < cold / 2, "cold {cold:?}, warm {warm:?}");
    drop((first, served));
    in_time(house.runtime.close()).await;
    let label = format!("sepal.installation={}", house.installation);
    assert!(named("container", &label).is_empty());
    assert_eq!(named("volume", &label).len(), 6, "the sessions' own");
    house.close().await;
}

/// Takes a warm sandbox for a session: how long until its first tool has answered.
async fn first_answer(house: &House, sandbox: SandboxId) -> (Duration, Served) {
    let launch = Launch {
        sandbox,
        holder: None,
        ..house.bundled(1)
    };
    let began = Instant::now();
    let served = Served::connect(house.runtime.start(launch).await.unwrap()).await;
    served.call("list_files", json!({})).await;
    (began.elapsed(), served)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Waits for the shelf to fill.
async fn warm(house: &House) -> SandboxId {
    in_time(async {
        loop {
            if let Some(sandbox) = house.runtime.reserve() {
                return sandbox;
            }
            // Asking the engine takes its time.
            house.runtime.workspaces().await.unwrap();
        }
    })
    .await
}

async fn a_killed_life_is_cleaned_by_the_next_and_nobody_elses_is_touched(door: Door) {
    let house = House::docker(door).await;
    let other = House::docker(door).await;
    let running = house.start(house.bash(1, "sleep 1000")).await;
    let others = other.start(other.bash(1, "sleep 1000")).await;
    let next = Docker::open(house.docker_settings()).await;
    let next: &dyn sepal::sandbox::Runtime = &next.unwrap();
    assert_eq!(next.reap().await.unwrap(), 1);
    // Whichever is seen first: that it was killed, or that it is gone.
    let ended = in_time(running.life.ended()).await;
    assert!(
        matches!(ended, ProgramEnd::Signalled(9) | ProgramEnd::Lost),
        "{ended}"
    );
    assert_eq!(next.reap().await.unwrap(), 0);
    assert_eq!(house.runtime.tidy().await.unwrap(), 0);
    assert!(!others.life.has_ended());
    assert_eq!(next.workspaces().await.unwrap(), [house.sandbox(1)]);
    drop(others);
    house.close().await;
    other.close().await;
}

#[tokio::test]
async fn what_the_engine_lacks_is_said_with_the_remedy() {
    let check = async |change: fn(&mut sepal::sandbox::DockerSettings), expected: &str| {
        let mut settings = docker_settings(&new_installation());
        change(&mut settings);
        let error = Docker::open(settings).await.unwrap_err();
        assert!(matches!(error, Error::Engine(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
    };
    check(
        |it| it.image = "sepal/sandbox:none".to_owned(),
        "`./run image`",
    )
    .await;
    check(|it| it.image = "a/b:c".to_owned(), "`docker pull a/b:c`").await;
    check(|it| it.runtime = Some("runsc".to_owned()), "it has: ").await;
    check(
        |it| it.host = Some("unix:///nowhere".to_owned()),
        "SPL_SANDBOX_DOCKER_HOST",
    )
    .await;
}

/// The time of `docker run` for the same image, for the measure in docs/sandbox.md.
#[tokio::test]
async fn a_cold_start_is_no_slower_than_the_command_line() {
    let house = House::docker(Door::Direct).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let image = docker::image();
    let arguments = [
        "run",
        "--rm",
        "--network",
        "none",
        "--log-driver",
        "none",
        "--entrypoint",
        "true",
        &image,
    ];
    for number in 1..=5 {
        let began = Instant::now();
        let served = house.serve(number, Bounds::default()).await;
        served.call("list_files", json!({})).await;
        ours.push(began.elapsed());
        served.life.kill().await;
        let began = Instant::now();
        lines(&docker::address(), &arguments);
        theirs.push(began.elapsed());
    }
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    writeln!(
        std::io::stdout(),
        "first answer: cold {ours:?}; `docker run` {theirs:?}"
    )
    .unwrap();
    assert!(ours < theirs * 13 / 10, "{ours:?} against {theirs:?}");
    house.close().await;
}
