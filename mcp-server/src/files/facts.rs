//! What is known of the file that a `write_file` would change, for the card on which people decide.

use std::{
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use serde::Serialize;

use super::{Workspace, read, write};
use crate::failure::Failure;

/// Lines are counted in files of this size at most.
const MAX_COUNTED_BYTES: u64 = 4 * 1024 * 1024;

/// A file as it is now.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileFacts {
    /// Whether it is there. Otherwise nothing else says anything.
    exists: bool,
    /// Only of text of at most [`MAX_COUNTED_BYTES`]; a newline at the end begins no further line.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    bytes: u64,
    /// As `read_file` sees it; what cannot be read is no text.
    is_text: bool,
}

/// Looks at the file that `write_file` with that path would write. A path that it would refuse is
/// refused here as well; nothing is made.
pub(crate) fn facts(workspace: &Workspace, path: &str) -> Result<FileFacts, Failure> {
    let target = write::target(workspace, path)?;
    // Before anything is opened: a pipe or a device is never touched.
    let found = match workspace.root.symlink_metadata(&target) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileFacts::default()),
        Err(error) => return Err(Failure::of(path, &error)),
    };
    write::check_file(&found, path)?;
    let bytes = found.len();
    let (is_text, lines) = text(workspace, &target, path).unwrap_or_default();
    let lines = lines.filter(|_| bytes <= MAX_COUNTED_BYTES);
    Ok(FileFacts {
        exists: true,
        lines,
        bytes,
        is_text,
    })
}

/// Whether it is text, and of how many lines, if it is short enough to count them.
fn text(workspace: &Workspace, target: &Path, path: &str) -> Result<(bool, Option<u64>), Failure> {
    let file = read::open(&workspace.root, target, path)?;
    let failed = |error: io::Error| Failure::of(path, &error);
    let size = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(read::SNIFF_BYTES, file);
    if read::binary_format(reader.fill_buf().map_err(failed)?).is_some() {
        return Ok((false, None));
    }
    if size > MAX_COUNTED_BYTES {
        return Ok((true, None));
    }
    // A file may grow while it is read.
    let lines = lines(reader.take(MAX_COUNTED_BYTES)).map_err(failed)?;
    Ok((true, Some(lines)))
}

fn lines(mut reader: impl BufRead) -> io::Result<u64> {
    let (mut lines, mut is_inside) = (0, false);
    loop {
        let buffer = reader.fill_buf()?;
        let Some(last) = buffer.last() else {
            return Ok(lines + u64::from(is_inside));
        };
        is_inside = *last != b'\n';
        let ended = buffer.split(|byte| *byte == b'\n').skip(1).count();
        lines += ended as u64;
        let length = buffer.len();
        reader.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::lines;

    #[test]
    fn lines_are_counted_as_people_do() {
        for (text, expected) in [
            ("", 0),
            ("one", 1),
            ("one\n", 1),
            ("one\n\ntwo", 3),
            ("\n", 1),
        ] {
            let reader = BufReader::with_capacity(2, text.as_bytes());
            assert_eq!(lines(reader).unwrap(), expected, "{text:?}");
        }
    }
}
