//! Fuzzes the parser of the archives given to `sepal restore`, which are untrusted input.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use sepal_core::domain::SandboxId;

use super::reading::unpack;

/// The size of a tar block, in bytes.
const BLOCK: usize = 512;
/// The byte ranges of the file size and the checksum in a tar header.
const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: std::ops::Range<usize> = 148..156;

#[test]
fn backup_archive() {
    sepal_fuzz::check("backup_archive", |input| {
        let (choice, bytes) = sepal_fuzz::choice(input);
        let archive = match choice % 3 {
            0 => bytes.to_vec(),
            1 => compressed(bytes),
            // Without valid header checksums, the parser would reject almost every mutated input early.
            _ => compressed(&with_checksums(bytes)),
        };
        let folder = sepal_fuzz::scratch();
        let (file, stage) = (folder.path().join("a.tar.gz"), folder.path().join("stage"));
        fs::write(&file, &archive).unwrap();
        fs::create_dir(&stage).unwrap();
        let unpacked = unpack(&file, &stage);
        let names = [
            "sepal.db",
            "secret.key",
            "mcp-config.json",
            "settings.yaml",
            "settings.json",
        ];
        let mut bytes = 0;
        for entry in fs::read_dir(&stage).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            let is_workspace = name
                .to_str()
                .and_then(|name| SandboxId::parse(name.strip_suffix(".tar")?))
                .is_some();
            assert!(
                is_workspace || names.iter().any(|known| **known == *name),
                "{}",
                name.display()
            );
            assert!(entry.file_type().unwrap().is_file());
            bytes += entry.metadata().unwrap().len();
        }
        if let Ok(manifest) = unpacked {
            let told: u64 = manifest.files.iter().map(|part| part.bytes).sum();
            assert_eq!(bytes, told);
        }
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "nothing beside it"
        );
    });
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a copy of the archive with a valid checksum in each header.
fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut archive = bytes.to_vec();
    let mut at = 0;
    while let Some(header) = archive.get_mut(at..at + BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        header[CHECKSUM].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let size = std::str::from_utf8(&header[SIZE]).unwrap_or_default();
        let size = usize::from_str_radix(size.trim_matches(['\0', ' ']), 8).unwrap_or_default();
        let blocks = size.div_ceil(BLOCK).min(archive.len());
        at += BLOCK * (1 + blocks);
    }
    archive
}
