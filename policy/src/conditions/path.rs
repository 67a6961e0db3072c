//! Matches paths in the workspace by their text: the targets of links are unknown here.

use super::Fit;

/// Returns how surely `text` names `below` or something in it.
pub(super) fn fit(text: &str, below: &str, workspace: Option<&str>) -> Fit {
    let Some(path) = Path::read(text, workspace) else {
        return Fit::Unsure;
    };
    let mut folders = below
        .split('/')
        .filter(|name| !name.is_empty() && *name != ".");
    let mut names = path.names.iter();
    let is_below = folders.all(|folder| names.next() == Some(&folder));
    match (is_below, path.climbs) {
        // A `..` behind a link leads to the parent of the link's target.
        (_, true) => Fit::Unsure,
        (is_below, false) => is_below.into(),
    }
}

struct Path<'a> {
    /// Names below the workspace, without `.` and `..`.
    names: Vec<&'a str>,
    /// True if the text has a `..`.
    climbs: bool,
}

impl<'a> Path<'a> {
    /// Parses a path; `None` if it leaves the workspace, or if tools may read it differently.
    fn read(text: &'a str, workspace: Option<&str>) -> Option<Self> {
        // Tools of the sandbox take `$'…'` for a name in bash's quoted form, and `~` may be a home folder.
        if text.starts_with("$'") || text.starts_with('~') || text.contains(['\\', '\0']) {
            return None;
        }
        let inside = if text.starts_with('/') {
            let rest = text.strip_prefix(workspace?.trim_end_matches('/'))?;
            if !rest.is_empty() && !rest.starts_with('/') {
                return None;
            }
            rest
        } else {
            text
        };
        let mut path = Self {
            names: Vec::new(),
            climbs: false,
        };
        for name in inside.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    path.climbs = true;
                    path.names.pop()?;
                }
                name => path.names.push(name),
            }
        }
        Some(path)
    }
}

/// Returns true if a rule may name this folder.
pub(crate) fn is_folder(below: &str) -> bool {
    !below.starts_with(['/', '~', '$'])
        && !below.contains(['\\', '\0'])
        && below.split('/').all(|name| name != "..")
}

/// Returns the folder of the file that `text` names, if it is surely in a folder of the workspace.
pub(crate) fn folder_of(text: &str, workspace: Option<&str>) -> Option<String> {
    let path = Path::read(text, workspace).filter(|path| !path.climbs)?;
    let (_, folders) = path.names.split_last()?;
    (!folders.is_empty()).then(|| folders.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{Fit, fit, folder_of};

    #[test]
    fn a_path_is_below_a_folder_by_whole_names() {
        for (text, below, expected) in [
            ("src/a.rs", "src", Fit::Yes),
            ("./src//a.rs", "src/", Fit::Yes),
            ("src", "src", Fit::Yes),
            ("srcs/a.rs", "src", Fit::No),
            ("a/src/b", "src", Fit::No),
            ("anything", "", Fit::Yes),
            ("src/../secrets/a", "src", Fit::Unsure),
            ("x/../src/a", "src", Fit::Unsure),
            ("../src/a", "src", Fit::Unsure),
            ("/work/src/a", "src", Fit::Yes),
            ("/worker/src/a", "src", Fit::Unsure),
            ("/etc/passwd", "src", Fit::Unsure),
            ("$'src/a'", "src", Fit::Unsure),
            ("~/src", "src", Fit::Unsure),
            ("src\\..\\a", "src", Fit::Unsure),
        ] {
            assert_eq!(fit(text, below, Some("/work")), expected, "{text} {below}");
        }
        assert_eq!(fit("/work/src/a", "src", None), Fit::Unsure);
    }

    #[test]
    fn the_folder_of_a_file_is_named_if_it_is_sure() {
        assert_eq!(folder_of("src/b/a.rs", None).as_deref(), Some("src/b"));
        for text in ["a.rs", "src/../a/b", "/etc/passwd", "$'a/b'"] {
            assert_eq!(folder_of(text, None), None, "{text}");
        }
    }
}
