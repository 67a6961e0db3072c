//! Fuzzes the reading of uploaded skills.

use super::archive::{Limits, read_upload};
use super::path::is_skill_name;
use super::{Bundle, read_document};

const LIMITS: Limits = Limits {
    bytes: 64 * 1024,
    files: 20,
};

/// An accepted upload is within the limits, has only paths below its folder, and is unchanged after it was
/// stored.
#[test]
fn skills() {
    sepal_fuzz::check("skills", |input| {
        let upload = match read_upload(input, LIMITS) {
            Ok(upload) => upload,
            Err(problems) => {
                assert!(!problems.is_empty());
                for problem in problems {
                    assert!(!problem.message.is_empty() && !problem.remedy.is_empty());
                    assert!(problem.at.len() + problem.message.len() < 4 * 1024);
                }
                return;
            }
        };
        let facts = upload.bundle.facts();
        assert!(facts.len() <= LIMITS.files);
        assert!(facts.iter().map(|file| file.bytes).sum::<u64>() <= LIMITS.bytes);
        for file in &facts {
            let mut parts = file.path.split('/');
            assert!(
                parts.all(|part| !part.is_empty() && part != ".."),
                "{file:?}"
            );
        }
        let kept = upload.bundle.to_zip(None).unwrap();
        let again = Bundle::from_zip(&kept).unwrap();
        assert_eq!(again.hash(), upload.bundle.hash());
        let folder = upload.folder.as_deref();
        let Some(file) = upload.bundle.file(super::SKILL_FILE) else {
            return;
        };
        if let Ok(document) = read_document(&file.content, folder) {
            let manifest = document.manifest;
            assert!(is_skill_name(&manifest.name));
            assert!((1..=1024).contains(&manifest.description.chars().count()));
            assert!(folder.is_none_or(|folder| folder == manifest.name));
        }
    });
}
