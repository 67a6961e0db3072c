//! Tests copies on write: they show the workspace, keep their own changes, and are isolated like any sandbox.

use std::fs;

use super::house::{House, bash, in_time};
use crate::{
    Access, Bounds, CopyOrder, CopyResult, CopyWatch, CopyWay, Error, Launch, ProgramEnd, Runtime,
};
use sepal_core::domain::SandboxId;

const MB: u64 = 1 << 20;

/// Fills a workspace, and makes the second sandbox a copy on write of it. Returns `false` if this machine
/// does not support overlays: then it is a whole copy, which has the same names.
async fn copied(house: &House, script: &str) -> bool {
    let (said, ended) = house.run(script).await;
    assert_eq!(ended, ProgramEnd::Exited(0), "{said}");
    let order = CopyOrder {
        from: SandboxId::from_bits(1),
        to: SandboxId::from_bits(2),
        bounds: Bounds::default(),
        way: CopyWay::OnWrite,
        watch: CopyWatch::default(),
    };
    let copied = in_time(house.runtime.copy_workspace(order)).await.unwrap();
    let is_whole = matches!(copied, CopyResult::Whole(_));
    assert!(is_whole || copied == CopyResult::OnWrite);
    let names = "find . | sort";
    assert_eq!(in_copy(house, names).await, house.run(names).await);
    !is_whole
}

async fn in_copy(house: &House, script: &str) -> (String, ProgramEnd) {
    house.run_launch(bash(2, script)).await
}

fn read_only(script: &str) -> Launch {
    Launch {
        workspace: Access::ReadOnly,
        ..bash(2, script)
    }
}

#[tokio::test]
async fn a_copy_on_write_shows_the_workspace_and_leaves_it_alone() {
    let house = House::open().await;
    let make = "mkdir -p d/e; echo one >d/file; echo x >gone; ln -s d/file link; chmod 640 d/file";
    if !copied(&house, make).await {
        return;
    }
    let look = "find . -printf '%P %y %m %U:%G %i %C@ %s %l\\n' | grep -v '^ d' | sort";
    let live = house.run(look).await;
    assert_eq!(in_copy(&house, look).await, live);
    let change =
        "echo two >d/file; rm gone; rm -r d/e; mkdir new; echo y >new/file; cat d/file link";
    let (said, _) = in_copy(&house, change).await;
    assert_eq!(said, "two\ntwo\n");
    // The next sandbox sees the files that the first one left, and a read-only one changes nothing.
    let (said, _) = in_copy(&house, "ls -A; stat -c %U:%a d/file").await;
    assert_eq!(said, "d\nlink\nnew\nnobody:640\n");
    let (said, _) = house
        .run_launch(read_only("cat d/file; echo z 2>&1 >d/file"))
        .await;
    assert!(said.starts_with("two\n"), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
    assert_eq!(house.run(look).await, live);
    // Work folders are closed even to their owner, and are still removed.
    let copy = SandboxId::from_bits(2);
    house.runtime.remove_workspace(&copy).await.unwrap();
    assert!(!house.workspace(2).exists());
}

/// A program that renames a folder does not fall back to copying, as `mv` does.
#[tokio::test]
async fn a_folder_of_the_workspace_is_renamed_in_a_copy_on_write() {
    let house = House::open().await;
    if !copied(&house, "mkdir d; echo x >d/file").await {
        return;
    }
    let rename = r#"perl -e 'rename("d", "e") or print "$!\n"'"#;
    let (said, _) = in_copy(&house, rename).await;
    if !rustix::process::geteuid().is_root() {
        // A user's overlay cannot record where a renamed folder was (docs/sandbox.md).
        assert_eq!(said, "Invalid cross-device link\n");
        return;
    }
    assert_eq!(said, "");
    assert_eq!(in_copy(&house, "find . -type f").await.0, "./e/file\n");
    assert_eq!(house.run("find . -type f").await.0, "./d/file\n");
}

#[tokio::test]
async fn one_sandbox_at_a_time_sees_a_copy_on_write() {
    let house = House::open().await;
    if !copied(&house, "echo x >file").await {
        return;
    }
    let running = house.start(bash(2, "read -r it")).await;
    let refused = in_time(house.runtime.start(bash(2, "true"))).await;
    assert!(matches!(refused, Err(Error::BadLaunch(_))));
    in_time(running.life.kill()).await;
    assert_eq!(in_copy(&house, "cat file").await.0, "x\n");
}

/// Attempts to gain privileges, first in the workspace and then in the copy.
#[tokio::test]
async fn the_walls_of_a_copy_on_write_are_the_same() {
    let house = House::open().await;
    let secret = house.data.path().join("secret");
    fs::write(&secret, "hush").unwrap();
    let make = "mkdir d e; echo x >file; \
        for name in redirect opaque metacopy origin; do \
          python3 -c \"import os; os.setxattr('d', 'user.overlay.$name', b'/../../secret'); \
            os.setxattr('file', 'user.overlay.$name', b'/../../secret')\" 2>/dev/null; done; true";
    if !copied(&house, make).await {
        return;
    }
    let script = "set -- /proc/[0-9]*; echo $# processes; \
        grep -c 0000000000000000 <(grep Cap /proc/self/status); id -u; \
        mknod dev c 1 3 2>/dev/null || echo no device; mknod white c 0 0 2>/dev/null; \
        mount -t tmpfs none /mnt 2>/dev/null || echo no mount; umount /workspace 2>/dev/null || echo no end; \
        unshare -U true 2>/dev/null || echo no users; \
        cp /bin/true suid; chmod u+s suid; grep ' /workspace ' /proc/self/mountinfo | grep -c nosuid,nodev; \
        ls d; cat ../secret d/* file 2>/dev/null | grep hush";
    let (said, _) = in_copy(&house, script).await;
    let (plain, _) = house.run(script).await;
    assert!(said.contains(" processes\n5\n65534\nno device\n"), "{said}");
    assert!(said.contains("no mount\nno end\nno users\n1\n"), "{said}");
    assert!(!said.contains("hush"), "{said}");
    assert_eq!(said, plain);
}

#[tokio::test]
async fn what_a_copy_on_write_takes_is_bounded() {
    let house = House::open().await;
    if !copied(&house, "head -c 1M /dev/zero >file").await {
        return;
    }
    let mut launch = bash(
        2,
        "for n in 1 2 3 4 5 6 7 8; do head -c 1M /dev/zero >$n; done; read -r it",
    );
    launch.bounds.workspace_bytes = 4 * MB;
    let running = house.start(launch).await;
    let ended = in_time(running.life.ended()).await;
    assert_eq!(ended, ProgramEnd::OverWorkspace(4 * MB));
    let (said, _) = house.run("ls").await;
    assert_eq!(said, "file\n");
}

#[tokio::test]
async fn where_overlays_are_not_wanted_every_file_is_copied() {
    let house = House::without_overlays().await;
    assert!(!copied(&house, "echo x >file").await);
    let (said, _) = in_copy(&house, "cat file; echo y >file").await;
    assert_eq!(said, "x\n");
    assert_eq!(house.run("cat file").await.0, "x\n");
}
