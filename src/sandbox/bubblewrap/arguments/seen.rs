//! What of the machine is seen inside the walls.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Plan, SERVER, words};
use crate::sandbox::{Access, Launch, Program};

/// Folders of the system that are seen, read-only.
const SYSTEM: [&str; 8] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libexec",
];
/// What programs need of `/etc`, where it exists. The rest of `/etc` is ours.
const ETC: [&str; 4] = ["alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"];
/// The authorities that programs trust when they reach a host by TLS, where each system has them. Only
/// certificates are there, which are public.
const AUTHORITIES: [&str; 3] = ["ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted"];
/// All of them in one file, on Debian and its like and on Red Hat's.
const AUTHORITIES_FILE: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];
/// Where runtimes look for that file that bring authorities of their own: without, they would know none
/// that a company added to its machines.
const AUTHORITIES_NAMES: [&str; 3] = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"];
/// The files of `/etc` that we write: nothing of the real machine is told.
pub(in crate::sandbox::bubblewrap) const OWN_ETC: [(&str, &str); 4] = [
    (
        "passwd",
        "nobody:x:65534:65534:nobody:/workspace:/bin/bash\n",
    ),
    ("group", "nogroup:x:65534:\n"),
    (
        "hosts",
        "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
    ),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\n",
    ),
];
/// The size of `/tmp` and of `/dev/shm`; both count as memory where a control group counts it.
const TEMPORARY_BYTES: u64 = 64 << 20;

/// Files of `/proc` that tell about the machine, and one that is its memory: the same that an engine
/// hides.
const HIDDEN_FILES: [&str; 7] = [
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/timer_list",
    "/proc/timer_stats",
];
/// Folders of the same kind.
const HIDDEN_FOLDERS: [&str; 3] = ["/proc/acpi", "/proc/asound", "/proc/scsi"];

/// The system's folders, read-only, and an `/etc` that says nothing about the machine.
pub(super) fn system(plan: &Plan<'_>) -> Vec<OsString> {
    // Made on the way to a file, a folder would be closed to all but root.
    let mut seen = words(["--dir", "/etc", "--dir", "/sepal"]);
    for folder in SYSTEM {
        match std::fs::read_link(folder) {
            Ok(target) => seen.extend(words([
                OsStr::new("--symlink"),
                target.as_ref(),
                folder.as_ref(),
            ])),
            Err(_) => seen.extend(words(["--ro-bind-try", folder, folder])),
        }
    }
    for name in ETC {
        let path = format!("/etc/{name}");
        seen.extend(words(["--ro-bind-try", &path, &path]));
    }
    if plan.launch.egress.is_some() {
        seen.extend(authorities());
    }
    for (name, _) in OWN_ETC {
        let inside = PathBuf::from("/etc").join(name);
        seen.extend(words([
            OsStr::new("--ro-bind"),
            plan.etc.join(name).as_ref(),
            inside.as_ref(),
        ]));
    }
    let is_bundled = matches!(plan.launch.program, Program::Bundled { .. });
    if is_bundled || plan.launch.egress.is_some() {
        seen.extend(words([
            OsStr::new("--ro-bind"),
            plan.server.as_ref(),
            SERVER.as_ref(),
        ]));
    }
    seen.extend(words(["--proc", "/proc", "--dev", "/dev"]));
    seen.extend(hidden());
    seen
}

/// The authorities of this system, with the folders on the way to them.
fn authorities() -> Vec<OsString> {
    let folders = ["/etc/ssl", "/etc/pki", "/etc/pki/tls", "/etc/pki/ca-trust"];
    let folders = folders.iter().flat_map(|folder| words(["--dir", folder]));
    let seen = AUTHORITIES.iter().flat_map(|name| {
        let path = format!("/etc/{name}");
        words(["--ro-bind-try", &path, &path])
    });
    folders.chain(seen).collect()
}

/// What tells a program that may reach hosts which authorities this system trusts; its entry may say
/// otherwise.
pub(super) fn trust(launch: &Launch) -> Vec<(&str, &str)> {
    let file = AUTHORITIES_FILE
        .into_iter()
        .find(|file| launch.egress.is_some() && Path::new(file).exists());
    let names = AUTHORITIES_NAMES.into_iter();
    names.filter_map(|name| Some((name, file?))).collect()
}

/// What of `/proc` is hidden, as far as this kernel has it.
fn hidden() -> Vec<OsString> {
    let is_there = |path: &&str| Path::new(path).exists();
    let files = HIDDEN_FILES.into_iter().filter(is_there);
    let files = files.flat_map(|path| words(["--ro-bind", "/dev/null", path]));
    let folders = HIDDEN_FOLDERS.into_iter().filter(is_there);
    files
        .chain(folders.flat_map(|path| words(["--tmpfs", path, "--remount-ro", path])))
        .collect()
}

/// Folders that are thrown away with the sandbox.
pub(super) fn temporary() -> Vec<OsString> {
    let size = TEMPORARY_BYTES.to_string();
    ["/tmp", "/dev/shm"]
        .iter()
        .flat_map(|folder| words(["--perms", "1777", "--size", &size, "--tmpfs", folder]))
        .collect()
}

/// The session's files, as far as the launch says.
pub(super) fn workspace(plan: &Plan<'_>) -> Vec<OsString> {
    let how = match plan.launch.workspace {
        Access::None => return words(["--dir", "/workspace"]),
        Access::ReadOnly => "--ro-bind",
        Access::ReadWrite => "--bind",
    };
    words([
        OsStr::new(how),
        plan.workspace.as_ref(),
        "/workspace".as_ref(),
    ])
}

#[cfg(test)]
mod tests {
    use super::authorities;

    #[test]
    fn authorities_are_seen_read_only_and_nothing_beside_them() {
        let line = authorities().join(std::ffi::OsStr::new(" "));
        let line = line.into_string().unwrap();
        assert!(line.contains("--ro-bind-try /etc/ssl/certs /etc/ssl/certs"));
        assert!(
            !line.contains("private") && !line.contains("--bind"),
            "{line}"
        );
    }
}
