//! What the workspace itself says about how to work in it: `AGENTS.md` and the like, for the gateway,
//! which shows it to the model.

use std::io::{self, Read as _};

use serde::{Deserialize, Serialize};

use super::{Workspace, read};

/// Names that one question may hold.
const MAX_NAMES: usize = 8;
/// Bytes of one file that are told, whatever was asked for.
const MAX_BYTES: u64 = 256 * 1024;

/// Which files are asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstructionsParams {
    /// Their names at the top of the workspace.
    names: Vec<String>,
    /// Bytes that are told of each.
    max_bytes: u64,
}

/// One of the files that are there.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Instructions {
    name: String,
    /// Its beginning; bytes that are no UTF-8 are replaced.
    content: String,
    /// How long it is.
    bytes: u64,
}

/// Those of the files that can be read as text, in the order of the question. A link counts as the file
/// that it leads to, as long as that lies in the workspace.
pub(crate) fn instructions(
    workspace: &Workspace,
    params: &InstructionsParams,
) -> Vec<Instructions> {
    let names = params.names.iter().take(MAX_NAMES);
    let names = names.filter(|name| !name.contains('/') && !name.starts_with('.'));
    let most = params.max_bytes.min(MAX_BYTES);
    names
        .filter_map(|name| one(workspace, name, most))
        .collect()
}

/// `None` where there is no such file, or none that is text.
fn one(workspace: &Workspace, name: &str, most: u64) -> Option<Instructions> {
    let path = workspace.resolve(name).ok()?.path;
    // A pipe or a device is refused before a byte of it is read.
    let file = read::open(&workspace.root, &path, name).ok()?;
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
    Some(Instructions {
        name: name.to_owned(),
        content: String::from_utf8_lossy(&content).into_owned(),
        bytes: bytes.max(content.len() as u64),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{Instructions, InstructionsParams, instructions};
    use crate::files::Workspace;

    fn read(folder: &std::path::Path, names: &[&str], max_bytes: u64) -> Vec<Instructions> {
        let workspace = Workspace::open(folder).unwrap();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        instructions(&workspace, &InstructionsParams { names, max_bytes })
    }

    fn told(name: &str, content: &str, bytes: u64) -> Instructions {
        Instructions {
            name: name.to_owned(),
            content: content.to_owned(),
            bytes,
        }
    }

    #[test]
    fn files_of_the_workspace_are_told_and_none_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("workspace");
        fs::create_dir(&folder).unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        assert_eq!(read(&folder, &["AGENTS.md"], 10), []);
        fs::write(folder.join("AGENTS.md"), "Be brief, please.").unwrap();
        symlink("AGENTS.md", folder.join("CLAUDE.md")).unwrap();
        symlink("../secret", folder.join("OUT.md")).unwrap();
        symlink(home.path().join("secret"), folder.join("FAR.md")).unwrap();
        symlink("LOOP.md", folder.join("LOOP.md")).unwrap();
        fs::create_dir(folder.join("FOLDER.md")).unwrap();
        fs::write(folder.join("BINARY.md"), b"a\0b").unwrap();
        fs::write(folder.join("EMPTY.md"), "").unwrap();
        let pipe = folder.join("PIPE.md");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let names = ["AGENTS.md", "CLAUDE.md", "OUT.md", "FAR.md", "LOOP.md"];
        let expected = [
            told("AGENTS.md", "Be brief, please.", 17),
            told("CLAUDE.md", "Be brief, please.", 17),
        ];
        assert_eq!(read(&folder, &names, 1_000), expected);
        let names = ["FOLDER.md", "BINARY.md", "EMPTY.md", "PIPE.md", "../secret"];
        assert_eq!(read(&folder, &names, 1_000), []);
        let cut = [told("AGENTS.md", "Be brief", 17)];
        assert_eq!(read(&folder, &["AGENTS.md"], 8), cut);
    }
}
