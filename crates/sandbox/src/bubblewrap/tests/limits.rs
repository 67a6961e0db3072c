//! Tests that control groups and the watchdog enforce the limits alike.

use std::{os::unix::fs::MetadataExt as _, time::Duration};

use rustix::process::geteuid;
use tokio::io::AsyncReadExt as _;

use super::house::{House, bash, command, in_time};
use crate::{Access, Bounds, Launch, Packages, ProgramEnd, Runtime};
use sepal_core::domain::Enforcement;

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
        assert_eq!(ended, ProgramEnd::OverMemory(64 << 20), "{said}");
        assert_eq!(
            house.run("echo again").await,
            ("again\n".to_owned(), ProgramEnd::Exited(0))
        );
    }
}

/// Four processes that are each within the limit, which a limit per process would allow.
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
        assert_eq!(ended, ProgramEnd::OverMemory(100 << 20), "{said}");
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
            is_refused || ended == ProgramEnd::OverProcesses(40),
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
            matches!(
                ended,
                ProgramEnd::OverTime(2) | ProgramEnd::OverProcesses(40)
            ),
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
    assert_eq!(ended, ProgramEnd::OverWorkspace(8 << 20), "{said}");
    let clean = "ls | wc -l; rm *; ls | wc -l";
    let (said, ended) = house.run_launch(with(bounds, bash(1, clean))).await;
    assert_eq!((said.as_str(), ended), ("3\n0\n", ProgramEnd::Exited(0)));
}

/// Returns a script that opens inotify instances up to `most` or the kernel's limit, and prints their number.
fn watch_files(most: u32) -> String {
    let inotify_init1 = if cfg!(target_arch = "aarch64") {
        26
    } else {
        294
    };
    format!(
        "$| = 1; my $n = 0; while ($n < {most}) {{ last if syscall({inotify_init1}, 0) < 0; $n++ }} \
         print \"$n\\n\";"
    )
}

/// The kernel counts inotify instances and more for each user; if we are an ordinary user there is only one.
#[tokio::test]
async fn what_the_kernel_counts_for_each_user_is_counted_for_each_sandbox() {
    let house = House::open().await;
    let script = watch_files(1_000) + " <STDIN>";
    let mut greedy = house
        .start(command(0x00ab_c001, &["perl", "-e", &script]))
        .await;
    let mut said = [0; 4];
    let read = in_time(greedy.stdout.read(&mut said)).await.unwrap();
    let taken: u32 = String::from_utf8_lossy(&said[..read])
        .trim()
        .parse()
        .unwrap();
    assert!(taken > 0);
    let other = house
        .run_launch(command(2, &["perl", "-e", &watch_files(1)]))
        .await;
    if geteuid().is_root() {
        assert_eq!(other, ("1\n".to_owned(), ProgramEnd::Exited(0)));
    }
    greedy.life.kill().await;
}

/// Old workspaces, which all had the same user, keep it.
#[tokio::test]
async fn a_sandbox_has_the_user_whom_its_workspace_belongs_to() {
    let house = House::open().await;
    let script =
        "id -u; touch made; stat -c %u /workspace made; test -w /workspace && echo writable";
    for _ in 0..2 {
        let (said, ended) = house.run(script).await;
        assert_eq!(
            (said.as_str(), ended),
            ("65534\n65534\n65534\nwritable\n", ProgramEnd::Exited(0))
        );
    }
    let made = house.workspace(1).join("made").metadata().unwrap().uid();
    if !geteuid().is_root() {
        assert_eq!(made, geteuid().as_raw());
        return;
    }
    assert_eq!(made, 0x7000_0001);
    let old = house.workspace(2);
    std::fs::create_dir(&old).unwrap();
    std::os::unix::fs::chown(&old, Some(65_534), Some(65_534)).unwrap();
    let (said, _) = house.run_launch(bash(2, script)).await;
    assert!(said.ends_with("writable\n"), "{said}");
    assert_eq!(old.join("made").metadata().unwrap().uid(), 65_534);
}

/// Installed packages belong to another user, whose files may have been private.
#[tokio::test]
async fn installed_packages_are_read_and_run_in_sandboxes_of_others() {
    let house = House::open().await;
    let install = "umask 077; mkdir -p a/b; echo hello >a/b/data; printf '#!/bin/sh\ncat /packages/a/b/data\n' >run; chmod 700 run";
    let installing = Launch {
        packages: Packages::Installing,
        ..bash(7, install)
    };
    assert_eq!(house.run_launch(installing).await.1, ProgramEnd::Exited(0));
    let using = |workspace| Launch {
        packages: Packages::Installed(bash(7, "").sandbox),
        workspace,
        ..bash(
            1,
            "/packages/run; touch /packages/x 2>/dev/null || echo closed",
        )
    };
    for workspace in [Access::ReadWrite, Access::None] {
        let (said, _) = house.run_launch(using(workspace)).await;
        assert_eq!(said, "hello\nclosed\n");
    }
}
