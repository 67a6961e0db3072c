//! Puts the files of a skill into the workspace, in parts that each fit a message. Nothing is ever
//! replaced, and no link is followed: a file that is there with the same content is as good, and with
//! another content the gateway takes another folder.

use std::io;
use std::path::{Component, Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cap_std::fs::Dir;
use serde::Deserialize;

use crate::failure::Failure;
use crate::files::Workspace;
use crate::files::place::{Incoming, UnfinishedFile, folder};

/// The folder of all of them, in the workspace, part by part.
const FOLDER: [&str; 2] = [".sepal", "skills"];
/// The longest path of a file, in bytes.
const MAX_PATH_BYTES: usize = 512;

/// One part of a file of a skill.
#[derive(Debug, Deserialize)]
pub(crate) struct SkillPart {
    /// The skill's own folder, without another.
    folder: String,
    /// The file below it.
    path: String,
    /// Whether it may be run.
    executable: bool,
    /// Bytes of the whole file.
    bytes: u64,
    /// Where this part begins; the part at 0 begins a file anew.
    offset: u64,
    /// The content of this part, as base64.
    data: String,
}

/// Takes a part. With the last one, whether the file is there; false = something else has its name.
pub(crate) fn place_skill(
    workspace: &Workspace,
    incoming: &Incoming,
    part: &SkillPart,
) -> Result<Option<bool>, Failure> {
    let path = format!("{}/{}", part.folder, part.path);
    check(part)?;
    let data = STANDARD
        .decode(&part.data)
        .map_err(|_| Failure::new("The data is no base64."))?;
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let failed = |error: io::Error| Failure::of(&path, &error);
    let mut all = workspace.root.try_clone().map_err(failed)?;
    for part in FOLDER {
        all = folder(&all, part).map_err(failed)?;
    }
    let Ok(inner) = below(all, folders) else {
        // Something else has the name of a folder.
        return Ok(Some(false));
    };
    let begin = || UnfinishedFile::begin(inner).map_err(failed);
    let whole = incoming.take(part.offset, part.bytes, &data, begin);
    let Some(whole) = whole.map_err(|wrong| wrong.of(&path))? else {
        return Ok(None);
    };
    let mode = if part.executable { 0o755 } else { 0o644 };
    whole.name_only(name, mode).map(Some).map_err(failed)
}

fn below(mut inner: Dir, folders: &str) -> io::Result<Dir> {
    for part in folders.split('/') {
        inner = folder(&inner, part)?;
    }
    Ok(inner)
}

/// Only what names one file below the folder.
fn check(part: &SkillPart) -> Result<(), Failure> {
    let is_plain = |name: &str| {
        let mut parts = Path::new(name).components();
        let is_one = matches!(parts.next(), Some(Component::Normal(part)) if part == name)
            && parts.next().is_none();
        is_one && !name.chars().any(char::is_control)
    };
    let is_file = part.path.len() <= MAX_PATH_BYTES && part.path.split('/').all(is_plain);
    if is_file && is_plain(&part.folder) && !part.folder.starts_with(['.', '-']) {
        return Ok(());
    }
    Err(Failure::new("The path is none for a file of a skill."))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::{SkillPart, place_skill};
    use crate::files::{Incoming, Workspace};

    fn part(path: &str, content: &str, from: usize, to: usize) -> SkillPart {
        SkillPart {
            folder: "pdf".to_owned(),
            path: path.to_owned(),
            executable: true,
            bytes: content.len() as u64,
            offset: from as u64,
            data: STANDARD.encode(&content[from..to]),
        }
    }

    #[test]
    fn files_come_whole_and_nothing_is_replaced_or_followed() {
        let home = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(home.path()).unwrap();
        let incoming = Incoming::default();
        let place = |part: &SkillPart| place_skill(&workspace, &incoming, part).ok();
        let skill = home.path().join(".sepal/skills/pdf");
        let text = "echo hi";
        assert_eq!(place(&part("scripts/a.sh", text, 0, 3)), Some(None));
        assert!(!skill.join("scripts/a.sh").exists());
        assert_eq!(place(&part("scripts/a.sh", text, 3, 7)), Some(Some(true)));
        let placed = skill.join("scripts/a.sh");
        assert_eq!(fs::read_to_string(&placed).unwrap(), text);
        let mode = fs::metadata(&placed).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
        // Again it is there, and another content does not replace it.
        assert_eq!(place(&part("scripts/a.sh", text, 0, 7)), Some(Some(true)));
        assert_eq!(place(&part("scripts/a.sh", "x", 0, 1)), Some(Some(false)));
        assert_eq!(place(&part("empty", "", 0, 0)), Some(Some(true)));
        assert_eq!(fs::read_to_string(&placed).unwrap(), text);
        // A name that is a folder, a folder that is a file, and links.
        assert_eq!(place(&part("scripts", "x", 0, 1)), Some(Some(false)));
        assert_eq!(place(&part("empty/a", "x", 0, 1)), Some(Some(false)));
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), skill.join("out")).unwrap();
        symlink("/etc/passwd", skill.join("passwd")).unwrap();
        assert_eq!(place(&part("out/a", "x", 0, 1)), Some(Some(false)));
        assert_eq!(place(&part("passwd", "x", 0, 1)), Some(Some(false)));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        for path in ["../a", "/a", "a/../b", "", "a//b", "a\nb", "."] {
            assert_eq!(place(&part(path, "x", 0, 1)), None, "{path}");
        }
        let left = fs::read_dir(&skill).unwrap();
        let left = left.filter(|it| {
            let name = it.as_ref().unwrap().file_name();
            name.to_string_lossy().contains("tmp")
        });
        assert_eq!(left.count(), 0, "nothing unfinished is left");
    }
}
