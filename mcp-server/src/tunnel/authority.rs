//! The authority of this sandbox alone, by which the gateway speaks for the hosts where it puts secrets in.
//!
//! Programs look for authorities in many ways; all of those get one file with those of the system and this
//! one. Nothing secret is in it.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::Path,
};

/// Where the gateway says it, as PEM.
pub(super) const VARIABLE: &str = "SEPAL_TUNNEL_AUTHORITY";
/// The file that programs get.
pub(super) const FILE: &str = "/tmp/sepal-authorities.pem";
/// Where systems keep theirs in one file.
pub(super) const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];
/// What adds a file to what a program believes already, or is all that a program without any has.
const ADDING: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"];
/// What takes the place of the authorities that a program brings along.
const REPLACING: [&str; 7] = [
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
];

/// Writes the file of the system's authorities (the first of those files that can be read) and `own`; the
/// variables by which programs find it.
pub(super) fn provide<'f>(
    own: &OsStr,
    system: impl IntoIterator<Item = OsString>,
    file: &'f Path,
) -> io::Result<Vec<(&'static str, &'f Path)>> {
    let own = own.as_encoded_bytes();
    let mut system = system.into_iter();
    let known = system.find_map(|file| fs::read(file).ok());
    let all = [known.as_deref().unwrap_or_default(), own].join(&b'\n');
    fs::write(file, all)?;
    // Who brings authorities along would lose them for this one alone.
    let replacing = REPLACING.iter().filter(|_| known.is_some());
    let names = ADDING.iter().chain(replacing);
    Ok(names.map(|name| (*name, file)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_stay_and_nobody_loses_what_it_brings_along() {
        let folder = tempfile::tempdir().unwrap();
        let (system, file) = (folder.path().join("system"), folder.path().join("all"));
        let missing = folder.path().join("missing").into_os_string();
        let names = |system: &[OsString]| {
            let found = provide(OsStr::new("own\n"), system.iter().cloned(), &file).unwrap();
            assert!(found.iter().all(|(_, path)| *path == file));
            found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(std::slice::from_ref(&missing)), ADDING);
        assert_eq!(fs::read_to_string(&file).unwrap(), "\nown\n");
        fs::write(&system, "theirs").unwrap();
        let both = names(&[missing, system.into_os_string()]);
        assert!(both.contains(&"REQUESTS_CA_BUNDLE") && both.contains(&"SSL_CERT_FILE"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs\nown\n");
    }
}
