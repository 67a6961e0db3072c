//! Tests bubblewrap by starting a sandbox: distributions restrict namespaces in many ways.

use std::{collections::BTreeMap, fs};

use tokio::io::AsyncReadExt;

use super::Bubblewrap;
use crate::{Access, Bounds, Error, Launch, Packages, Program, ProgramEnd, Runtime};
use sepal_core::domain::SandboxId;

/// The sandbox of the test; no session can have it.
const SANDBOX: u128 = 0;
/// Most bytes of the answer: more than the name of a network namespace.
const MAX_ANSWER_BYTES: u64 = 1024;

/// Starts an ordinary sandbox and asks it for its network namespace.
pub(super) async fn run(runtime: &Bubblewrap) -> Result<(), Error> {
    let sandbox = SandboxId::from_bits(SANDBOX);
    let question = ["readlink", "/proc/self/ns/net"].map(str::to_owned);
    let running = runtime
        .start(Launch {
            sandbox: sandbox.clone(),
            packages: Packages::None,
            holder: None,
            server: "probe".to_owned(),
            program: Program::Command(question.to_vec()),
            environment: BTreeMap::new(),
            workspace: Access::ReadWrite,
            egress: None,
            bounds: Bounds::default(),
        })
        .await?;
    let mut inside = String::new();
    let mut stdout = running.stdout.take(MAX_ANSWER_BYTES);
    stdout.read_to_string(&mut inside).await?;
    let ended = running.life.ended().await;
    runtime.remove_workspace(&sandbox).await?;
    if ended != ProgramEnd::Exited(0) {
        let mut stderr = running.stderr;
        let said = stderr.recv().await.unwrap_or_else(|| ended.to_string());
        return Err(refused(said));
    }
    let outside = fs::read_link("/proc/self/ns/net")?;
    if inside.is_empty() || inside.trim() == outside.to_string_lossy() {
        return Err(refused("the sandbox shares our network".to_owned()));
    }
    Ok(())
}

/// Returns the error for the last words of a program in the chain that failed.
pub(super) fn refused(said: String) -> Error {
    for (program, package) in [
        ("bwrap", "bubblewrap"),
        ("setpriv", "util-linux"),
        ("prlimit", "util-linux"),
    ] {
        // `bash: line 12: exec: bwrap: not found` and `bwrap: execvp prlimit: No such file …`.
        let is_missing = said.contains(&format!("{program}: not found"))
            || said.contains(&format!("execvp {program}: No such file"));
        if is_missing {
            return Error::NotInstalled {
                program: program.to_owned(),
                package,
            };
        }
    }
    Error::Refused {
        said,
        remedy: remedy(),
    }
}

/// Returns the remedy for the operator, based on the kernel's settings.
fn remedy() -> &'static str {
    let setting = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    if setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        "AppArmor forbids user namespaces here (Ubuntu 24.04 and later): give bwrap an AppArmor \
         profile with `userns,`, or set `kernel.apparmor_restrict_unprivileged_userns=0` by sysctl"
    } else if setting("kernel/unprivileged_userns_clone") == Some(0) {
        "set `kernel.unprivileged_userns_clone=1` by sysctl"
    } else if setting("user/max_user_namespaces") == Some(0) {
        "set `user.max_user_namespaces` above 0 by sysctl"
    } else {
        "bubblewrap 0.8 or newer and user namespaces are needed (inside a container they are often \
         forbidden)"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_told_with_its_package() {
        let check = |said: &str, expected: &str| {
            let error = refused(said.to_owned()).to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(
            "sepal-sandbox: line 10: exec: bwrap: not found",
            "apt-get install bubblewrap",
        );
        check(
            "bwrap: execvp prlimit: No such file or directory",
            "apt-get install util-linux",
        );
        check("bwrap: setting up uid map: Permission denied", "uid map");
    }
}
