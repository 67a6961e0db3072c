//! Builds bubblewrap's arguments, which decide what is visible inside.

mod seen;

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

pub(super) use self::seen::OWN_ETC;
use crate::{Bounds, Launch, Program, egress};

/// The user inside.
const NOBODY: &str = "65534";
/// The path of the bundled server inside.
const SERVER: &str = "/sepal/mcp-server";
/// The path of installed packages inside.
const PACKAGES: &str = "/packages";
/// The search path of `execute_command`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The most open files of one process.
const MAX_OPEN_FILES: u32 = 1024;

/// The privileges with which bubblewrap creates the namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Privilege {
    /// Root: the program gets another real user, because the user id of root alone, even without
    /// capabilities, may write to `/proc/sys` and so change the machine.
    Root,
    /// An ordinary user.
    User,
}

/// Runs inside, as the last step before the program: restores the streams that were passed beside bubblewrap.
const TAKE_STREAMS: &str = r#"exec <&6 >&7 6<&- 7>&-; exec "$@""#;

/// Reads the filter of system calls from descriptor 8. The last bubblewrap installs it: installed by the
/// first of two, it would block the second.
const FILTER: [&str; 2] = ["--seccomp", "8"];

/// All inputs of a command line.
pub(super) struct Plan<'a> {
    pub(super) launch: &'a Launch,
    pub(super) privilege: Privilege,
    /// The owner of the workspace, as whom root lets the program run.
    pub(super) user: u32,
    pub(super) workspace: &'a Path,
    /// The beginning of the command line, which mounts the workspace if that is needed and executes the rest.
    pub(super) mounts_first: &'a [OsString],
    /// The folder of the installed packages, if the launch sees one.
    pub(super) packages: Option<&'a Path>,
    /// The folder with [`seen::OWN_ETC`].
    pub(super) etc: &'a Path,
    pub(super) server: &'a Path,
    /// The mark in the command line, by which [`super::leftovers`] finds it.
    pub(super) mark: &'a str,
    /// True if an rlimit has to limit the processes of the namespace, because no control group does.
    pub(super) needs_process_rlimit: bool,
}

/// A command line whose options are read from two descriptors: environments can hold secrets, and command
/// lines are public on the machine.
#[derive(Debug, PartialEq)]
pub(super) struct Arguments {
    /// The options of bubblewrap, on descriptor 4.
    pub(super) walls: Vec<OsString>,
    /// The options of the inner bubblewrap that root needs, on descriptor 5.
    pub(super) inner: Vec<OsString>,
    /// The command line that is executed outside. Bubblewrap reports the number of its first process on
    /// descriptor 3.
    pub(super) line: Vec<OsString>,
}

impl Arguments {
    pub(super) fn new(plan: &Plan<'_>) -> Self {
        let mut walls = walls(plan);
        let mut inner = Vec::new();
        match plan.privilege {
            // Root without capabilities may not enter a folder of another user.
            Privilege::Root => {
                walls.extend(words(["--chdir", "/"]));
                inner = environment(plan.launch);
                inner.extend(words(["--chdir", "/workspace"]));
                inner.extend(words(FILTER));
            }
            Privilege::User => {
                walls.extend(environment(plan.launch));
                walls.extend(words(["--chdir", "/workspace"]));
                walls.extend(words(FILTER));
            }
        }
        Self {
            walls,
            inner,
            line: line(plan),
        }
    }
}

fn line(plan: &Plan<'_>) -> Vec<OsString> {
    let mut line = plan.mounts_first.to_vec();
    line.extend(words(["bwrap", "--info-fd", "3", "--args", "4"]));
    line.extend(words(["--setenv", super::leftovers::NAME, plan.mark, "--"]));
    if plan.privilege == Privilege::Root {
        line.extend(words([
            "setpriv",
            &format!("--reuid={}", plan.user),
            &format!("--regid={}", plan.user),
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
            "--no-new-privs",
            "--",
            "bwrap",
            "--args",
            "5",
            "--unshare-user",
            "--disable-userns",
            "--uid",
            NOBODY,
            "--gid",
            NOBODY,
            "--die-with-parent",
            "--dev-bind",
            "/",
            "/",
            "--",
        ]));
    }
    line.extend(words(["sh", "-c", TAKE_STREAMS, "sh"]));
    line.extend(rlimits(&plan.launch.bounds, plan.needs_process_rlimit));
    line.extend(words(egress::prefix(plan.launch, SERVER)));
    line.extend(program(&plan.launch.program));
    line
}

fn walls(plan: &Plan<'_>) -> Vec<OsString> {
    let mut walls = words([
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        "--hostname",
        "sandbox",
        "--cap-drop",
        "ALL",
    ]);
    walls.extend(match plan.privilege {
        Privilege::Root => words([
            "--cap-add",
            "CAP_SETUID",
            "--cap-add",
            "CAP_SETGID",
            "--cap-add",
            "CAP_SETPCAP",
        ]),
        Privilege::User => words([
            "--unshare-user",
            "--disable-userns",
            "--uid",
            NOBODY,
            "--gid",
            NOBODY,
        ]),
    });
    walls.extend(seen::system(plan));
    walls.extend(seen::temporary());
    walls.extend(seen::workspace(plan));
    if let Some(packages) = plan.packages {
        walls.extend(words([
            OsStr::new("--ro-bind"),
            packages.as_ref(),
            PACKAGES.as_ref(),
        ]));
    }
    walls.extend(words(["--remount-ro", "/dev", "--remount-ro", "/"]));
    walls.extend(words(["--clearenv", "--setenv", "PATH", PATH]));
    walls
}

/// Returns the environment of the program itself.
fn environment(launch: &Launch) -> Vec<OsString> {
    let given = launch.environment.iter();
    let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
    [
        ("PATH", PATH),
        ("HOME", launch.home()),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        ("USER", "nobody"),
    ]
    .into_iter()
    .chain(seen::trust(launch))
    .chain(given)
    .flat_map(|(name, value)| words(["--setenv", name, value]))
    .collect()
}

fn rlimits(bounds: &Bounds, needs_process_rlimit: bool) -> Vec<OsString> {
    let mut limits = vec![
        OsString::from("prlimit"),
        OsString::from(format!("--fsize={}", bounds.workspace_bytes)),
        OsString::from(format!("--nofile={MAX_OPEN_FILES}")),
        OsString::from("--core=0"),
    ];
    if needs_process_rlimit {
        limits.push(OsString::from(format!("--nproc={}", bounds.processes)));
    }
    limits.push(OsString::from("--"));
    limits
}

fn program(program: &Program) -> Vec<OsString> {
    match program {
        Program::Bundled { .. } => {
            let mut line = words([SERVER]);
            line.extend(words(program.options()));
            line
        }
        Program::Command(command) => words(command),
        // Such a launch is refused before the arguments are built.
        Program::Image { image, arguments } => {
            let mut line = words([image]);
            line.extend(words(arguments));
            line
        }
    }
}

pub(super) fn words<T: AsRef<OsStr>>(words: impl IntoIterator<Item = T>) -> Vec<OsString> {
    words
        .into_iter()
        .map(|word| word.as_ref().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::*;
    use crate::{Access, Packages};
    use sepal_core::domain::SandboxId;

    fn arguments(privilege: Privilege, workspace: Access) -> Arguments {
        let launch = Launch {
            sandbox: SandboxId::from_bits(7),
            packages: Packages::None,
            holder: None,
            server: "files".to_owned(),
            program: Program::Bundled {
                command_timeout: Duration::from_secs(30),
                output_bytes: 1 << 20,
            },
            environment: BTreeMap::from([("TOKEN".to_owned(), "hush".to_owned())]),
            workspace,
            egress: None,
            bounds: Bounds::default(),
        };
        Arguments::new(&Plan {
            launch: &launch,
            privilege,
            user: 1_879_048_199,
            workspace: Path::new("/data/workspaces/w"),
            mounts_first: &[],
            packages: Some(Path::new("/data/workspaces/p")),
            etc: Path::new("/data/etc"),
            server: Path::new("/opt/server"),
            mark: "house.w",
            needs_process_rlimit: true,
        })
    }

    fn joined(words: &[OsString]) -> String {
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn secrets_and_paths_of_the_machine_are_in_no_command_line() {
        for privilege in [Privilege::Root, Privilege::User] {
            let line = joined(&arguments(privilege, Access::ReadWrite).line);
            assert!(!line.contains("hush") && !line.contains("/data"), "{line}");
        }
    }

    #[test]
    fn as_root_the_programs_environment_touches_nothing_that_still_has_rights() {
        let user = arguments(Privilege::User, Access::ReadWrite);
        let arguments = arguments(Privilege::Root, Access::ReadWrite);
        assert!(!joined(&arguments.walls).contains("TOKEN"));
        assert!(joined(&arguments.inner).contains("--setenv TOKEN hush"));
        let line = joined(&arguments.line);
        let (before, after) = line.split_once("setpriv --reuid=1879048199 ").unwrap();
        assert!(before.starts_with("bwrap") && after.contains("--disable-userns --uid 65534"));
        // The filter would block the second bubblewrap.
        assert!(!joined(&arguments.walls).contains("--seccomp"));
        assert!(joined(&arguments.inner).contains("--seccomp 8"));
        assert!(joined(&user.walls).contains("--seccomp 8"));
    }

    #[test]
    fn the_workspace_is_seen_as_the_launch_says() {
        let check = |access, expected: &str| {
            let walls = joined(&arguments(Privilege::User, access).walls);
            assert!(walls.contains(expected), "{walls}");
        };
        let packages = " --ro-bind /data/workspaces/p /packages ";
        check(Access::None, packages);
        check(Access::None, "--dir /workspace");
        check(Access::ReadOnly, "--ro-bind /data/workspaces/w /workspace");
        check(Access::ReadWrite, "--bind /data/workspaces/w /workspace");
    }
}
