//! Decides which files of the machine are visible inside.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Plan, SERVER, words};
use crate::{Access, Launch, Program};

/// The system folders that are visible, read-only.
const SYSTEM: [&str; 8] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libexec",
];
/// The entries of `/etc` that programs need, if they exist. The rest of `/etc` is ours.
const ETC: [&str; 4] = ["alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"];
/// The folders of trusted certificate authorities below `/etc`, on different systems. They hold only
/// certificates, which are public.
const AUTHORITIES: [&str; 3] = ["ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted"];
/// The files with all authorities, on Debian and Red Hat based systems.
const AUTHORITIES_FILE: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];
/// The variables in which runtimes with built-in authorities look for that file: without them, they would not
/// know the authorities that a company added to its machines.
const AUTHORITIES_NAMES: [&str; 3] = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"];
/// The files of `/etc` that we write: they reveal nothing about the real machine.
pub(in crate::bubblewrap) const OWN_ETC: [(&str, &str); 4] = [
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
/// The size of `/tmp` and of `/dev/shm`; control groups count both as memory.
const TEMPORARY_BYTES: u64 = 64 << 20;

/// Files of `/proc` that describe the machine, and one that is its memory: the same ones that a container
/// engine hides.
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

/// Shows the system's folders, read-only, and an `/etc` that reveals nothing about the machine.
pub(super) fn system(plan: &Plan<'_>) -> Vec<OsString> {
    // A folder that is created implicitly for a file would be closed to everybody but root.
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

/// Shows the authorities of this system, with their parent folders.
fn authorities() -> Vec<OsString> {
    let folders = ["/etc/ssl", "/etc/pki", "/etc/pki/tls", "/etc/pki/ca-trust"];
    let folders = folders.iter().flat_map(|folder| words(["--dir", folder]));
    let seen = AUTHORITIES.iter().flat_map(|name| {
        let path = format!("/etc/{name}");
        words(["--ro-bind-try", &path, &path])
    });
    folders.chain(seen).collect()
}

/// Returns the variables that tell a program with egress which authorities this system trusts; the server's
/// entry may override them.
pub(super) fn trust(launch: &Launch) -> Vec<(&str, &str)> {
    let file = AUTHORITIES_FILE
        .into_iter()
        .find(|file| launch.egress.is_some() && Path::new(file).exists());
    let names = AUTHORITIES_NAMES.into_iter();
    names.filter_map(|name| Some((name, file?))).collect()
}

/// Hides the entries of `/proc` that exist on this kernel.
fn hidden() -> Vec<OsString> {
    let is_there = |path: &&str| Path::new(path).exists();
    let files = HIDDEN_FILES.into_iter().filter(is_there);
    let files = files.flat_map(|path| words(["--ro-bind", "/dev/null", path]));
    let folders = HIDDEN_FOLDERS.into_iter().filter(is_there);
    files
        .chain(folders.flat_map(|path| words(["--tmpfs", path, "--remount-ro", path])))
        .collect()
}

/// Creates temporary folders that end with the sandbox.
pub(super) fn temporary() -> Vec<OsString> {
    let size = TEMPORARY_BYTES.to_string();
    ["/tmp", "/dev/shm"]
        .iter()
        .flat_map(|folder| words(["--perms", "1777", "--size", &size, "--tmpfs", folder]))
        .collect()
}

/// Shows the session's files, with the launch's access.
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
