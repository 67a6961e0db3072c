//! Tests copies of real folders.

use std::{
    ffi::CString,
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

use super::*;

struct Pair {
    _home: tempfile::TempDir,
    from: std::path::PathBuf,
    to: std::path::PathBuf,
}

fn pair() -> Pair {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    fs::create_dir(&from).unwrap();
    fs::create_dir(&to).unwrap();
    fs::write(home.path().join("secret"), "not yours").unwrap();
    Pair {
        _home: home,
        from,
        to,
    }
}

fn copied(pair: &Pair, limit: u64) -> Result<CopyResult, Errno> {
    copy_tree(&pair.from, &pair.to, limit, &CopyWatch::default())
}

#[test]
fn files_links_modes_and_times_are_the_same_and_nothing_is_followed() {
    let pair = pair();
    let (from, to) = (&pair.from, &pair.to);
    fs::create_dir_all(from.join("a/b")).unwrap();
    fs::write(from.join("a/b/file"), "hello").unwrap();
    fs::write(from.join("run"), "#!/bin/sh").unwrap();
    fs::set_permissions(from.join("run"), Permissions::from_mode(0o750)).unwrap();
    fs::write(from.join("closed"), "x").unwrap();
    fs::set_permissions(from.join("closed"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(from.join("a"), Permissions::from_mode(0o555)).unwrap();
    symlink("../secret", from.join("out")).unwrap();
    symlink("/etc", from.join("folder")).unwrap();
    mknodat(
        open(from, FOLDER, Mode::empty()).unwrap(),
        "pipe",
        FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    let old = Timespec {
        tv_sec: 1_000_000,
        tv_nsec: 5,
    };
    let times = Timestamps {
        last_access: old,
        last_modification: old,
    };
    futimens(File::open(from.join("run")).unwrap(), &times).unwrap();

    assert!(matches!(copied(&pair, 1 << 20), Ok(CopyResult::Whole(bytes)) if bytes > 512 * 7));
    assert_eq!(fs::read(to.join("a/b/file")).unwrap(), b"hello");
    let about = |name: &str| fs::symlink_metadata(to.join(name)).unwrap();
    assert_eq!(about("run").permissions().mode() & 0o7777, 0o750);
    assert_eq!(about("run").mtime(), 1_000_000);
    assert_eq!(about("closed").permissions().mode() & 0o7777, 0);
    assert_eq!(about("closed").len(), 1);
    assert_eq!(about("a").permissions().mode() & 0o7777, 0o555);
    assert_eq!(
        fs::read_link(to.join("out")).unwrap(),
        Path::new("../secret")
    );
    assert_eq!(fs::read_link(to.join("folder")).unwrap(), Path::new("/etc"));
    let kind = FileType::from_raw_mode(about("pipe").mode());
    assert_eq!(kind, FileType::Fifo);
    // A file that was made readable for a moment is closed again.
    let first = fs::symlink_metadata(from.join("closed")).unwrap();
    assert_eq!(first.permissions().mode() & 0o7777, 0);
    // So that the folder can be removed.
    for folder in [from, to] {
        fs::set_permissions(folder.join("a"), Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_hole_stays_a_hole() {
    let pair = pair();
    let made = File::create(pair.from.join("sparse")).unwrap();
    made.set_len(64 << 20).unwrap();
    made.write_all_at(b"end", (64 << 20) - 3).unwrap();
    assert!(matches!(copied(&pair, 1 << 20), Ok(CopyResult::Whole(_))));
    let copy = fs::metadata(pair.to.join("sparse")).unwrap();
    assert_eq!(copy.len(), 64 << 20);
    assert!(copy.blocks() * 512 < 1 << 20);
    let whole = fs::read(pair.to.join("sparse")).unwrap();
    assert!(whole.ends_with(b"\0end"));
}

#[test]
fn what_is_too_large_too_deep_or_not_there_is_told() {
    let pair = pair();
    fs::write(pair.from.join("big"), vec![1; 1 << 20]).unwrap();
    assert_eq!(copied(&pair, 1 << 19), Ok(CopyResult::TooLarge));
    fs::remove_file(pair.from.join("big")).unwrap();
    let deep = (0..=MAX_DEPTH).fold(pair.from.clone(), |path, _| path.join("d"));
    fs::create_dir_all(deep).unwrap();
    assert_eq!(copied(&pair, u64::MAX), Ok(CopyResult::TooLarge));
    let nothing = pair.from.with_file_name("nothing");
    let watch = CopyWatch::default();
    let missing = copy_tree(&nothing, &pair.to, 1, &watch);
    assert_eq!(missing, Ok(CopyResult::Missing));
}

#[test]
fn a_copy_that_nobody_waits_for_ends() {
    let pair = pair();
    fs::write(pair.from.join("file"), "x").unwrap();
    let watch = CopyWatch::default();
    drop(watch.stop_on_drop());
    let stopped = copy_tree(&pair.from, &pair.to, 1 << 20, &watch);
    assert_eq!(stopped, Err(Errno::CANCELED));
}

/// Names that are not valid text are copied too.
#[test]
fn any_name_is_copied() {
    let pair = pair();
    let folder = open(&pair.from, FOLDER, Mode::empty()).unwrap();
    let name = CString::new([0xff, b'\n', b' ']).unwrap();
    openat(&folder, &name, WRITE, Mode::RUSR).unwrap();
    assert!(matches!(copied(&pair, 1 << 20), Ok(CopyResult::Whole(_))));
    let made = open(&pair.to, FOLDER, Mode::empty()).unwrap();
    assert!(statat(&made, &name, AtFlags::empty()).is_ok());
}
