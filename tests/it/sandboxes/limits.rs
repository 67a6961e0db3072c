//! The limits hold, whatever holds them.

use std::time::Duration;

use sepal::domain::Enforcement;
use sepal::sandbox::{Bounds, Launch, ProgramEnd};
use serde_json::json;

use super::house::{House, in_time};

super::on_every_runtime!(
    too_much_memory_ends_the_sandbox_and_the_next_one_works,
    memory_counts_for_all_processes_together,
    a_hungry_command_does_not_end_the_server_where_the_kernel_holds_the_limit,
    processes_are_bounded,
    a_fork_bomb_is_held_and_can_be_ended,
    half_a_processor_is_half_a_processor,
    a_life_can_be_limited,
    the_server_needs_no_thread_for_an_answer,
    a_full_workspace_ends_the_sandbox_and_can_be_cleaned_by_the_next,
    what_is_far_too_much_is_deleted_and_the_rest_stays,
    one_file_cannot_be_larger_than_the_workspace,
    temporary_folders_are_bounded,
);

fn with(bounds: Bounds, launch: Launch) -> Launch {
    Launch { bounds, ..launch }
}

/// Asserts S2.52.
async fn too_much_memory_ends_the_sandbox_and_the_next_one_works(house: House) {
    let bounds = Bounds {
        memory_bytes: 64 << 20,
        ..Bounds::default()
    };
    let hungry = with(bounds, house.command(1, &["tail", "/dev/zero"]));
    let (said, ended) = house.run_launch(hungry).await;
    assert_eq!(ended, ProgramEnd::OverMemory(64 << 20), "{said}");
    assert_eq!(
        house.run("echo again").await,
        ("again\n".to_owned(), ProgramEnd::Exited(0))
    );
    house.close().await;
}

/// Four processes that are each within the limit, as a limit per process would let pass.
async fn memory_counts_for_all_processes_together(house: House) {
    let bounds = Bounds {
        memory_bytes: 100 << 20,
        ..Bounds::default()
    };
    let script = "for i in 1 2 3 4; do
                    perl -e '$x = \"x\" x (40 << 20); sleep 1000' &
                  done
                  wait -n; kill -9 $$";
    let (said, ended) = house.run_launch(with(bounds, house.bash(1, script))).await;
    assert_eq!(ended, ProgramEnd::OverMemory(100 << 20), "{said}");
    house.close().await;
}

async fn a_hungry_command_does_not_end_the_server_where_the_kernel_holds_the_limit(house: House) {
    if house.runtime.limits().memory == Enforcement::Cgroup {
        let bounds = Bounds {
            memory_bytes: 64 << 20,
            ..Bounds::default()
        };
        let served = house.serve(1, bounds).await;
        let told = served
            .call("execute_command", json!({ "command": "tail /dev/zero" }))
            .await;
        assert!(told.contains("SIGKILL"), "{told}");
        let told = served
            .call("execute_command", json!({ "command": "echo again" }))
            .await;
        assert!(told.ends_with("again\n"), "{told}");
    }
    house.close().await;
}

async fn processes_are_bounded(house: House) {
    let bounds = Bounds {
        processes: 40,
        ..Bounds::default()
    };
    let fork = "$| = 1; for (1 .. 500) { my $pid = fork; if (!defined $pid) { print $_; \
                exit } if (!$pid) { sleep 1000; exit } } print 'all'; sleep 1000";
    let launch = with(bounds, house.command(1, &["perl", "-e", fork]));
    let (said, ended) = house.run_launch(launch).await;
    let is_refused = said.parse::<u32>().is_ok_and(|count| count <= 40);
    assert!(
        is_refused || ended == ProgramEnd::OverProcesses(40),
        "{said} {ended}"
    );
    assert_eq!(house.run("echo again").await.0, "again\n");
    house.close().await;
}

async fn a_fork_bomb_is_held_and_can_be_ended(house: House) {
    let bounds = Bounds {
        processes: 40,
        lifetime: Some(Duration::from_secs(2)),
        ..Bounds::default()
    };
    let bomb = "bomb() { bomb | bomb & }; bomb; sleep 1000";
    let (_, ended) = house.run_launch(with(bounds, house.bash(1, bomb))).await;
    assert!(
        matches!(
            ended,
            ProgramEnd::OverTime(2) | ProgramEnd::OverProcesses(40)
        ),
        "{ended}"
    );
    assert_eq!(house.run("echo again").await.0, "again\n");
    house.close().await;
}

/// Asserts S2.52.
async fn half_a_processor_is_half_a_processor(house: House) {
    let burn = "my $first = $$; for (1 .. 3) { last unless fork } my $end = time + 3; \
                1 while time < $end; exit if $$ != $first; 1 while wait > 0; my @used = times; \
                print $used[0] + $used[1] + $used[2] + $used[3]";
    let (said, _) = house
        .run_launch(house.command(1, &["perl", "-e", burn]))
        .await;
    let used: f64 = said.parse().unwrap();
    assert!(used < 3.0, "{used} s of processor time in 3 to 4 s");
    house.close().await;
}

/// Commands may have taken every place for one, so what it needs is there from the beginning.
async fn the_server_needs_no_thread_for_an_answer(house: House) {
    let served = house.serve(1, Bounds::default()).await;
    let count = json!({ "command": "grep Threads: /proc/$PPID/status" });
    for _ in 0..2 {
        let told = served.call("execute_command", count.clone()).await;
        assert!(told.ends_with("Threads:\t2\n"), "{told}");
        served.call("list_files", json!({})).await;
    }
    drop(served);
    house.close().await;
}

async fn a_life_can_be_limited(house: House) {
    let bounds = Bounds {
        lifetime: Some(Duration::from_secs(1)),
        ..Bounds::default()
    };
    let (_, ended) = house
        .run_launch(with(bounds, house.bash(1, "sleep 1000")))
        .await;
    assert_eq!(ended, ProgramEnd::OverTime(1));
    house.close().await;
}

async fn a_full_workspace_ends_the_sandbox_and_can_be_cleaned_by_the_next(house: House) {
    let bounds = Bounds {
        workspace_bytes: 8 << 20,
        ..Bounds::default()
    };
    // All three files are there before the first byte of them.
    let fill = "head -c 4M /dev/zero | tee 1 2 > 3; sleep 1000";
    let (said, ended) = house.run_launch(with(bounds, house.bash(1, fill))).await;
    assert_eq!(ended, ProgramEnd::OverWorkspace(8 << 20), "{said}");
    let clean = "ls | wc -l; rm *; ls | wc -l";
    let (said, ended) = house.run_launch(with(bounds, house.bash(1, clean))).await;
    assert_eq!((said.as_str(), ended), ("3\n0\n", ProgramEnd::Exited(0)));
    house.close().await;
}

/// A moment is enough to take a whole disk: that way no limit of one file holds, and no watch is fast
/// enough. Nor does it help to be gone before anybody looks.
async fn what_is_far_too_much_is_deleted_and_the_rest_stays(house: House) {
    let bounds = Bounds {
        workspace_bytes: 8 << 20,
        ..Bounds::default()
    };
    let take =
        "head -c 4M /dev/zero > kept; sleep 2; : >big; fallocate -n -l 40M big; stat -c %b big";
    for (rest, expected) in [
        ("sleep 1000", ProgramEnd::OverWorkspace(8 << 20)),
        ("exit 3", ProgramEnd::Exited(3)),
    ] {
        let script = format!("{take}; {rest}");
        let (said, ended) = house.run_launch(with(bounds, house.bash(1, &script))).await;
        // Who leaves at once may still be seen.
        let is_seen = ended == ProgramEnd::OverWorkspace(8 << 20);
        assert!(is_seen || ended == expected, "{said} {ended}");
        let blocks = said.lines().next().unwrap_or_default();
        assert!(blocks.parse::<u64>().unwrap() > 80_000, "{said}");
        let looking = async {
            loop {
                let list = with(bounds, house.bash(1, "ls"));
                let (said, ended) = house.run_launch(list).await;
                if (said.as_str(), ended) == ("kept\n", ProgramEnd::Exited(0)) {
                    break;
                }
                assert!(said.is_empty() || said.ends_with("kept\n"), "{said}");
            }
        };
        in_time(looking).await;
    }
    house.close().await;
}

async fn one_file_cannot_be_larger_than_the_workspace(house: House) {
    let bounds = Bounds {
        workspace_bytes: 1 << 20,
        ..Bounds::default()
    };
    let script = "ulimit -c; ulimit -n; head -c 2M /dev/zero > big";
    let (said, _) = house.run_launch(with(bounds, house.bash(1, script))).await;
    assert!(said.starts_with("0\n1024\n"), "{said}");
    // The workspace is full now, and its sandbox may be ended at any moment: another one looks.
    let (said, _) = house.run_launch(house.bash(1, "stat -c %s big")).await;
    assert_eq!(said, "1048576\n");
    house.close().await;
}

async fn temporary_folders_are_bounded(house: House) {
    for folder in ["/tmp", "/dev/shm"] {
        let script = format!("head -c 100M /dev/zero > {folder}/big; stat -c %s {folder}/big");
        let (said, _) = house.run(&script).await;
        assert!(said.starts_with("67108864\n"), "{said}");
    }
    house.close().await;
}
