//! What is known of the files that proposed calls would write, looked up before people are asked.
//!
//! A look starts nothing and never fails a turn: where no answer comes in time, nothing is said.

use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::SessionTools;
use crate::domain::{FileFacts, written_path};
use crate::sandbox::assignment::SandboxAssignment;
use crate::servers::{BUNDLED, Held, Source};
use crate::session::{Proposal, Resolution, ToolFacts};

/// How long the looks of one answer may take in all.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
/// The same for the server's answers, with time left to tell it that nobody waits any more.
const ANSWER_LIMIT: Duration = Duration::from_millis(900);
/// Files that are looked at for one answer.
const MOST_LOOKS: usize = 64;
/// The folder of a session's files, as every sandbox names it.
const WORKSPACE: &str = "/workspace";

/// Where a session's files can be looked at now.
pub(in crate::agent) enum Files<'a> {
    /// Its server runs.
    Open(Held),
    /// Nothing has run in the session, so it has none, unless something is known of its sandbox.
    Unused(&'a SandboxAssignment),
    /// Nobody can say: its server has ended, or was never started by this gateway.
    Unknown,
}

impl<'a> Files<'a> {
    /// Where the files of the session can be looked at now, without a start, by our own server alone.
    pub(in crate::agent) fn of(tools: &'a SessionTools, is_unused: bool) -> Self {
        let view = tools.view();
        let entry = view.entry(BUNDLED);
        let is_ours = entry.is_some_and(|entry| entry.source == Source::Bundled);
        let open = tools.link(BUNDLED).and_then(|link| link.held());
        match open {
            Some(server) if is_ours => Self::Open(server),
            None if is_ours && is_unused => Self::Unused(&tools.assignment),
            Some(_) | None => Self::Unknown,
        }
    }
}

/// Looks at the files that the calls of an answer would write, and keeps what is known with them.
pub(in crate::agent) async fn look<'a>(calls: &mut [Proposal], files: impl FnOnce() -> Files<'a>) {
    let paths: Vec<Option<String>> = calls.iter().map(path_of).collect();
    let places: Vec<_> = paths.iter().flatten().map(|path| place(path)).collect();
    // Calls of one answer run side by side: of a file that two of them write, nothing would hold.
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
    let until = Instant::now() + LOOK_LIMIT;
    let is_empty = match &files {
        Files::Unused(assignment) => timeout_at(until, assignment.is_unclaimed()).await == Ok(true),
        Files::Open(_) | Files::Unknown => false,
    };
    let looks = wanted.into_iter().map(async |(call, path)| {
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
    futures::future::join_all(looks).await;
}

/// The file that a call would write, if it is one of the sandbox's own tool.
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

/// A path without what says nothing. Two spellings that a link makes one are not seen as one.
fn place(path: &str) -> Vec<Component<'_>> {
    let path = Path::new(path);
    let path = path.strip_prefix(WORKSPACE).unwrap_or(path);
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).collect()
}

/// Whether a path names a file of any workspace, without the server that would know better: what is
/// written in bash's form, leads up or names a folder is not judged.
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
