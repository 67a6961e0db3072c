//! `read_file`: a range of lines, bounded by bytes; for binary files only what they are.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::{fs::OFlags, io::Errno};

use super::Workspace;
use super::encoding::{Decoded, Utf16, Utf16Reader, decoded};
use crate::{failure::Failure, tools::ReadFile};

/// The most text that one call returns.
const MAX_READ_BYTES: usize = 100 * 1024;
/// How far into a file we look for what only binary files hold.
pub(super) const SNIFF_BYTES: usize = 8 * 1024;

/// First bytes by which common binary formats are known.
const FORMATS: [(&[u8], &str); 12] = [
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"RIFF", "RIFF (WebP, WAV or AVI)"),
    (b"%PDF", "PDF document"),
    (b"PK\x03\x04", "ZIP archive (or a document based on it)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "ELF program or library"),
    (b"SQLite format 3", "SQLite database"),
];

/// The text of the file, then, where something was left out, a note how to get it.
pub(crate) fn read(workspace: &Workspace, arguments: &ReadFile) -> Result<Vec<String>, Failure> {
    let path = arguments.path.as_str();
    let file = open(&workspace.root, &workspace.resolve(path)?.path, path)?;
    let size = file
        .metadata()
        .map_err(|error| Failure::of(path, &error))?
        .len();
    let mut reader = BufReader::with_capacity(SNIFF_BYTES, file);
    let start = reader
        .fill_buf()
        .map_err(|error| Failure::of(path, &error))?;
    if start.is_empty() {
        return Ok(vec![String::new(), format!("[`{path}` is empty.]")]);
    }
    let utf16 = Utf16::of(start);
    if let Some(format) = binary_format(start).filter(|_| utf16.is_none()) {
        return Err(Failure::new(format!(
            "`{path}` is not text but {format}, {size} bytes. Use execute_command with a program \
             that understands it."
        )));
    }
    let part = match utf16 {
        Some(order) => Part::cut(&mut Utf16Reader::new(reader, order), arguments),
        None => Part::cut(&mut reader, arguments),
    };
    let part = part.map_err(|error| Failure::of(path, &error))?;
    if part.text.is_empty() {
        return Err(Failure::new(format!(
            "`{path}` ends before line {}: it has {} lines. Use a smaller offset.",
            arguments.offset,
            part.next.saturating_sub(1)
        )));
    }
    let (text, decoded) = decoded(&part.text, part.ending == Ending::InsideLine);
    let mut texts = vec![text.into_owned()];
    texts.extend(part.note(path));
    texts.extend(encoding_note(path, utf16, decoded));
    Ok(texts)
}

/// Tells that a file is not UTF-8, because `write_file` writes nothing else.
fn encoding_note(path: &str, utf16: Option<Utf16>, decoded: Decoded) -> Option<String> {
    let encoding = match (utf16, decoded) {
        (Some(order), _) => order.name(),
        (None, Decoded::Latin1) => "Latin-1 (Windows-1252)",
        (None, Decoded::Damaged) => {
            return Some(format!(
                "[`{path}` has bytes that are not UTF-8; each is shown as \u{fffd}. Use execute_command, \
                 for example with `xxd`, to see them.]"
            ));
        }
        (None, Decoded::Utf8) => return None,
    };
    Some(format!(
        "[`{path}` is not UTF-8 but {encoding}, and is shown as UTF-8. write_file writes UTF-8: use \
         execute_command with `iconv` to keep its encoding.]"
    ))
}

/// Opens a regular file that the model calls `path`. A pipe without a writer would block for ever,
/// hence `NONBLOCK`.
pub(super) fn open(root: &Dir, target: &Path, path: &str) -> Result<File, Failure> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default());
    let file = root
        .open_with(target, &options)
        .map_err(|error| Failure::of(path, &error))?
        .into_std();
    let kind = file.metadata().map_err(|error| Failure::of(path, &error))?;
    if kind.is_dir() {
        return Err(Failure::of(path, &Errno::ISDIR.into()));
    }
    if !kind.is_file() {
        return Err(Failure::of(path, &Errno::NXIO.into()));
    }
    Ok(file)
}

/// What a file is that begins so; `None` for text.
pub(super) fn binary_format(start: &[u8]) -> Option<&'static str> {
    FORMATS
        .iter()
        .find(|(magic, _)| start.starts_with(magic))
        .map(|(_, format)| *format)
        .or_else(|| start.contains(&0).then_some("binary data"))
}

/// A run of lines cut out of a file.
#[derive(Debug, Default, PartialEq)]
struct Part {
    text: Vec<u8>,
    first: u32,
    /// The line after the last one in `text`.
    next: u32,
    ending: Ending,
}

#[derive(Debug, Default, PartialEq)]
enum Ending {
    #[default]
    EndOfFile,
    MoreLines,
    /// One line alone is longer than a call may return.
    InsideLine,
}

impl Part {
    fn cut(reader: &mut impl BufRead, range: &ReadFile) -> io::Result<Self> {
        let first = range.offset.max(1);
        let after = first.saturating_add(range.limit.max(1));
        let mut part = Self {
            first,
            next: 1,
            ..Self::default()
        };
        loop {
            let buffer = reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(part.finish());
            }
            if part.next >= after {
                part.ending = Ending::MoreLines;
                return Ok(part);
            }
            let length = buffer
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(buffer.len(), |position| position + 1);
            let piece = buffer.get(..length).unwrap_or(buffer);
            let ends_line = piece.ends_with(b"\n");
            if part.next >= first {
                let room = MAX_READ_BYTES - part.text.len();
                part.text.extend(piece.iter().take(room));
                if piece.len() > room {
                    return Ok(part.shorten());
                }
            }
            part.next += u32::from(ends_line);
            reader.consume(length);
        }
    }

    /// A last line without a newline counts too.
    fn finish(mut self) -> Self {
        if self.text.last().is_some_and(|byte| *byte != b'\n') {
            self.next += 1;
        }
        self
    }

    /// Goes back to the last whole line, if there is one.
    fn shorten(mut self) -> Self {
        self.ending = match self.text.iter().rposition(|byte| *byte == b'\n') {
            Some(position) => {
                self.text.truncate(position + 1);
                Ending::MoreLines
            }
            None => Ending::InsideLine,
        };
        self
    }

    fn note(&self, path: &str) -> Option<String> {
        let (first, last) = (self.first, self.next.saturating_sub(1));
        match self.ending {
            Ending::EndOfFile => None,
            Ending::MoreLines => Some(format!(
                "[Lines {first} to {last} of `{path}`. It goes on: read it with offset {}.]",
                self.next
            )),
            Ending::InsideLine => Some(format!(
                "[Line {first} of `{path}` is longer than {MAX_READ_BYTES} bytes and was cut. Use \
                 execute_command with `cut` or `head -c` for the rest.]"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, offset: u32, limit: u32, expected: (&str, u32, Ending)) {
        let range = ReadFile {
            path: String::new(),
            offset,
            limit,
        };
        let part = Part::cut(&mut BufReader::with_capacity(2, content.as_bytes()), &range).unwrap();
        let found = (
            String::from_utf8(part.text).unwrap(),
            part.next,
            part.ending,
        );
        assert_eq!(found, (expected.0.to_owned(), expected.1, expected.2));
    }

    /// Asserts S2.47.
    #[test]
    fn ranges_of_lines() {
        check("one\ntwo\n", 1, 10, ("one\ntwo\n", 3, Ending::EndOfFile));
        check("one\ntwo", 1, 10, ("one\ntwo", 3, Ending::EndOfFile));
        check("one\ntwo\n", 1, 1, ("one\n", 2, Ending::MoreLines));
        check("one\ntwo\n", 2, 1, ("two\n", 3, Ending::EndOfFile));
        check("one\ntwo\n", 3, 1, ("", 3, Ending::EndOfFile));
        check(
            "one\ntwo\nthree",
            2,
            u32::MAX,
            ("two\nthree", 4, Ending::EndOfFile),
        );
    }

    #[test]
    fn a_long_file_ends_at_a_whole_line_and_a_long_line_is_cut() {
        let line = format!("{}\n", "x".repeat(MAX_READ_BYTES - 10));
        check(&line.repeat(2), 1, 10, (&line, 2, Ending::MoreLines));
        let long = "y".repeat(MAX_READ_BYTES * 2);
        check(
            &long,
            1,
            10,
            (&long[..MAX_READ_BYTES], 1, Ending::InsideLine),
        );
    }
}
