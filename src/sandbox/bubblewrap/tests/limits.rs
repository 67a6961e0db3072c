//! The limits hold, by control groups and by the watchdog alike.

use std::time::Duration;

use super::house::{House, bash, command};
use crate::{
    domain::Enforcement,
    sandbox::{Bounds, Ended, Launch, Runtime},
};

fn with(bounds: Bounds, launch: Launch) -> Launch {
    Launch { bounds, ..launch }
}

#[tokio::test]
async fn the_runtime_says_what_really_holds_the_limits() {
    let watched = House::without_cgroups().await;
    assert_eq!(watched.runtime.limits().memory, Enforcement::Watchdog);
    let house = House::open().await;
    let held = house.runtime.limits();
    assert_eq!((held.cpu, held.processes), (held.memory, held.memory));
    assert_eq!(held.workspace, Enforcement::Watchdog);
}

#[tokio::test]
async fn too_much_memory_ends_the_sandbox_and_the_next_one_works() {
    for forces_watchdog in [false, true] {
        let house = House::with(forces_watchdog).await;
        let bounds = Bounds {
            memory_bytes: 64 << 20,
            ..Bounds::default()
        };
        let hungry = with(bounds, command(1, &["tail", "/dev/zero"]));
        let (said, ended) = house.run_launch(hungry).await;
        assert_eq!(ended, Ended::OverMemory(64 << 20), "{said}");
        assert_eq!(
            house.run("echo again").await,
            ("again\n".to_owned(), Ended::Exited(0))
        );
    }
}

/// Four processes that are each within the limit, as a limit per process would let pass.
#[tokio::test]
async fn memory_counts_for_all_processes_together() {
    for forces_watchdog in [false, true] {
        let house = House::with(forces_watchdog).await;
        let bounds = Bounds {
            memory_bytes: 100 << 20,
            ..Bounds::default()
        };
        let script = "for i in 1 2 3 4; do
                        perl -e '$x = \"x\" x (40 << 20); sleep 1000' &
                      done
                      wait -n; kill -9 $$";
        let (said, ended) = house.run_launch(with(bounds, bash(1, script))).await;
        assert_eq!(ended, Ended::OverMemory(100 << 20), "{said}");
    }
}

#[tokio::test]
async fn processes_are_bounded() {
    for forces_watchdog in [false, true] {
        let house = House::with(forces_watchdog).await;
        let bounds = Bounds {
            processes: 40,
            ..Bounds::default()
        };
        let fork = "$| = 1; for (1 .. 500) { my $pid = fork; if (!defined $pid) { print $_; \
                    exit } if (!$pid) { sleep 1000; exit } } print 'all'; sleep 1000";
        let launch = with(bounds, command(1, &["perl", "-e", fork]));
        let (said, ended) = house.run_launch(launch).await;
        let is_refused = said.parse::<u32>().is_ok_and(|count| count <= 40);
        assert!(
            is_refused || ended == Ended::OverProcesses(40),
            "{said} {ended}"
        );
        assert_eq!(house.run("echo again").await.0, "again\n");
    }
}

#[tokio::test]
async fn a_fork_bomb_is_held_and_can_be_ended() {
    for forces_watchdog in [false, true] {
        let house = House::with(forces_watchdog).await;
        let bounds = Bounds {
            processes: 40,
            lifetime: Some(Duration::from_secs(2)),
            ..Bounds::default()
        };
        let bomb = "bomb() { bomb | bomb & }; bomb; sleep 1000";
        let (_, ended) = house.run_launch(with(bounds, bash(1, bomb))).await;
        assert!(
            matches!(ended, Ended::OverTime(2) | Ended::OverProcesses(40)),
            "{ended}"
        );
        assert_eq!(house.run("echo again").await.0, "again\n");
    }
}

#[tokio::test]
async fn half_a_processor_is_half_a_processor() {
    for forces_watchdog in [false, true] {
        let house = House::with(forces_watchdog).await;
        let burn = "my $first = $$; for (1 .. 3) { last unless fork } my $end = time + 3; 1 while time < $end; \
                    exit if $$ != $first; \
                    1 while wait > 0; my @used = times; print $used[0] + $used[1] + $used[2] + $used[3]";
        let (said, _) = house.run_launch(command(1, &["perl", "-e", burn])).await;
        let used: f64 = said.parse().unwrap();
        assert!(used < 3.0, "{used} s of processor time in 3 to 4 s");
    }
}

#[tokio::test]
async fn a_full_workspace_ends_the_sandbox_and_can_be_cleaned_by_the_next() {
    let house = House::open().await;
    let bounds = Bounds {
        workspace_bytes: 8 << 20,
        ..Bounds::default()
    };
    let fill = "for i in 1 2 3; do head -c 4M /dev/zero > $i; done; sleep 1000";
    let (said, ended) = house.run_launch(with(bounds, bash(1, fill))).await;
    assert_eq!(ended, Ended::OverWorkspace(8 << 20), "{said}");
    let clean = "ls | wc -l; rm *; ls | wc -l";
    let (said, ended) = house.run_launch(with(bounds, bash(1, clean))).await;
    assert_eq!((said.as_str(), ended), ("3\n0\n", Ended::Exited(0)));
}
