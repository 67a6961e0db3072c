//! A workspace becomes another's, in every kind of sandbox.

use std::time::Duration;

use sepal::sandbox::{Bounds, CopyOrder, CopyResult, CopyWatch, CopyWay};

use super::house::{House, in_time};
use super::on_every_runtime;
use crate::support::Door;

on_every_runtime!(
    a_copy_is_the_same_and_goes_its_own_way,
    what_is_too_large_or_not_there_leaves_nothing,
);

/// What a workspace looks like from inside: kinds, modes, owners, times, sizes, targets, contents.
pub(super) const LOOK: &str = "find . -mindepth 1 -printf '%P %y %m %U:%G %TY-%Tm-%Td %s %l\\n' | grep -v ' d ' | sort; \
                    find . -type d -printf '%P %m %U\\n' | sort; \
                    find . -type f -exec sha256sum {} + | sort";

fn order(house: &House, from: u128, to: u128, bounds: Bounds) -> CopyOrder {
    CopyOrder {
        from: house.sandbox(from),
        to: house.sandbox(to),
        bounds,
        way: CopyWay::Whole,
        watch: CopyWatch::default(),
    }
}

async fn a_copy_is_the_same_and_goes_its_own_way(house: House) {
    same_and_own(&house).await;
    house.close().await;
}

async fn same_and_own(house: &House) {
    let made = "mkdir -p a/b 'odd name'; echo hello >a/b/file; head -c 300000 /dev/urandom >big; \
                echo x >run; chmod 750 run; touch -d 2001-02-03 run; ln -s /etc/passwd out; \
                ln -s ../../.. up; mkfifo pipe; truncate -s 50M hole; echo made";
    let (said, _) = house.run(made).await;
    assert_eq!(said, "made\n");
    let (first, _) = house.run(LOOK).await;
    let copied = house
        .runtime
        .copy_workspace(order(house, 1, 2, Bounds::default()));
    let copied = in_time(copied).await.unwrap();
    assert!(
        matches!(copied, CopyResult::Whole(bytes) if (300_000..3_000_000).contains(&bytes)),
        "{copied:?}"
    );
    let (second, _) = house.run_launch(house.bash(2, LOOK)).await;
    assert_eq!(second, first);
    assert!(first.contains("out l 777 65534:65534"), "{first}");

    let change = "rm big && echo other >run && echo mine >new && cat run";
    let (said, _) = house.run_launch(house.bash(2, change)).await;
    assert_eq!(said, "other\n");
    let (first_again, _) = house.run(LOOK).await;
    assert_eq!(first_again, first);
}

async fn what_is_too_large_or_not_there_leaves_nothing(house: House) {
    house.run("head -c 3000000 /dev/urandom >big").await;
    let before = house.runtime.workspaces().await.unwrap();
    let small = Bounds {
        workspace_bytes: 1 << 20,
        ..Bounds::default()
    };
    let tell = async |order| in_time(house.runtime.copy_workspace(order)).await.unwrap();
    assert_eq!(tell(order(&house, 1, 2, small)).await, CopyResult::TooLarge);
    let missing = order(&house, 7, 3, Bounds::default());
    assert_eq!(tell(missing).await, CopyResult::Missing);
    assert_eq!(house.runtime.workspaces().await.unwrap(), before);
    house.close().await;
}

/// Where the engine's folders cannot be seen, also behind the filter.
#[tokio::test]
async fn a_copy_goes_through_containers_where_no_folder_is_seen() {
    for door in [Door::Direct, Door::Proxied] {
        let house = House::docker_with(door, |it| {
            it.counts_by_runs = Some(Duration::from_mins(10));
        })
        .await;
        same_and_own(&house).await;
        house.run("head -c 3000000 /dev/urandom >more").await;
        let small = Bounds {
            workspace_bytes: 1 << 20,
            ..Bounds::default()
        };
        let copied = house.runtime.copy_workspace(order(&house, 1, 3, small));
        assert_eq!(in_time(copied).await.unwrap(), CopyResult::TooLarge);
        let left = house.runtime.workspaces().await.unwrap();
        assert!(!left.contains(&house.sandbox(3)), "{left:?}");
        house.close().await;
    }
}

/// Nobody waits for it any more: nothing of it is left.
#[tokio::test]
async fn a_copy_that_is_given_up_leaves_nothing() {
    for (name, house) in [
        ("bubblewrap", House::bubblewrap().await),
        ("docker", House::docker(Door::Direct).await),
    ] {
        house
            .run("for n in $(seq 500); do head -c 100000 /dev/urandom >f$n; done")
            .await;
        let giving_up = order(&house, 1, 2, Bounds::default());
        let watch = giving_up.watch.clone();
        let copying = house.runtime.copy_workspace(giving_up);
        let stopped = async {
            while watch.bytes() < 100_000 {
                tokio::task::yield_now().await;
            }
            watch.stop();
        };
        let (copied, ()) = in_time(async { tokio::join!(copying, stopped) }).await;
        assert!(copied.is_err(), "{name}: {copied:?}");
        let left = house.runtime.workspaces().await.unwrap();
        assert!(!left.contains(&house.sandbox(2)), "{name}: {left:?}");
        house.close().await;
    }
}
