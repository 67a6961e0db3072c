//! Programs of other people's images, which have nothing of ours, reach listed hosts too.

use std::process::Command;

use sepal::net::{Egress, Reach};
use sepal::sandbox::{Access, Launch, Program, ProgramEnd};
use tempfile::TempDir;

use super::super::house::House;
use super::site::Site;
use super::{CLIENT, egress};
use crate::support::{Door, behind_each_door, docker};

behind_each_door!(
    a_program_of_an_image_reaches_listed_hosts_alone,
    an_image_brings_nothing_into_what_others_see,
    an_image_that_says_nothing_to_run_is_told_so,
);

/// An image without our programs; it goes with this.
struct Foreign {
    name: String,
}

impl Foreign {
    /// The system of the tests, with these words of a Dockerfile.
    fn make(changes: &[&str], also: &str) -> Self {
        let (host, folder) = (docker::address(), TempDir::new().unwrap());
        let file = folder.path().join("system.tar");
        let file = file.to_str().unwrap();
        let name = format!("sepal-test-foreign:{:08x}", rand::random::<u32>());
        // Removed by the container itself: `tar --delete` breaks archives whose removed member has an odd size.
        let image = docker::image();
        let rm = [
            "--user",
            "0",
            "--entrypoint",
            "/bin/rm",
            image.as_str(),
            "-r",
            "/sepal",
        ];
        let made = docker::lines(&host, &[&["create", "--network", "none"][..], &rm].concat());
        docker::lines(&host, &["start", "--attach", &made[0]]);
        docker::lines(&host, &["export", "--output", file, &made[0]]);
        docker::lines(&host, &["rm", &made[0]]);
        if !also.is_empty() {
            let place = folder.path().join("sepal");
            std::fs::create_dir(&place).unwrap();
            std::fs::write(place.join("mcp-server"), also).unwrap();
            let root = folder.path().to_str().unwrap();
            tar(&[
                "--append",
                "--mode=755",
                "--file",
                file,
                "-C",
                root,
                "sepal",
            ]);
        }
        let changes = changes.iter().flat_map(|change| ["--change", change]);
        let words: Vec<_> = ["import"].into_iter().chain(changes).collect();
        docker::lines(&host, &[&words[..], &[file, &name]].concat());
        Self { name }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        docker::docker(&docker::address(), &["rmi", "--force", &self.name]);
    }
}

fn tar(arguments: &[&str]) {
    let done = Command::new("tar").args(arguments).status().unwrap();
    assert!(done.success(), "tar {arguments:?}");
}

fn launch(house: &House, image: &Foreign, arguments: &[&str], egress: Option<&Egress>) -> Launch {
    Launch {
        program: Program::Image {
            image: image.name.clone(),
            arguments: arguments.iter().copied().map(str::to_owned).collect(),
        },
        workspace: Access::None,
        egress: egress.cloned(),
        ..house.bash(1, "")
    }
}

async fn a_program_of_an_image_reaches_listed_hosts_alone(door: Door) {
    let entry = r#"ENTRYPOINT ["/bin/bash", "-c"]"#;
    let image = Foreign::make(&[entry, r#"CMD ["echo by itself; ls /sepal"]"#], "");
    let (house, site, other) = (
        House::docker(door).await,
        Site::start().await,
        Site::start().await,
    );
    let host = format!("localhost:{}", site.port);
    let allowed = egress(Reach::Private, &[&host]);
    let asked = format!("{CLIENT} get {host}; get localhost:{}", other.port);
    let (said, ended) = house
        .run_launch(launch(&house, &image, &[&asked], Some(&allowed)))
        .await;
    assert_eq!(ended, ProgramEnd::Exited(0), "{said}");
    assert!(said.contains(&format!("I am / of {host}")), "{said}");
    let refused = format!("may not reach localhost:{}", other.port);
    assert!(said.contains(&refused), "{said}");
    assert_eq!((site.visits(), other.visits()), (1, 0));
    // What the image runs by itself, where no arguments are given; there it sees our program.
    let (said, ended) = house
        .run_launch(launch(&house, &image, &[], Some(&allowed)))
        .await;
    assert_eq!(ended, ProgramEnd::Exited(0), "{said}");
    assert!(
        said.contains("by itself") && said.contains("mcp-server"),
        "{said}"
    );
    // Without hosts nothing of ours is in it.
    let (said, ended) = house.run_launch(launch(&house, &image, &[], None)).await;
    assert_ne!(ended, ProgramEnd::Exited(0), "{said}");
    assert!(
        said.contains("by itself") && !said.contains("mcp-server"),
        "{said}"
    );
    house.close().await;
}

/// An image with a program of that name in our place must not become everybody's tunnel.
async fn an_image_brings_nothing_into_what_others_see(door: Door) {
    let entry = r#"ENTRYPOINT ["/bin/bash", "-c", "echo I am the image"]"#;
    let image = Foreign::make(&[entry], "#!/bin/bash\necho I took over\n");
    let house = House::docker(door).await;
    let allowed = egress(Reach::Private, &["localhost:1"]);
    for _ in 0..2 {
        let (said, ended) = house
            .run_launch(launch(&house, &image, &[], Some(&allowed)))
            .await;
        assert_eq!(ended, ProgramEnd::Exited(0), "{said}");
        assert!(said.contains("I am the image"), "{said}");
        assert!(!said.contains("I took over"), "{said}");
    }
    house.close().await;
}

async fn an_image_that_says_nothing_to_run_is_told_so(door: Door) {
    let (image, house) = (Foreign::make(&[], ""), House::docker(door).await);
    let allowed = egress(Reach::Private, &["localhost:1"]);
    let starting = house
        .runtime
        .start(launch(&house, &image, &[], Some(&allowed)));
    let said = starting.await.map(|_| ()).unwrap_err().to_string();
    assert!(
        said.contains("neither an entry point nor a command"),
        "{said}"
    );
    assert!(said.contains("`args`"), "{said}");
    house.close().await;
}
