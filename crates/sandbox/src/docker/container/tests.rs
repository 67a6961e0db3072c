//! Tests the whole requests to the engine.

use std::time::Duration;

use super::*;
use crate::Bounds;
use sepal_core::domain::AllowedHosts;
use sepal_net::{Egress, Guard, Reach};

fn launch(program: Program, workspace: Access) -> Launch {
    Launch {
        sandbox: SandboxId::from_bits(7),
        packages: Packages::None,
        holder: None,
        server: "git/hub one".to_owned(),
        program,
        environment: BTreeMap::from([("TOKEN".to_owned(), "hush".to_owned())]),
        workspace,
        egress: None,
        bounds: Bounds::default(),
    }
}

fn bundled() -> Program {
    Program::Bundled {
        command_timeout: Duration::from_secs(30),
        output_bytes: 1 << 20,
    }
}

fn body(launch: &Launch) -> ContainerCreateBody {
    wrapped(launch, None)
}

fn wrapped(launch: &Launch, wrapped: Option<&WrappedImage>) -> ContainerCreateBody {
    let gateway = GatewayId::from("first");
    let plan = Plan {
        launch,
        installation: "house",
        gateway: &gateway,
        image: "sepal/sandbox:1",
        packages_image: "sepal/packages:1",
        runtime: None,
        wrapped,
        is_beside: false,
    };
    plan.body()
}

/// Snapshots the whole request, so that a removed restriction shows in this file's history.
#[test]
fn what_the_engine_is_asked_for_the_bundled_server() {
    let body = body(&launch(bundled(), Access::ReadWrite));
    // Maps in it have no order of their own.
    let ordered = serde_json::to_value(&body).unwrap();
    insta::assert_json_snapshot!(ordered);
}

#[test]
fn names_are_of_the_contract_and_cannot_be_abused() {
    let bundled = launch(bundled(), Access::ReadWrite);
    let sandbox = bundled.sandbox.clone();
    assert_eq!(name(&bundled), format!("sepal-sb-{sandbox}"));
    let other = launch(Program::Command(vec!["x".to_owned()]), Access::None);
    assert_eq!(name(&other), format!("sepal-sb-{sandbox}-githubone"));
    assert_eq!(volume(&sandbox), format!("sepal-ws-{sandbox}"));
    assert_eq!(sandbox_of_volume(&volume(&sandbox)), Some(sandbox));
    assert_eq!(sandbox_of_volume("sepal-ws-../../etc"), None);
}

#[test]
fn the_workspace_is_mounted_as_the_launch_says() {
    let mount = |access| {
        let body = body(&launch(bundled(), access));
        let mounts = body.host_config.unwrap().mounts.unwrap_or_default();
        mounts.first().map(|mount| mount.read_only)
    };
    assert_eq!(mount(Access::None), None);
    assert_eq!(mount(Access::ReadOnly), Some(Some(true)));
    assert_eq!(mount(Access::ReadWrite), Some(Some(false)));
}

#[test]
fn an_image_keeps_its_entry_point_and_gets_the_same_walls() {
    let program = Program::Image {
        image: "mcp/time".to_owned(),
        arguments: vec!["--utc".to_owned()],
    };
    let foreign = body(&launch(program, Access::None));
    let own = body(&launch(bundled(), Access::None));
    assert_eq!(foreign.image.as_deref(), Some("mcp/time"));
    assert_eq!((foreign.entrypoint, foreign.working_dir), (None, None));
    assert_eq!(foreign.user, own.user);
    let walls = |body: Option<HostConfig>| HostConfig {
        init: None,
        ..body.unwrap()
    };
    assert_eq!(walls(foreign.host_config), walls(own.host_config));
}

#[test]
fn the_program_of_an_image_that_may_reach_hosts_runs_in_our_tunnel() {
    let told = WrappedImage {
        programs: SandboxId::from_bits(9),
        own: OwnCommand {
            entrypoint: vec!["/serve".to_owned(), "--stdio".to_owned()],
            arguments: vec!["--quiet".to_owned()],
        },
    };
    let check = |arguments: &[&str], expected: &[&str]| {
        let program = Program::Image {
            image: "mcp/fetch".to_owned(),
            arguments: arguments.iter().copied().map(str::to_owned).collect(),
        };
        let hosts = AllowedHosts::parse(["example.com"]).unwrap();
        let egress = Egress::new(hosts, Reach::Public, Guard::default());
        let launch = Launch {
            egress: Some(egress),
            ..launch(program, Access::None)
        };
        let body = wrapped(&launch, Some(&told));
        assert_eq!(body.image.as_deref(), Some("mcp/fetch"));
        assert_eq!(body.entrypoint.unwrap(), [SERVER]);
        assert_eq!(body.cmd.unwrap(), expected);
        let walls = body.host_config.unwrap();
        assert_eq!(
            (walls.init, walls.network_mode.as_deref()),
            (Some(false), Some("none"))
        );
        let mounts = walls.mounts.unwrap();
        assert_eq!(mounts.len(), 1);
        assert_eq!(mounts[0].source, Some(volume(&told.programs)));
        assert_eq!(mounts[0].target.as_deref(), Some("/sepal"));
        assert_eq!(mounts[0].read_only, Some(true));
        let no_copy = mounts[0].volume_options.as_ref().and_then(|it| it.no_copy);
        assert_eq!(no_copy, Some(true));
    };
    check(&[], &["tunnel", "--", "/serve", "--stdio", "--quiet"]);
    check(&["--utc"], &["tunnel", "--", "/serve", "--stdio", "--utc"]);
}

#[test]
fn only_our_own_image_fills_the_volume_of_our_programs() {
    let image = Program::Image {
        image: "mcp/fetch".to_owned(),
        arguments: Vec::new(),
    };
    let launch = launch(image, Access::ReadWrite);
    let gateway = GatewayId::from("first");
    let plan = Plan {
        launch: &launch,
        installation: "house",
        gateway: &gateway,
        image: "sepal/sandbox:1",
        packages_image: "sepal/packages:1",
        runtime: None,
        wrapped: None,
        is_beside: false,
    };
    let beside = Plan {
        is_beside: true,
        ..plan
    };
    assert_eq!(
        beside.body().labels.unwrap()[INSTALLATION],
        "house-beside",
        "no janitor of a gateway sees it"
    );
    assert_eq!(beside.labels()[INSTALLATION], "house");
    let programs = SandboxId::from_bits(9);
    let body = plan.filling(&programs);
    assert_eq!(body.image.as_deref(), Some("sepal/sandbox:1"));
    assert_eq!(body.labels.unwrap()[SANDBOX], programs.as_str());
    let mounts = body.host_config.unwrap().mounts.unwrap();
    assert_eq!(mounts.len(), 1);
    assert_eq!(mounts[0].source, Some(volume(&programs)));
    assert_eq!(mounts[0].volume_options, None);
}
