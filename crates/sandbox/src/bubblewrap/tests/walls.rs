//! Tests what is visible inside a sandbox, and what is not.

use std::collections::BTreeMap;

use super::house::{House, bash, command};
use crate::{Error, Launch, Program, ProgramEnd, Runtime};

#[tokio::test]
async fn the_system_cannot_be_changed() {
    let house = House::open().await;
    let (said, _) = house
        .run(
            "for folder in / /usr /usr/bin /bin /etc /dev /proc /lib /sepal; do
               touch $folder/x 2>/dev/null && echo wrote to $folder
             done
             for file in /etc/passwd /usr/bin/bash /proc/sys/kernel/core_pattern \
                         /proc/sysrq-trigger /proc/sys/vm/drop_caches; do
               test -w $file && echo may write $file
             done
             for file in /etc/shadow /etc/hostname /etc/machine-id /root /home /var /sys /run; do
               test -e $file && echo sees $file
             done
             touch /workspace/x /tmp/x /dev/shm/x && echo done",
        )
        .await;
    assert_eq!(said, "done\n");
}

#[tokio::test]
async fn nothing_of_our_environment_is_seen() {
    let house = House::open().await;
    let mine = std::fs::read_to_string("/proc/self/environ").unwrap();
    assert!(mine.contains("CARGO_PKG_NAME="), "the canary is not there");
    let launch = Launch {
        environment: BTreeMap::from([("TOKEN".to_owned(), "hush".to_owned())]),
        ..bash(
            1,
            "env -0 | cut -z -d= -f1 | sort -z | tr '\\0' ' '; echo $TOKEN; cat /proc/1/cmdline",
        )
    };
    let (said, _) = house.run_launch(launch).await;
    let (names, rest) = said.split_once("hush").unwrap();
    assert_eq!(
        names,
        "HOME LANG PATH PWD SEPAL_SANDBOX SHLVL TERM TOKEN USER _ "
    );
    assert!(
        !rest.contains("hush") && !rest.contains(house.data.path().to_str().unwrap()),
        "{rest}"
    );
}

#[tokio::test]
async fn no_descriptor_of_ours_is_inherited() {
    let house = House::open().await;
    let (said, _) = house.run_launch(command(1, &["ls", "/proc/self/fd"])).await;
    assert_eq!(
        said, "0\n1\n2\n3\n",
        "the three standard ones, and that of `ls` itself"
    );
}

/// If we are root outside, the program must be another user outside: the user id of root alone may write to
/// `/proc/sys`.
#[tokio::test]
async fn the_program_is_never_the_machines_root() {
    let house = House::open().await;
    house.run("touch mine").await;
    let owner = std::os::unix::fs::MetadataExt::uid(
        &std::fs::metadata(house.workspace(1).join("mine")).unwrap(),
    );
    assert_ne!(owner, 0);
}

#[tokio::test]
async fn a_workspace_is_seen_by_its_own_sandbox_only() {
    let house = House::open().await;
    house.run_launch(bash(1, "echo one > mine")).await;
    let look = "cat mine 2>/dev/null; ls -A /workspace/.. | tr '\\n' ' '";
    let (said, _) = house.run_launch(bash(1, look)).await;
    assert!(
        said.starts_with("one\n") && !said.contains("sbx_"),
        "{said}"
    );
    let (said, _) = house.run_launch(bash(2, look)).await;
    assert!(!said.contains("one") && !said.contains("sbx_"), "{said}");
    let ids = house.runtime.workspaces().await.unwrap();
    assert_eq!(ids.len(), 2);
    house.runtime.remove_workspace(&ids[0]).await.unwrap();
    assert!(!house.workspace(1).exists() && house.workspace(2).exists());
}

#[tokio::test]
async fn what_cannot_be_started_is_said_with_the_remedy() {
    let house = House::open().await;
    let image = Program::Image {
        image: "some/image".to_owned(),
        arguments: Vec::new(),
    };
    let strange = BTreeMap::from([("A=B".to_owned(), "x".to_owned())]);
    for (launch, expected) in [
        (
            Launch {
                program: image,
                ..bash(1, "")
            },
            "needs a container engine",
        ),
        (
            Launch {
                environment: strange,
                ..bash(1, "")
            },
            "`A=B`",
        ),
        (command(1, &[]), "command is empty"),
    ] {
        let error = house.runtime.start(launch).await.unwrap_err();
        assert!(
            matches!(&error, Error::BadLaunch(text) if text.contains(expected)),
            "{error}"
        );
    }
    let (said, ended) = house.run_launch(command(1, &["/no/such/program"])).await;
    assert!(said.contains("/no/such/program"), "{said}");
    assert!(matches!(ended, ProgramEnd::Exited(1..)), "{ended}");
}
