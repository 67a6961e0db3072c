//! Looks up the files that proposed calls would write, before people are asked.
//!
//! A look-up starts nothing and never fails a turn: without an answer in time, nothing is shown.

use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::SessionTools;
use crate::domain::{FileFacts, written_path};
use crate::sandbox::assignment::SandboxAssignment;
use crate::servers::{BUNDLED, LiveConnection, Source};
use crate::session::{Proposal, Resolution, ToolFacts};

/// The time limit of all look-ups for one answer.
const LOOKUP_LIMIT: Duration = Duration::from_secs(1);
/// The time limit of the server's answers, which leaves time to cancel the request.
const ANSWER_LIMIT: Duration = Duration::from_millis(900);
/// The most files looked up for one answer.
const MOST_LOOKS: usize = 64;
/// The folder of a session's files, as every sandbox names it.
const WORKSPACE: &str = "/workspace";

/// The access to a session's files at the moment.
pub(in crate::agent) enum Files<'a> {
    /// The sandbox's server runs.
    Open(LiveConnection),
    /// No tool has run in the session, so it has no files, unless its sandbox was claimed.
    Unused(&'a SandboxAssignment),
    /// Unknown: its server has ended, or was never started by this gateway.
    Unknown,
}

impl<'a> Files<'a> {
    /// Returns the access to the session's files without starting anything, through our own server only.
    pub(in crate::agent) fn of(tools: &'a SessionTools, is_unused: bool) -> Self {
        let offering = tools.offering();
        let entry = offering.entry(BUNDLED);
        let is_ours = entry.is_some_and(|entry| entry.source == Source::Bundled);
        let open = tools.link(BUNDLED).and_then(|link| link.live());
        match open {
            Some(server) if is_ours => Self::Open(server),
            None if is_ours && is_unused => Self::Unused(&tools.assignment),
            Some(_) | None => Self::Unknown,
        }
    }
}

/// Looks up the files that the calls of an answer would write, and adds the results to the calls.
pub(in crate::agent) async fn look_up<'a>(
    calls: &mut [Proposal],
    files: impl FnOnce() -> Files<'a>,
) {
    let paths: Vec<Option<String>> = calls.iter().map(path_of).collect();
    let places: Vec<_> = paths.iter().flatten().map(|path| place(path)).collect();
    // Calls of one answer run concurrently: if two of them write a file, no result would be reliable.
    let is_alone = |path: &str| places.iter().filter(|other| **other == place(path)).count() == 1;
    let wanted = calls.iter_mut().zip(&paths);
    let wanted = wanted.filter_map(|(call, path)| Some((call, path.as_deref()?)));
    let wanted: Vec<_> = wanted
        .filter(|(_, path)| is_alone(path))
        .take(MOST_LOOKS)
        .collect();
    if wanted.is_empty() {
        return;
    }
    let files = files();
    let until = Instant::now() + LOOKUP_LIMIT;
    let is_empty = match &files {
        Files::Unused(assignment) => timeout_at(until, assignment.is_unclaimed()).await == Ok(true),
        Files::Open(_) | Files::Unknown => false,
    };
    let lookups = wanted.into_iter().map(async |(call, path)| {
        let found = match &files {
            Files::Open(server) => {
                let asked = server.connection.file_facts(path, ANSWER_LIMIT);
                timeout_at(until, asked).await.ok().and_then(Result::ok)
            }
            Files::Unused(_) => (is_empty && is_plain(path)).then_some(FileFacts::NEW),
            Files::Unknown => None,
        };
        if let (Some(file), Resolution::Ready(facts)) = (found, &mut call.resolution) {
            Arc::make_mut(facts).file = Some(file);
        }
    });
    futures::future::join_all(lookups).await;
}

/// Returns the file that a call would write, if it is a call of the sandbox's own tool.
fn path_of(call: &Proposal) -> Option<String> {
    let Resolution::Ready(facts) = &call.resolution else {
        return None;
    };
    let path = is_write(facts).then(|| written_path(&call.args));
    path.flatten().map(ToOwned::to_owned)
}

fn is_write(facts: &ToolFacts) -> bool {
    facts.tool.server == BUNDLED && facts.tool.tool == "write_file"
}

/// Normalizes a path. Two paths that a link makes equal are not recognized as equal.
fn place(path: &str) -> Vec<Component<'_>> {
    let path = Path::new(path);
    let path = path.strip_prefix(WORKSPACE).unwrap_or(path);
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).collect()
}

/// Returns true if a path certainly names a file in any workspace, without asking the server. A path in
/// bash's escaped form, one that leads up, or one that names a folder does not.
fn is_plain(path: &str) -> bool {
    let names_folder = path.ends_with('/') || path.ends_with("/.");
    let parts = place(path);
    !names_folder
        && !path.contains('\0')
        && !path.starts_with("$'")
        && !parts.is_empty()
        && parts
            .iter()
            .all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::{is_plain, place};

    #[test]
    fn only_a_path_that_surely_names_a_file_is_plain() {
        for path in [
            "a.txt",
            "./a",
            "a/b/c",
            "/workspace/a",
            "$HOME",
            "...",
            "a//b",
        ] {
            assert!(is_plain(path), "{path}");
        }
        for path in [
            "",
            ".",
            "/",
            "..",
            "../a",
            "a/../b",
            "a/",
            "a/.",
            "/etc/a",
            "/workspace",
            "/workspaces/a",
            "a\0",
            r"$'a\x2f'",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn spellings_of_one_path_are_one_place() {
        for path in ["./a/b", "a//b", "a/./b", "/workspace/a/b"] {
            assert_eq!(place(path), place("a/b"), "{path}");
        }
        assert_ne!(place("a"), place("b"));
    }
}
