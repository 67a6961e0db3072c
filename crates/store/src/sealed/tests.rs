//! Tests that a sealed value opens only with its key, in its place and unchanged, and that a folder's key is
//! generated once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{DataDir, Error, MAX_BYTES, Sealer, SecretKeys, UnsealError};

fn with_key(secret: &str) -> Sealer {
    Sealer::with_key(&secret.into())
}

#[track_caller]
fn refused(keeper: &Sealer, context: &str, sealed: &str, why: UnsealError) {
    match keeper.open(context, sealed) {
        Err(Error::Sealed(told)) => assert_eq!(told, why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_sealed_opens_in_its_own_place_only() {
    let keeper = with_key("one");
    for plain in [&b"sk-secret"[..], b"", &[0xff; 3000], &vec![7; MAX_BYTES]] {
        let sealed = keeper.seal("provider/installation/a", plain).unwrap();
        let opened = keeper.open("provider/installation/a", &sealed).unwrap();
        assert_eq!(&opened[..], plain);
        let elsewhere = "provider/installation/b";
        refused(&keeper, elsewhere, &sealed, UnsealError::Changed);
    }
    let (one, two) = (keeper.seal("a", b"x"), keeper.seal("a", b"x"));
    assert_ne!(one.unwrap(), two.unwrap());
    let large = keeper.seal("a", &vec![0; MAX_BYTES + 1]);
    assert!(matches!(large, Err(Error::TooLarge { .. })));
}

#[test]
fn a_changed_value_does_not_open() {
    let keeper = with_key("one");
    let sealed = keeper.seal("a", b"secret").unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let why = match at {
            0 => UnsealError::OtherForm,
            1..=4 => UnsealError::OtherKey,
            _ => UnsealError::Changed,
        };
        refused(&keeper, "a", &URL_SAFE_NO_PAD.encode(changed), why);
    }
    for (length, why) in [(40, UnsealError::Changed), (20, UnsealError::OtherForm)] {
        let cut = URL_SAFE_NO_PAD.encode(&bytes[..length]);
        refused(&keeper, "a", &cut, why);
    }
    for nothing in ["", "sk-plain", "§"] {
        refused(&keeper, "a", nothing, UnsealError::OtherForm);
    }
}

#[test]
fn another_key_says_so() {
    let sealed = with_key("one").seal("a", b"secret").unwrap();
    let refusal = with_key("two").open("a", &sealed).unwrap_err();
    let text = "the secret key is not the one that sealed this";
    assert_eq!(refusal.to_string(), text);
    assert!(with_key("one").open("a", &sealed).is_ok());
    assert_eq!(format!("{:?}", with_key("one")), "Sealer(…)");
}

fn in_folder(folder: &Path) -> Result<Sealer, Error> {
    let keys = SecretKeys::default().resolve(&DataDir::open_beside(folder)?);
    Ok(Sealer::with_key(&keys?.0))
}

#[test]
fn the_key_of_a_folder_is_private_and_drawn_once() {
    let folder = tempfile::tempdir().unwrap();
    let starts: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| in_folder(folder.path()).unwrap()))
            .collect();
        starts.into_iter().map(|s| s.join().unwrap()).collect()
    });
    let sealed = starts[0].seal("a", b"secret").unwrap();
    for sealer in &starts {
        assert_eq!(&sealer.open("a", &sealed).unwrap()[..], b"secret");
    }
    let file = folder.path().join("secret.key");
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // Permissions of a copy that was restored as readable by others are restricted again.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(in_folder(folder.path()).unwrap().open("a", &sealed).is_ok());
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn a_key_file_without_a_key_is_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret.key");
    for content in ["", "hello", &"g".repeat(64)] {
        fs::write(&file, content).unwrap();
        let refusal = in_folder(folder.path()).unwrap_err().to_string();
        let path = file.display();
        let text = format!("cannot use `{path}`: it holds no key of 64 hex digits");
        assert_eq!(refusal, text);
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
}

#[test]
fn a_keyring_opens_what_it_and_earlier_releases_sealed() {
    let (old, new) = (with_key("one"), with_key("two"));
    let drawn = Sealer::draw(["one".into()].iter());
    let kept = drawn.seal_keys("ring", &old).unwrap();
    refused(&new, "ring", &kept, UnsealError::OtherKey);
    let opened = old.open_keys("ring", &kept).unwrap();
    let again = opened.seal_keys("ring", &new).unwrap();
    let opened = new.open_keys("ring", &again).unwrap();
    for earlier in [&old, &drawn] {
        let sealed = earlier.seal("a", b"secret").unwrap();
        assert_eq!(&opened.open("a", &sealed).unwrap()[..], b"secret");
    }
    // New values are sealed with none of the secret keys.
    let sealed = opened.seal("a", b"secret").unwrap();
    refused(&old, "a", &sealed, UnsealError::OtherKey);
    refused(&new, "a", &sealed, UnsealError::OtherKey);
    for broken in [&b""[..], &[0; 1], &[1; 33], &[0; 34], &[2; 33]] {
        let broken = old.seal("ring", broken).unwrap();
        assert!(old.open_keys("ring", &broken).is_err());
    }
}

#[test]
fn the_key_that_seals_next_is_there_before_it_seals() {
    let with = with_key("one");
    let pass = |keys: &Sealer| {
        let kept = keys.seal_keys("ring", &with).unwrap();
        with.open_keys("ring", &kept).unwrap()
    };
    let first = pass(&Sealer::draw([].iter()));
    assert!(first.advanced().is_none());
    let waiting = pass(&first.with_next());
    let sealed = waiting.seal("a", b"secret").unwrap();
    assert_eq!(&first.open("a", &sealed).unwrap()[..], b"secret");
    let last = pass(&pass(&waiting.with_next()).advanced().unwrap());
    assert!(last.advanced().is_none());
    assert_eq!(&last.open("a", &sealed).unwrap()[..], b"secret");
    let sealed = last.seal("a", b"secret").unwrap();
    assert_eq!(&waiting.open("a", &sealed).unwrap()[..], b"secret");
    refused(&first, "a", &sealed, UnsealError::OtherKey);
    assert!(first.is_closed(&sealed) && !last.is_closed(&sealed));
    for other in ["", "1h", "openai/a-model", "c2hvcnQ"] {
        assert!(!first.is_closed(other), "{other}");
    }
}
