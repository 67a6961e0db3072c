//! Guesses the likely reason of a failed installation from the installer's output and the end of its sandbox.

use sepal_core::domain::InstallProblem;
use sepal_sandbox::ProgramEnd;

/// Words in the output of npm and pip, and their meaning; the first match counts.
const SIGNS: [(&[&str], InstallProblem); 10] = [
    (
        &["EINTEGRITY", "DO NOT MATCH THE HASHES"],
        InstallProblem::WrongHash,
    ),
    (
        &["No space left", "ENOSPC", "EDQUOT", "EFBIG", "Disk quota"],
        InstallProblem::TooLarge,
    ),
    (
        &["No module named pip", "npm: not found", "spawn npm ENOENT"],
        InstallProblem::NoTools,
    ),
    (&["E404"], InstallProblem::NoSuchPackage),
    (&["ETARGET"], InstallProblem::NoSuchVersion),
    (
        &[
            "Requires-Python",
            "requires a different Python",
            "EBADENGINE",
        ],
        InstallProblem::NeedsNewer,
    ),
    (
        &[
            "from versions: none",
            "is not a supported wheel",
            "No matching distribution found for",
        ],
        InstallProblem::NoWheel,
    ),
    (
        &[
            "ENOTFOUND",
            "EAI_AGAIN",
            "ECONNREFUSED",
            "ECONNRESET",
            "ETIMEDOUT",
            "ERR_SOCKET_TIMEOUT",
            "network timeout",
            "tunneling socket could not be established",
            "Max retries exceeded",
            "NewConnectionError",
            "ConnectionError",
            "ReadTimeoutError",
            "ProxyError",
            "Connection broken",
            "SSLError",
            "SELF_SIGNED_CERT",
            "UNABLE_TO_GET_ISSUER",
        ],
        InstallProblem::Unreachable,
    ),
    (
        &["E500", "E502", "E503", "E504", "Server Error"],
        InstallProblem::Unreachable,
    ),
    (&["yanked"], InstallProblem::Yanked),
];

/// Returns the likely problem: first by the end of the sandbox, then `told` by the installer, then by words
/// of the log.
pub(super) fn likely(
    told: Option<InstallProblem>,
    log: &[String],
    ended: Option<ProgramEnd>,
) -> InstallProblem {
    match ended {
        Some(ProgramEnd::OverMemory(_) | ProgramEnd::OverWorkspace(_) | ProgramEnd::DiskFull) => {
            return InstallProblem::TooLarge;
        }
        Some(ProgramEnd::OverTime(_)) => return InstallProblem::TimedOut,
        // The command itself, node or python3, is missing or cannot be executed.
        Some(ProgramEnd::Exited(126 | 127)) => return InstallProblem::NoTools,
        Some(
            ProgramEnd::Exited(_)
            | ProgramEnd::Signalled(_)
            | ProgramEnd::Killed
            | ProgramEnd::OverProcesses(_)
            | ProgramEnd::UncountableWorkspace
            | ProgramEnd::UnmeasuredWorkspace
            | ProgramEnd::Lost,
        )
        | None => {}
    }
    if let Some(told) = told {
        return told;
    }
    let holds = |word: &&str| log.iter().any(|line| line.contains(*word));
    let mut signs = SIGNS.iter();
    let found = signs.find(|(words, _)| words.iter().any(holds));
    found.map_or(InstallProblem::Other, |(_, problem)| *problem)
}

#[cfg(test)]
mod tests {
    use super::likely;
    use sepal_core::domain::InstallProblem;
    use sepal_sandbox::ProgramEnd;

    #[test]
    fn what_npm_and_pip_say_leads_to_the_reason() {
        let check = |line: &str, expected: InstallProblem| {
            assert_eq!(likely(None, &[line.to_owned()], None), expected, "{line}");
        };
        check("npm error code E404", InstallProblem::NoSuchPackage);
        check("npm error code ETARGET", InstallProblem::NoSuchVersion);
        check("npm error code EINTEGRITY", InstallProblem::WrongHash);
        check("npm error code EAI_AGAIN", InstallProblem::Unreachable);
        check("npm error code ENOSPC", InstallProblem::TooLarge);
        check(
            "ERROR: Could not find a version that satisfies the requirement x (from versions: none)",
            InstallProblem::NoWheel,
        );
        check(
            "ERROR: Ignored the following versions that require a different python version: 1.0 \
             Requires-Python >=3.13",
            InstallProblem::NeedsNewer,
        );
        check(
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            InstallProblem::WrongHash,
        );
        check("it broke", InstallProblem::Other);
    }

    #[test]
    fn how_it_ended_goes_before_what_it_said() {
        let log = ["npm error code E404".to_owned()];
        let check = |ended, expected| assert_eq!(likely(None, &log, Some(ended)), expected);
        check(ProgramEnd::OverTime(10), InstallProblem::TimedOut);
        check(ProgramEnd::OverWorkspace(1), InstallProblem::TooLarge);
        check(ProgramEnd::Exited(127), InstallProblem::NoTools);
        check(ProgramEnd::Exited(1), InstallProblem::NoSuchPackage);
    }
}
