//! The skills that lie in the workspace: folders with a `SKILL.md`.

use std::io::{self, Read as _};

use serde::{Deserialize, Serialize};

use crate::files::{Workspace, read};

/// The file that makes a folder a skill.
const SKILL_FILE: &str = "SKILL.md";
/// Folders of skills that one question may name.
const MAX_ROOTS: usize = 8;
/// Entries of one such folder that are looked at.
const MAX_ENTRIES: usize = 1_000;
/// Skills that are told, whatever was asked for.
const MAX_SKILLS: usize = 200;
/// Bytes of one `SKILL.md` that are told, whatever was asked for.
const MAX_BYTES: u64 = 256 * 1024;
/// Bytes of all of them together.
const MAX_ALL_BYTES: usize = 2 * 1024 * 1024;

/// Where skills are looked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkillsParams {
    /// Folders of the workspace whose folders are skills.
    roots: Vec<String>,
    /// The only skill that is asked for, by the name of its folder; none = all of them.
    #[serde(default)]
    only: Option<String>,
    /// Skills that are told at most.
    max_skills: usize,
    /// Bytes that are told of each `SKILL.md`.
    max_bytes: u64,
}

/// One of the skills that are there.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FoundSkill {
    /// Which of the folders it lies in.
    root: String,
    /// The name of its own folder.
    name: String,
    /// The beginning of its `SKILL.md`; bytes that are no UTF-8 are replaced.
    content: String,
    /// How long the file is.
    bytes: u64,
}

/// The skills, in the order of the question and then of their names. A link counts as what it leads to, as
/// long as that lies in the workspace.
pub(crate) fn skills(workspace: &Workspace, params: &SkillsParams) -> Vec<FoundSkill> {
    let mut found = Vec::new();
    let most = params.max_skills.min(MAX_SKILLS);
    let bytes = params.max_bytes.min(MAX_BYTES);
    let mut room = MAX_ALL_BYTES;
    for root in params.roots.iter().take(MAX_ROOTS) {
        for name in names(workspace, root, params.only.as_deref()) {
            if found.len() >= most {
                return found;
            }
            let Some(skill) = one(workspace, root, name, bytes) else {
                continue;
            };
            let Some(left) = room.checked_sub(skill.content.len()) else {
                return found;
            };
            room = left;
            found.push(skill);
        }
    }
    found
}

/// The names of what lies in a folder of skills, sorted.
fn names(workspace: &Workspace, root: &str, only: Option<&str>) -> Vec<String> {
    if let Some(only) = only {
        let is_one = !only.is_empty() && !only.contains('/') && only != "." && only != "..";
        return is_one.then(|| only.to_owned()).into_iter().collect();
    }
    let entries = workspace.resolve(root).ok().and_then(|resolved| {
        let entries = workspace.root.read_dir(&resolved.path).ok()?;
        Some(entries)
    });
    let names = entries.into_iter().flatten().take(MAX_ENTRIES);
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// `None` where there is no such skill, or none that is text.
fn one(workspace: &Workspace, root: &str, name: String, most: u64) -> Option<FoundSkill> {
    let path = format!("{root}/{name}/{SKILL_FILE}");
    let resolved = workspace.resolve(&path).ok()?.path;
    // A pipe or a device is refused before a byte of it is read.
    let file = read::open(&workspace.root, &resolved, &path).ok()?;
    let read = |file: &std::fs::File| -> io::Result<(Vec<u8>, u64)> {
        let mut content = Vec::new();
        file.take(most).read_to_end(&mut content)?;
        Ok((content, file.metadata()?.len()))
    };
    let (content, bytes) = read(&file).ok()?;
    let start = content.get(..read::SNIFF_BYTES.min(content.len()))?;
    if content.is_empty() || read::binary_format(start).is_some() {
        return None;
    }
    Some(FoundSkill {
        root: root.to_owned(),
        name,
        content: String::from_utf8_lossy(&content).into_owned(),
        bytes: bytes.max(content.len() as u64),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{SkillsParams, skills};
    use crate::files::Workspace;

    fn params(only: Option<&str>, max_skills: usize, max_bytes: u64) -> SkillsParams {
        SkillsParams {
            roots: [".skills", ".claude/skills", "../out"]
                .map(str::to_owned)
                .to_vec(),
            only: only.map(str::to_owned),
            max_skills,
            max_bytes,
        }
    }

    #[test]
    fn skills_of_the_workspace_are_told_and_none_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("workspace");
        let put = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(".skills/b/SKILL.md", "of b");
        put(".skills/a/SKILL.md", "of a, which is long");
        put(".skills/none/README.md", "no skill");
        put(".skills/file", "no folder");
        put(".skills/binary/SKILL.md", "a\0b");
        put(".claude/skills/c/SKILL.md", "of c");
        fs::create_dir_all(home.path().join("out/x")).unwrap();
        fs::write(home.path().join("out/x/SKILL.md"), "secret").unwrap();
        symlink(home.path().join("out/x"), folder.join(".skills/leak")).unwrap();
        symlink("../b", folder.join(".skills/link")).unwrap();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            folder.join(".skills/pipe"),
            rustix::fs::Mode::RWXU,
        )
        .unwrap();
        let workspace = Workspace::open(&folder).unwrap();
        let told = |params: &SkillsParams| -> Vec<(String, String, u64)> {
            let found = skills(&workspace, params).into_iter();
            let found = found.map(|it| (format!("{}/{}", it.root, it.name), it.content, it.bytes));
            found.collect()
        };
        let expected = [
            (".skills/a", "of a, ", 19),
            (".skills/b", "of b", 4),
            (".claude/skills/c", "of c", 4),
        ];
        let expected = expected.map(|(at, text, bytes)| (at.to_owned(), text.to_owned(), bytes));
        assert_eq!(told(&params(None, 10, 6)), expected);
        assert_eq!(told(&params(None, 1, 6)), expected[..1]);
        assert_eq!(told(&params(Some("b"), 9, 9)), expected[1..2]);
        for only in ["../../../out/x", "..", "", "leak"] {
            assert_eq!(told(&params(Some(only), 9, 9)), [], "{only}");
        }
    }
}
