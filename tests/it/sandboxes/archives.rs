//! A workspace becomes an archive, and an archive a workspace, in every kind of sandbox.

use sepal::sandbox::archiving::{ArchiveError, PackedWorkspace, pack, unpack};
use sepal::sandbox::{Bounds, Docker, DockerSettings, Launch, Runtime as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::copies::LOOK;
use super::house::{House, in_time};
use super::on_every_runtime;
use crate::support::Door;

on_every_runtime!(a_workspace_comes_out_of_its_archive_as_it_was);

const SMALL: u64 = 100_000;

fn small() -> Bounds {
    Bounds {
        workspace_bytes: SMALL,
        ..Bounds::default()
    }
}

async fn packed(house: &House, bounds: Bounds) -> Result<(PackedWorkspace, Vec<u8>), ArchiveError> {
    let (sandbox, mut archive) = (house.sandbox(1), Vec::new());
    let packing = pack(&*house.runtime, &sandbox, bounds, &mut archive);
    let packed = in_time(packing).await?;
    Ok((packed, archive))
}

async fn unpacked(
    house: &House,
    number: u128,
    bounds: Bounds,
    mut archive: &[u8],
    bytes: usize,
) -> Result<(), ArchiveError> {
    let (sandbox, bytes) = (house.sandbox(number), bytes as u64);
    let unpacking = unpack(&*house.runtime, &sandbox, bounds, &mut archive, bytes);
    in_time(unpacking).await
}

async fn a_workspace_comes_out_of_its_archive_as_it_was(house: House) {
    let made = "mkdir -p a/b 'odd name'; echo hello >a/b/file; head -c 300000 /dev/urandom >big; \
                echo x >run; chmod 750 run; touch -d 2001-02-03 run; ln -s /etc/passwd out; \
                ln -s ../../.. up; mkfifo pipe; truncate -s 50M hole; chmod 555 a/b";
    house.run(made).await;
    let (first, _) = house.run(LOOK).await;
    // What its own user may not read is named, and the rest is packed.
    house.run("echo x >shut; chmod 000 shut").await;
    let (packed_as, archive) = packed(&house, Bounds::default()).await.unwrap();
    assert_eq!(packed_as.bytes, archive.len() as u64);
    assert!((300_000..1_000_000).contains(&archive.len()));
    let [unreadable] = packed_as.unreadable.as_slice() else {
        panic!("{packed_as:?}");
    };
    assert!(unreadable.contains("./shut"), "{unreadable}");

    let bytes = archive.len();
    unpacked(&house, 2, Bounds::default(), &archive, bytes)
        .await
        .unwrap();
    let (second, _) = house.run_launch(house.bash(2, LOOK)).await;
    assert_eq!(second, first);

    let refused = packed(&house, small()).await.unwrap_err();
    assert!(matches!(refused, ArchiveError::TooLarge(SMALL)));
    let refused = [
        unpacked(&house, 3, small(), &archive, bytes).await,
        // It ends between two files, as far as tar can tell.
        unpacked(&house, 4, Bounds::default(), &archive[..512], bytes).await,
        unpacked(&house, 5, Bounds::default(), &archive[..bytes / 2], bytes).await,
        unpacked(&house, 6, Bounds::default(), &[b'x'; 2048], 2048).await,
    ];
    for refused in refused {
        assert!(
            matches!(
                refused,
                Err(ArchiveError::TooLarge(_) | ArchiveError::Incomplete(_))
            ),
            "{refused:?}"
        );
    }
    house.close().await;
}

/// A gateway without others takes every container of its installation for a leftover.
#[tokio::test]
async fn the_janitor_of_a_gateway_leaves_a_command_beside_it_alone() {
    let house = House::docker(Door::Direct).await;
    house.run("echo kept >file").await;
    let beside = Docker::open(DockerSettings {
        is_beside: true,
        ..house.docker_settings()
    });
    let beside = in_time(beside).await.unwrap();
    assert_eq!(beside.workspaces().await.unwrap(), [house.sandbox(1)]);
    let launch = Launch {
        server: "beside".to_owned(),
        ..house.bash(1, "read -r word; cat file; echo $word")
    };
    let mut running = in_time(beside.start(launch)).await.unwrap();
    assert_eq!(in_time(house.runtime.tidy()).await.unwrap(), 0);
    running.stdin.write_all(b"alive\n").await.unwrap();
    let mut said = String::new();
    in_time(running.stdout.read_to_string(&mut said))
        .await
        .unwrap();
    assert_eq!(said, "kept\nalive\n");
    in_time(running.life.ended()).await;
    in_time(beside.close()).await;
    house.close().await;
}
