//! Kills sandboxes of an earlier process of this installation. `--die-with-parent` ends them with their
//! gateway; this finds those that lost it in the few milliseconds before that option is in force.

use std::{fs, os::fd::OwnedFd};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The variable in bubblewrap's command line that identifies the sandbox.
pub(super) const NAME: &str = "SEPAL_SANDBOX";

/// Returns the value of [`NAME`]: the installation, a dot, the sandbox.
pub(super) fn mark(installation: &str, sandbox: &str) -> String {
    format!("{installation}.{sandbox}")
}

/// Kills every running bubblewrap of `installation`, and returns their number.
pub(super) fn kill(installation: &str) -> usize {
    let (prefix, mut killed) = (mark(installation, ""), 0);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw)
            && is_ours(pid, &prefix)
            && let Some(process) = hold(pid, &prefix)
            && pidfd_send_signal(&process, Signal::KILL).is_ok()
        {
            killed += 1;
        }
    }
    killed
}

/// Returns a descriptor of `pid`, if that process is a bubblewrap whose mark begins with `mark`.
pub(super) fn hold(pid: Pid, mark: &str) -> Option<OwnedFd> {
    let process = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
    // Checked again once the descriptor is open: the process number may have been reused before.
    is_ours(pid, mark).then_some(process)
}

fn is_ours(pid: Pid, mark: &str) -> bool {
    fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
        .is_ok_and(|line| is_marked(&line, mark))
}

/// Returns true if a command line, of words that end with NUL, is that of a marked bubblewrap.
fn is_marked(line: &[u8], mark: &str) -> bool {
    let mut words = line.split(|byte| *byte == 0);
    let is_bubblewrap = words.next().is_some_and(|word| word.ends_with(b"bwrap"));
    let mut after_name = words.skip_while(|word| *word != NAME.as_bytes()).skip(1);
    is_bubblewrap
        && after_name
            .next()
            .is_some_and(|word| word.starts_with(mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_installation_is_found() {
        let check = |line: &str, expected| {
            assert_eq!(
                is_marked(line.replace(' ', "\0").as_bytes(), "one."),
                expected,
                "{line}"
            );
        };
        check("bwrap --setenv SEPAL_SANDBOX one.sbx_1 --", true);
        check("/usr/bin/bwrap --setenv SEPAL_SANDBOX one.sbx_1 --", true);
        check("bwrap --setenv SEPAL_SANDBOX onetwo.sbx_1 --", false);
        check("bwrap --setenv SEPAL_SANDBOX two.sbx_1 --", false);
        check("bash --setenv SEPAL_SANDBOX one.sbx_1 --", false);
        check("bwrap SEPAL_SANDBOX", false);
        check("", false);
    }
}
