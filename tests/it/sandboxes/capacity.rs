//! How many run at once, and how long nobody may use one.

use std::sync::Arc;
use std::time::Duration;

use sepal::domain::{Holder, Most, ShareLevel, TenantId, UserId};
use sepal::sandbox::{
    Bounds, Capacity, DiskMonitor, Error, Launch, ProgramEnd, Room, Running, Runtime,
};

use super::house::{House, in_time};
use super::on_every_runtime;
use crate::support::docker::named;
use crate::support::{Door, until};

on_every_runtime!(
    a_full_house_ends_what_lies_idle_longest_and_else_waits_and_says_what_to_set,
    who_has_a_share_leaves_room_for_others_and_gives_idle_ones_up_first,
    what_nobody_uses_ends_after_its_time_and_a_use_renews_it,
);

/// Long enough for a start on a busy machine.
const PATIENCE: Duration = Duration::from_millis(700);

fn in_all(max: u64) -> Most {
    Most {
        all: Some(max),
        ..Most::default()
    }
}

fn room(house: &House, max: u64, idle: Duration) -> Capacity {
    let room = Room {
        most: in_all(max),
        idle,
        patience: PATIENCE,
    };
    Capacity::new(Arc::clone(&house.plain), room, DiskMonitor::off())
}

async fn start(runtime: &Capacity, launch: Launch) -> Running {
    in_time(runtime.start(launch)).await.unwrap()
}

async fn a_full_house_ends_what_lies_idle_longest_and_else_waits_and_says_what_to_set(
    house: House,
) {
    let full = room(&house, 2, Duration::from_hours(1));
    let sleeps = |number| house.bash(number, "sleep 1000");
    let mut first = start(&full, sleeps(1)).await;
    let mut second = start(&full, sleeps(2)).await;
    // Both were started for somebody, who has not let go.
    let uses = (first.life.using().unwrap(), second.life.using().unwrap());
    let error = in_time(full.start(sleeps(3))).await.unwrap_err();
    let Error::Full(reached) = &error else {
        panic!("{error}");
    };
    assert_eq!((reached.whose, reached.most), (ShareLevel::All, 2));
    assert!(error.to_string().contains("SPL_SANDBOX_MAX"), "{error}");
    assert!(!first.life.has_ended() && !second.life.has_ended());

    // The second was used last, so the first goes.
    drop(uses.0);
    drop(uses.1);
    let mut third = start(&full, sleeps(3)).await;
    assert_eq!(in_time(first.life.ended()).await, ProgramEnd::Killed);
    assert!(first.life.using().is_none(), "a call has to start it again");
    assert!(!second.life.has_ended());

    // A start that waits goes on as soon as somebody lets go.
    let third_used = third.life.using().unwrap();
    let second_used = second.life.using().unwrap();
    let letting_go = async {
        // Nobody has room before that.
        tokio::task::yield_now().await;
        drop(second_used);
    };
    let (fourth, ()) = tokio::join!(full.start(sleeps(4)), letting_go);
    assert!(second.life.has_ended() && !third.life.has_ended());
    drop((fourth.unwrap(), third_used, third));
    in_time(full.close()).await;
    house.close().await;
}

async fn who_has_a_share_leaves_room_for_others_and_gives_idle_ones_up_first(house: House) {
    let shared = Room {
        most: Most {
            all: Some(4),
            per_tenant: Some(3),
            per_user: Some(2),
        },
        idle: Duration::from_hours(1),
        patience: PATIENCE,
    };
    let full = Capacity::new(Arc::clone(&house.plain), shared, DiskMonitor::off());
    let of = |tenant: u128, user: u128, number| Launch {
        holder: Some(Holder {
            tenant: TenantId::from_bits(tenant),
            user: UserId::from_bits(user),
        }),
        ..house.bash(number, "sleep 1000")
    };
    let refused = async |launch| {
        let refused = in_time(full.start(launch)).await.unwrap_err();
        let Error::Full(reached) = refused else {
            panic!("{refused}");
        };
        (reached.whose, reached.most)
    };
    // Ana takes her two, Ben the one that is left to their tenant, Dan of another one the last.
    let mut ana = start(&full, of(1, 1, 1)).await;
    let mut anas = start(&full, of(1, 1, 2)).await;
    let uses = (ana.life.using().unwrap(), anas.life.using().unwrap());
    assert_eq!(refused(of(1, 1, 3)).await, (ShareLevel::User, 2));
    let mut ben = start(&full, of(1, 2, 4)).await;
    let bens = ben.life.using().unwrap();
    assert_eq!(refused(of(1, 2, 5)).await, (ShareLevel::Tenant, 3));
    let mut dan = start(&full, of(2, 3, 6)).await;
    let dans = dan.life.using().unwrap();
    assert_eq!(refused(of(2, 3, 7)).await, (ShareLevel::All, 4));

    // Who wants more gives up an idle one of their own, and nobody else does.
    drop((uses.0, dans));
    let mut third = start(&full, of(1, 1, 3)).await;
    assert_eq!(in_time(ana.life.ended()).await, ProgramEnd::Killed);
    let thirds = third.life.using().unwrap();
    assert!(!dan.life.has_ended());

    // For somebody new the idle one of whoever has the most goes, though another lies idle longer.
    drop(uses.1);
    let cy = start(&full, of(3, 4, 8)).await;
    assert_eq!(in_time(anas.life.ended()).await, ProgramEnd::Killed);
    assert!(!dan.life.has_ended() && !third.life.has_ended());
    drop((cy, dan, bens, ben, thirds, third, anas, ana));
    in_time(full.close()).await;
    house.close().await;
}

/// Asserts O6.
async fn what_nobody_uses_ends_after_its_time_and_a_use_renews_it(house: House) {
    let idle = Duration::from_millis(400);
    let runtime = room(&house, 9, idle);
    let script = "echo kept > kept; echo ready; sleep 1000";
    let mut running = start(&runtime, house.bash(1, script)).await;
    // A call that takes longer than the limit.
    let long_call = running.life.using().unwrap();
    let ended = in_time(tokio::time::timeout(3 * idle, running.life.ended())).await;
    assert!(ended.is_err(), "somebody uses it");
    drop(long_call);
    drop(running.life.using().unwrap());
    let let_go = std::time::Instant::now();
    assert_eq!(in_time(running.life.ended()).await, ProgramEnd::Killed);
    assert!(let_go.elapsed() >= idle, "{:?}", let_go.elapsed());
    // The files are there for the next one.
    let (said, _) = house.run_launch(house.bash(1, "cat kept")).await;
    assert_eq!(said, "kept\n");
    in_time(runtime.close()).await;
    house.close().await;
}

#[tokio::test]
async fn warm_sandboxes_count_and_are_given_up_first() {
    let house = House::docker_with(Door::Direct, |settings| settings.pool_size = 2).await;
    // A warm one that is just being started is waited for.
    let plenty = Room {
        most: in_all(2),
        idle: Duration::from_hours(1),
        patience: Duration::from_secs(30),
    };
    let full = Capacity::new(Arc::clone(&house.plain), plenty, DiskMonitor::off());
    let label = format!("sepal.installation={}", house.installation);
    let mut first = start(&full, house.bundled(1)).await;
    let first_used = first.life.using().unwrap();
    // The pool would have two, and there is room for one.
    let all = label.clone();
    until("one is warm", move || named("container", &all).len() == 2).await;
    assert_eq!(house.plain.warm().len(), 1);
    let mut second = start(&full, house.bundled(2)).await;
    let second_used = second.life.using().unwrap();
    assert!(!first.life.has_ended(), "the warm one went");
    assert!(house.plain.warm().is_empty());
    let mut names = named("container", &label);
    names.sort();
    let expected = [1, 2].map(|number| format!("sepal-sb-{}", house.sandbox(number)));
    assert_eq!(names, expected);
    assert_eq!(named("volume", &label).len(), 2, "its volume went with it");
    drop((first_used, second_used, first, second));
    in_time(full.close()).await;
    house.close().await;
}

/// As a gateway in a container or beside a rootless engine has to.
#[tokio::test]
async fn a_workspace_that_cannot_be_seen_is_counted_by_runs() {
    let pace = Duration::from_millis(200);
    let house = House::docker_with(Door::Direct, |settings| {
        settings.counts_by_runs = Some(pace);
    })
    .await;
    let script = "for number in $(seq 400); do head -c 500000 /dev/zero > $number; sleep 0.1; done";
    let launch = Launch {
        bounds: Bounds {
            workspace_bytes: 4 << 20,
            ..Bounds::default()
        },
        ..house.bash(1, script)
    };
    let (_, ended) = house.run_launch(launch.clone()).await;
    assert_eq!(ended, ProgramEnd::OverWorkspace(4 << 20));
    assert!(ended.to_string().contains("files must be deleted first"));
    // The next one starts, so that files can be deleted.
    let tidy = Launch {
        program: house.bash(1, "rm -f *; echo free").program,
        ..launch
    };
    let (said, ended) = house.run_launch(tidy).await;
    assert_eq!((said.as_str(), ended), ("free\n", ProgramEnd::Exited(0)));
    let label = format!("sepal.installation={}", house.installation);
    until("nothing that counted is left", move || {
        named("container", &label).is_empty()
    })
    .await;
    house.close().await;
}

/// The same rules hold there: files without content count, and what is far too much is deleted.
#[tokio::test]
async fn where_runs_count_empty_files_count_and_what_is_far_too_much_goes() {
    let house = House::docker_with(Door::Proxied, |settings| {
        settings.counts_by_runs = Some(Duration::from_millis(200));
    })
    .await;
    let bounds = Bounds {
        workspace_bytes: 4 << 20,
        ..Bounds::default()
    };
    let bash = |script| Launch {
        bounds,
        ..house.bash(1, script)
    };
    let script = "mkdir empty; cd empty; seq 12000 | xargs touch; sleep 1000";
    let (said, ended) = house.run_launch(bash(script)).await;
    assert_eq!(ended, ProgramEnd::OverWorkspace(4 << 20), "{said}");
    let script =
        "rm -rf empty; echo kept >kept; sleep 2; : >big; fallocate -n -l 40M big; sleep 1000";
    let (said, ended) = house.run_launch(bash(script)).await;
    assert_eq!(ended, ProgramEnd::OverWorkspace(4 << 20), "{said}");
    let looking = async { while house.run_launch(bash("ls")).await.0 != "kept\n" {} };
    in_time(looking).await;
    house.close().await;
}
