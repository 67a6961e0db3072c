//! Tests with bundles as strangers pack them: each problem is reported in words, and a valid bundle becomes
//! an entry.

mod filled;
mod hostile;
mod projects;

use std::io::{Cursor, Write as _};

use serde_json::{Value, json};
use zip::write::{SimpleFileOptions, ZipWriter};

use super::facts::BundleFacts;
use super::inspect;

/// The limit of a bundle's unpacked size in these tests.
const MOST: u64 = 64 << 20;

/// Packs files, each with its Unix mode.
fn pack(files: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content, mode) in files {
        let options = SimpleFileOptions::default().unix_permissions(*mode);
        zip.start_file(*name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn manifest() -> Value {
    json!({
        "manifest_version": "0.3", "name": "notes", "display_name": "Notes", "version": "1.2.3",
        "description": "Keeps notes.", "author": {"name": "Ada"},
        "server": {
            "type": "node", "entry_point": "server/index.js",
            "mcp_config": {"command": "node", "args": ["${__dirname}/server/index.js"]},
        },
    })
}

/// Returns the manifest with one member changed, by its JSON pointer.
fn with(pointer: &str, value: Value) -> Value {
    let mut manifest = manifest();
    let (above, last) = pointer.rsplit_once('/').unwrap();
    let above = manifest
        .pointer_mut(above)
        .unwrap()
        .as_object_mut()
        .unwrap();
    if value.is_null() {
        above.remove(last);
    } else {
        above.insert(last.to_owned(), value);
    }
    manifest
}

fn bundle(manifest: &Value, more: &[(&str, &[u8], u32)]) -> Vec<u8> {
    let text = manifest.to_string();
    let own: [(&str, &[u8], u32); 2] = [
        ("manifest.json", text.as_bytes(), 0o644),
        ("server/index.js", b"1", 0o644),
    ];
    pack(&[&own, more].concat())
}

fn facts(manifest: &Value) -> BundleFacts {
    inspect(&bundle(manifest, &[]), MOST).unwrap()
}

/// Replaces every `from` in a file by `to`, to make names that no packer writes.
fn patched(file: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut file = file.to_vec();
    let mut at = 0;
    while let Some(found) = file[at..]
        .windows(from.len())
        .position(|it| it == from.as_bytes())
    {
        file[at + found..at + found + to.len()].copy_from_slice(to.as_bytes());
        at += found + to.len();
    }
    file
}

#[track_caller]
fn refused(file: &[u8], field: &str, words: &str) {
    let problems = inspect(file, MOST).unwrap_err();
    let said = problems
        .iter()
        .any(|it| it.field == field && it.message.contains(words));
    assert!(said, "{field} {words}: {problems:?}");
}
