//! What is inside, and what is not.

use std::collections::BTreeMap;

use sepal::sandbox::{Access, Bounds, Error, Launch, ProgramEnd};
use serde_json::json;

use super::house::House;

super::on_every_runtime!(
    the_bundled_server_works_on_the_sessions_files,
    nobody_answers_from_inside,
    the_system_cannot_be_changed,
    nothing_of_our_environment_is_seen,
    every_program_may_write_to_its_home,
    no_process_of_the_machine_is_seen,
    there_is_no_way_to_more_rights,
    a_workspace_is_seen_by_its_own_sandbox_only,
    other_servers_see_the_workspace_as_their_entry_says,
    what_cannot_be_started_is_said,
);

/// Asserts S2.11, S2.46, S2.48, S2.50, O11.
async fn the_bundled_server_works_on_the_sessions_files(house: House) {
    let served = house.serve(1, Bounds::default()).await;
    let written = json!({ "path": "a/b.txt", "content": "hello" });
    assert_eq!(
        served.call("write_file", written).await,
        "Wrote 5 bytes to `a/b.txt`."
    );
    let line = json!({ "command": "id -un; hostname; pwd; cat a/b.txt; test -n \"$BASH\"" });
    let told = served.call("execute_command", line).await;
    assert!(
        told.ends_with("nobody\nsandbox\n/workspace\nhello"),
        "{told}"
    );
    drop(served.client);
    assert_eq!(served.life.ended().await, ProgramEnd::Exited(0));
    // The next program of the session finds what the first one wrote.
    assert_eq!(house.run("cat a/b.txt").await.0, "hello");
    house.close().await;
}

/// Asserts S2.52.
async fn nobody_answers_from_inside(house: House) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "(exec 9<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo connected
         grep -c : /proc/net/dev; wc -l < /proc/net/route"
    );
    let (said, _) = house.run(&script).await;
    assert_eq!(said, "1\n1\n", "only the loopback device and no route");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
    house.close().await;
}

async fn the_system_cannot_be_changed(house: House) {
    let (said, _) = house
        .run(
            "for folder in / /usr /usr/bin /bin /etc /dev /proc /lib /sys /sepal /root /var; do
               touch $folder/x 2>/dev/null && echo wrote to $folder
             done
             for file in /etc/passwd /usr/bin/bash /proc/sys/kernel/core_pattern \
                         /proc/sysrq-trigger /proc/sys/vm/drop_caches /sepal/mcp-server; do
               test -w $file && echo may write $file
             done
             touch /workspace/x /tmp/x /dev/shm/x && echo done",
        )
        .await;
    assert_eq!(said, "done\n");
    house.close().await;
}

async fn every_program_may_write_to_its_home(house: House) {
    for (access, home) in [
        (Access::None, "/tmp"),
        (Access::ReadOnly, "/tmp"),
        (Access::ReadWrite, "/workspace"),
    ] {
        let launch = Launch {
            workspace: access,
            ..house.bash(1, "mkdir -p ~/.cache/x && echo $HOME")
        };
        let (said, _) = house.run_launch(launch).await;
        assert_eq!(said.trim(), home);
    }
    house.close().await;
}

async fn nothing_of_our_environment_is_seen(house: House) {
    let mine = std::fs::read_to_string("/proc/self/environ").unwrap();
    assert!(mine.contains("CARGO_PKG_NAME="), "the canary is not there");
    let launch = Launch {
        environment: BTreeMap::from([("TOKEN".to_owned(), "hush".to_owned())]),
        ..house.bash(1, "env -0 | cut -z -d= -f1 | tr '\\0' ' '; echo $TOKEN")
    };
    let (said, _) = house.run_launch(launch).await;
    let (names, _) = said.split_once("hush").unwrap();
    let known = [
        "HOME",
        "HOSTNAME",
        "LANG",
        "PATH",
        "PWD",
        "SEPAL_SANDBOX",
        "SHLVL",
        "TERM",
        "TOKEN",
        "USER",
        "_",
    ];
    for name in names.split_whitespace() {
        assert!(known.contains(&name), "{name}");
    }
    house.close().await;
}

async fn no_process_of_the_machine_is_seen(house: House) {
    let script = format!(
        "kill -0 {0} 2>/dev/null && echo can signal
         test -e /proc/{0} && echo sees
         ls /proc | grep -c '^[0-9]'",
        std::process::id()
    );
    let (said, _) = house.run(&script).await;
    assert!(
        said.trim().parse::<u32>().is_ok_and(|count| count < 10),
        "{said}"
    );
    house.close().await;
}

async fn there_is_no_way_to_more_rights(house: House) {
    let (said, _) = house
        .run(
            "grep -E '^(Cap|NoNewPrivs)' /proc/self/status | tr -d '\\t'
             id -u; id -G
             unshare -U true 2>/dev/null && echo new namespace
             find / -xdev -perm -4000 -writable 2>/dev/null
             mount -t tmpfs x /tmp 2>/dev/null && echo mounted",
        )
        .await;
    let none = "0000000000000000";
    assert_eq!(
        said,
        format!(
            "CapInh:{none}\nCapPrm:{none}\nCapEff:{none}\nCapBnd:{none}\nCapAmb:{none}\n\
             NoNewPrivs:1\n65534\n65534\n"
        )
    );
    house.close().await;
}

/// Asserts S2.51, O10.
async fn a_workspace_is_seen_by_its_own_sandbox_only(house: House) {
    house.run_launch(house.bash(1, "echo one > mine")).await;
    let look = "cat mine 2>/dev/null; ls -A /workspace/.. | tr '\\n' ' '";
    let (said, _) = house.run_launch(house.bash(1, look)).await;
    assert!(
        said.starts_with("one\n") && !said.contains("sbx_"),
        "{said}"
    );
    let (said, _) = house.run_launch(house.bash(2, look)).await;
    assert!(!said.contains("one") && !said.contains("sbx_"), "{said}");
    let (one, two) = (house.sandbox(1), house.sandbox(2));
    assert_eq!(
        house.runtime.workspaces().await.unwrap(),
        [one.clone(), two.clone()]
    );
    house.runtime.remove_workspace(&one).await.unwrap();
    house.runtime.remove_workspace(&one).await.unwrap();
    assert_eq!(house.runtime.workspaces().await.unwrap(), [two]);
    house.close().await;
}

async fn other_servers_see_the_workspace_as_their_entry_says(house: House) {
    house.run_launch(house.bash(1, "echo one > mine")).await;
    let look = "cat mine 2>/dev/null || echo unseen; touch x 2>/dev/null || echo read-only";
    for (workspace, expected) in [
        (Access::None, "unseen\nread-only\n"),
        (Access::ReadOnly, "one\nread-only\n"),
        (Access::ReadWrite, "one\n"),
    ] {
        let (said, _) = house
            .run_launch(Launch {
                workspace,
                ..house.bash(1, look)
            })
            .await;
        assert_eq!(said, expected);
    }
    house.close().await;
}

async fn what_cannot_be_started_is_said(house: House) {
    let strange = BTreeMap::from([("A=B".to_owned(), "x".to_owned())]);
    for (launch, expected) in [
        (
            Launch {
                environment: strange,
                ..house.bash(1, "")
            },
            "`A=B`",
        ),
        (house.command(1, &[]), "command is empty"),
    ] {
        let error = house.runtime.start(launch).await.unwrap_err();
        assert!(
            matches!(&error, Error::BadLaunch(text) if text.contains(expected)),
            "{error}"
        );
    }
    let (said, ended) = house
        .run_launch(house.command(1, &["/no/such/program"]))
        .await;
    assert!(said.contains("/no/such/program"), "{said}");
    assert!(matches!(ended, ProgramEnd::Exited(1..)), "{ended}");
    house.close().await;
}
