//! Writes the request for a sandbox's container. Its restrictions come from this template, not from the
//! request.

#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Labels, compare::compare, labels, read};
use crate::{
    name::{self, ContainerName},
    refusal::Refusal,
    settings::Settings,
};

/// The size of `/tmp` and of `/dev/shm`; both count as memory.
const TEMPORARY_BYTES: i64 = 64 << 20;
/// The most open files of one process.
const MAX_OPEN_FILES: i64 = 1024;
/// The mount point of a workspace.
const WORKSPACE: &str = "/workspace";
/// The mount point of packages that were installed in another sandbox, read-only.
const PACKAGES: &str = "/packages";
/// The folder of Sepal's programs in the sandboxes' own image, and the mount point of a volume with them,
/// read-only. No other mount points are allowed.
const PROGRAMS: &str = "/sepal";

/// The fields of a request that are used.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct ContainerRequest {
    image: String,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    env: Option<Vec<String>>,
    labels: Labels,
    working_dir: Option<String>,
    host_config: AskedWalls,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct AskedWalls {
    memory: Option<i64>,
    nano_cpus: Option<i64>,
    pids_limit: Option<i64>,
    ulimits: Option<Vec<AskedUlimit>>,
    mounts: Option<Vec<AskedMount>>,
    init: Option<bool>,
    network_mode: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct AskedUlimit {
    name: String,
    hard: i64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct AskedMount {
    source: String,
    target: String,
    read_only: bool,
    volume_options: Option<AskedVolumeOptions>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct AskedVolumeOptions {
    no_copy: bool,
}

/// A container that may be created.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) body: Value,
    /// The volumes that it mounts, which have to be ours.
    pub(crate) volumes: Vec<String>,
}

/// Writes the request that creates the container of that name.
pub(crate) fn container(
    name: &ContainerName,
    body: &[u8],
    settings: &Settings,
) -> Result<Container, Refusal> {
    let (whole, asked) = read::<ContainerRequest>(body)?;
    if !name::is_image(&asked.image) || !settings.allows_image(&asked.image) {
        let remedy = "the proxy does not allow this image (`--image`, `--allow-image`)";
        return Err(Refusal::field("Image", remedy));
    }
    let labels = labels(asked.labels.clone(), &name.sandbox, &settings.label)?;
    let inside = if name.measures {
        measuring(&asked, settings)?
    } else {
        ordinary(&asked, settings)?
    };
    let seen = MountedVolumes::of(&asked, name)?;
    let made = json!({
        "Hostname": "sandbox",
        "User": inside.user,
        "Image": asked.image,
        "Entrypoint": inside.entrypoint,
        "Cmd": inside.command,
        "Env": inside.environment,
        "WorkingDir": working_dir(asked.working_dir.as_deref())?,
        "Labels": labels,
        "AttachStdin": true,
        "AttachStdout": true,
        "AttachStderr": true,
        "OpenStdin": true,
        "StdinOnce": true,
        "Tty": false,
        "StopTimeout": 1,
        "NetworkDisabled": inside.network == "none",
        "HostConfig": walls(&asked.host_config, &inside, settings)?,
    });
    let made = with_mounts(made, seen.mounts(&asked, &inside, &labels, settings));
    compare(&whole, &made)?;
    Ok(Container {
        body: made,
        volumes: seen.volumes(),
    })
}

/// The values that may differ behind the same restrictions.
struct Inside {
    user: &'static str,
    entrypoint: Option<Vec<String>>,
    command: Option<Vec<String>>,
    environment: Option<Vec<String>>,
    rights: &'static [&'static str],
    network: String,
    is_read_only: bool,
}

/// Allows any program: the restrictions contain it.
fn ordinary(asked: &ContainerRequest, settings: &Settings) -> Result<Inside, Refusal> {
    let allowed = settings.network.as_deref();
    let network = match asked.host_config.network_mode.as_deref() {
        None => "none",
        Some(network) if network == "none" || Some(network) == allowed => network,
        Some(_) => {
            let remedy = "it has to be `none`, or the network of `--network`";
            return Err(Refusal::field("HostConfig.NetworkMode", remedy));
        }
    };
    let mounts = asked.host_config.mounts.iter().flatten();
    let mut mounts = mounts.filter(|it| is_workspace(it));
    Ok(Inside {
        user: "65534:65534",
        entrypoint: asked.entrypoint.clone(),
        command: asked.cmd.clone(),
        environment: asked.env.clone(),
        rights: &[],
        network: network.to_owned(),
        is_read_only: mounts.any(|it| it.read_only),
    })
}

/// Allows only the measuring of a workspace, which runs as root with the right to read every folder. With
/// that right, an arbitrary program could open files of the machine by their inode number; so only the
/// sandboxes' own image may have it, and runs nothing but this `find`.
fn measuring(asked: &ContainerRequest, settings: &Settings) -> Result<Inside, Refusal> {
    if asked.image != settings.image {
        let remedy = "only the sandboxes' own image (`--image`) may count a workspace";
        return Err(Refusal::field("Image", remedy));
    }
    let words = |words: &[&str]| Some(words.iter().copied().map(str::to_owned).collect());
    Ok(Inside {
        user: "0:0",
        entrypoint: words(&["/usr/bin/env"]),
        command: words(&["find", WORKSPACE, "-depth", "-printf", "%d %b\\n"]),
        environment: None,
        rights: &["DAC_READ_SEARCH"],
        network: "none".to_owned(),
        is_read_only: true,
    })
}

fn working_dir(asked: Option<&str>) -> Result<Option<&str>, Refusal> {
    if asked.is_some_and(|it| it != WORKSPACE) {
        let remedy = format!("it has to be `{WORKSPACE}`, or left out");
        return Err(Refusal::field("WorkingDir", remedy));
    }
    Ok(asked)
}

/// Returns all restrictions of the container. Fields that are empty here would be empty anyway; they are
/// explicit so that no default of an engine and no oversight below can fill them.
fn walls(asked: &AskedWalls, inside: &Inside, settings: &Settings) -> Result<Value, Refusal> {
    let most = settings.most;
    let memory = at_most("HostConfig.Memory", asked.memory, most.memory_bytes)?;
    let cpus = at_most("HostConfig.NanoCpus", asked.nano_cpus, most.nano_cpus)?;
    let processes = at_most("HostConfig.PidsLimit", asked.pids_limit, most.processes)?;
    let mut ulimits = asked.ulimits.iter().flatten();
    let file = ulimits.find(|it| it.name == "fsize").map(|it| it.hard);
    let file = at_most("HostConfig.Ulimits.fsize", file, most.file_bytes)?;
    let ulimit = |name, most: i64| json!({ "Name": name, "Soft": most, "Hard": most });
    Ok(json!({
        "Memory": memory,
        // The same value: no swap.
        "MemorySwap": memory,
        "NanoCpus": cpus,
        "PidsLimit": processes,
        "Ulimits": [ulimit("nofile", MAX_OPEN_FILES), ulimit("fsize", file), ulimit("core", 0)],
        "Privileged": false,
        "CapAdd": inside.rights,
        "CapDrop": ["ALL"],
        // The default seccomp profile stays in force as long as no other is named here.
        "SecurityOpt": ["no-new-privileges:true"],
        "NetworkMode": inside.network,
        "ReadonlyRootfs": true,
        "Tmpfs": { "/tmp": format!("rw,exec,nosuid,nodev,size={TEMPORARY_BYTES},mode=1777") },
        "ShmSize": TEMPORARY_BYTES,
        "IpcMode": "private",
        "PidMode": "",
        "UTSMode": "",
        "UsernsMode": "",
        "Binds": [],
        "VolumesFrom": [],
        "Devices": [],
        "DeviceRequests": [],
        "DeviceCgroupRules": [],
        "GroupAdd": [],
        "PortBindings": {},
        "PublishAllPorts": false,
        "Links": [],
        "ExtraHosts": [],
        "Mounts": [],
        // A server's stdout is MCP traffic: a log would fill the engine's disk.
        "LogConfig": { "Type": "none" },
        "AutoRemove": false,
        "RestartPolicy": { "Name": "no" },
        "Init": asked.init.unwrap_or(true),
        "Runtime": settings.runtime.as_deref().unwrap_or_default(),
    }))
}

/// The volumes that a container mounts, each at its one place.
struct MountedVolumes {
    workspace: Option<String>,
    packages: Option<String>,
    programs: Option<String>,
}

impl MountedVolumes {
    fn of(asked: &ContainerRequest, name: &ContainerName) -> Result<Self, Refusal> {
        let mounts = asked.host_config.mounts.as_deref().unwrap_or_default();
        let of_another = |target: &str| {
            let mut mounts = mounts.iter().filter(|_| !name.measures);
            let mount = mounts.find(|mount| mount.target == target);
            mount.map(of_another_sandbox).transpose()
        };
        let has_workspace = mounts.iter().any(is_workspace);
        Ok(Self {
            workspace: has_workspace.then(|| name::volume(&name.sandbox)),
            packages: of_another(PACKAGES)?,
            programs: of_another(PROGRAMS)?,
        })
    }

    fn mounts(
        &self,
        asked: &ContainerRequest,
        inside: &Inside,
        labels: &Labels,
        settings: &Settings,
    ) -> Vec<Value> {
        let workspace = self.workspace.iter().map(|volume| {
            // If the volume is removed before the container is created, the engine creates it anew, with our
            // labels.
            let own = json!({ "Labels": labels });
            mount(volume, WORKSPACE, inside.is_read_only, &own)
        });
        let packages = self.packages.iter();
        let packages = packages.map(|volume| mount(volume, PACKAGES, true, &json!({})));
        // The volume that all containers share is filled only from the sandboxes' own image.
        let mut options = asked.host_config.mounts.iter().flatten();
        let is_asked = options.any(|it| it.volume_options.as_ref().is_some_and(|it| it.no_copy));
        let no_copy = if asked.image != settings.image || is_asked {
            json!({ "NoCopy": true })
        } else {
            json!({})
        };
        let programs = self.programs.iter();
        let programs = programs.map(|volume| mount(volume, PROGRAMS, true, &no_copy));
        workspace.chain(packages).chain(programs).collect()
    }

    fn volumes(self) -> Vec<String> {
        let all = self.workspace.into_iter();
        all.chain(self.packages).chain(self.programs).collect()
    }
}

fn is_workspace(mount: &AskedMount) -> bool {
    ![PACKAGES, PROGRAMS].contains(&mount.target.as_str())
}

/// Returns the volume of another sandbox, which holds installed packages or our programs.
fn of_another_sandbox(mount: &AskedMount) -> Result<String, Refusal> {
    if name::sandbox_of_volume(&mount.source).is_none() {
        let remedy = "it has to be the volume of a sandbox, `sepal-ws-sbx_<32 hexadecimal digits>`";
        return Err(Refusal::field("HostConfig.Mounts.Source", remedy));
    }
    Ok(mount.source.clone())
}

fn mount(volume: &str, target: &str, is_read_only: bool, options: &Value) -> Value {
    json!({
        "Type": "volume",
        "Source": volume,
        "Target": target,
        "ReadOnly": is_read_only,
        "VolumeOptions": options,
    })
}

fn with_mounts(mut made: Value, mounts: Vec<Value>) -> Value {
    if let Some(place) = made.pointer_mut("/HostConfig/Mounts") {
        *place = Value::Array(mounts);
    }
    made
}

/// Returns the requested value, if it is positive and within the maximum; the maximum if none is requested.
fn at_most(field: &str, asked: Option<i64>, most: i64) -> Result<i64, Refusal> {
    match asked {
        None => Ok(most),
        Some(asked) if (1..=most).contains(&asked) => Ok(asked),
        Some(_) => {
            let remedy =
                format!("it has to be between 1 and {most}; a `--max-…` of the proxy says so");
            Err(Refusal::field(field, remedy))
        }
    }
}
