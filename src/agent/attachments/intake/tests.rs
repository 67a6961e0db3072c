//! Tests the intake of ordinary and hostile files.

use std::io::Cursor;

use image::{DynamicImage, GenericImageView as _, ImageFormat, Rgb, RgbImage, RgbaImage};

use super::{AttachmentError, MAX_EDGE, MAX_TEXT_BYTES, clean_name, is_image, prepare};
use crate::domain::{BlobId, MediaType};

fn written(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Left half red, right half blue.
fn two_halves(width: u32, height: u32) -> DynamicImage {
    let half = |x, _| {
        let is_left = x < width / 2;
        Rgb(if is_left { [255, 0, 0] } else { [0, 0, 255] })
    };
    RgbImage::from_fn(width, height, half).into()
}

/// A JPEG with an EXIF segment that holds an orientation and a place.
fn photograph(orientation: u8) -> Vec<u8> {
    let jpeg = written(&two_halves(16, 8), ImageFormat::Jpeg);
    let mut exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif.extend(b"SECRET PLACE");
    let length = u16::try_from(exif.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], &[0xff, 0xe1], &length, &exif, &jpeg[2..]].concat()
}

/// Some picture formats begin with plain letters; only the accepted formats count as pictures.
#[test]
fn a_text_that_begins_like_a_picture_is_a_text() {
    for text in [
        "BMW is a car",
        "P1 incident notes",
        "P6: pixels",
        "farbfeld is a format",
    ] {
        assert!(!is_image(text.as_bytes()), "{text}");
        let (attachment, _) = prepare("notes.txt", text.into()).unwrap();
        assert_eq!(attachment.media_type, MediaType::Text, "{text}");
    }
    let bitmap = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0".to_vec();
    assert!(matches!(
        prepare("a.bmp", bitmap),
        Err(AttachmentError::Kind)
    ));
}

/// Asserts S3.19: the bytes decide the type.
#[test]
fn the_bytes_say_what_it_is() {
    fn check(bytes: Vec<u8>, expected: Option<(MediaType, Option<u32>)>) {
        let prepared = prepare("cat.png", bytes).ok();
        let found = prepared.map(|(it, content)| {
            assert_eq!(it.id, BlobId::of(&content));
            assert_eq!(it.bytes, content.len() as u64);
            (it.media_type, it.width)
        });
        assert_eq!(found, expected);
    }
    let image = two_halves(4, 2);
    let (png, jpeg) = (MediaType::Png, MediaType::Jpeg);
    check(written(&image, ImageFormat::Png), Some((png, Some(4))));
    check(written(&image, ImageFormat::Jpeg), Some((jpeg, Some(4))));
    check(written(&image, ImageFormat::Gif), Some((png, Some(4))));
    check(written(&image, ImageFormat::WebP), Some((jpeg, Some(4))));
    let clear: DynamicImage = RgbaImage::new(4, 2).into();
    check(written(&clear, ImageFormat::WebP), Some((png, Some(4))));
    check(b"%PDF-1.7 and so on".to_vec(), Some((MediaType::Pdf, None)));
    check("grün".into(), Some((MediaType::Text, None)));
    check(b"<svg onload='x'>".to_vec(), Some((MediaType::Text, None)));
    for refused in [
        b"".as_slice(),
        b"\x7fELF\x02\0\0",
        b"BM\x1a\0\0\0\0\0\0\0",
        b"\xff\xfe\xfd",
        b"text with \0",
        b"\x89PNG\r\n\x1a\n and no picture",
        b"\xff\xd8\xff and no picture",
    ] {
        check(refused.to_vec(), None);
    }
    let long = prepare("a.txt", vec![b'a'; MAX_TEXT_BYTES + 1]);
    assert!(matches!(long, Err(AttachmentError::TooLong)));
}

#[test]
fn a_picture_stands_upright_and_tells_nothing_else() {
    // Rotated by 90 degrees: the left half is now on top.
    let (it, content) = prepare("a.jpg", photograph(6)).unwrap();
    assert_eq!((it.width, it.height), (Some(8), Some(16)));
    let image = image::load_from_memory(&content).unwrap();
    assert!(image.get_pixel(4, 2)[0] > 200 && image.get_pixel(4, 13)[2] > 200);
    let told = content.windows(6).any(|part| part == b"SECRET");
    assert!(!told, "metadata");
}

#[test]
fn a_large_picture_becomes_small_and_keeps_its_shape() {
    let (it, _) = prepare("a.png", written(&two_halves(3136, 10), ImageFormat::Png)).unwrap();
    assert_eq!((it.width, it.height), (Some(MAX_EDGE), Some(5)));
    let (it, _) = prepare("a.png", written(&two_halves(1, 3136), ImageFormat::Png)).unwrap();
    assert_eq!((it.width, it.height), (Some(1), Some(MAX_EDGE)));
}

/// Asserts S3.19: a small file that claims a huge picture is refused before memory is allocated.
#[test]
fn a_pixel_bomb_is_refused() {
    let mut png = written(&two_halves(2, 2), ImageFormat::Png);
    // Width and height follow the length and name of the first chunk; the checksum follows them.
    png[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    let sum = crc(&png[12..29]).to_be_bytes();
    png[29..33].copy_from_slice(&sum);
    let refused = prepare("a.png", png).unwrap_err();
    assert!(
        matches!(
            refused,
            AttachmentError::TooManyPixels(_) | AttachmentError::Unreadable(_)
        ),
        "{refused}"
    );
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 * (sum & 1))
        })
    })
}

#[test]
fn names_are_one_line_without_folders() {
    for (name, expected) in [
        ("cat.png", "cat.png"),
        ("/home/me/cat.png", "cat.png"),
        ("C:\\me\\cat.png", "cat.png"),
        ("a\r\nb\"c", "abc"),
        ("  ", "image.png"),
        ("..", ".."),
    ] {
        assert_eq!(clean_name(name, MediaType::Png), expected);
    }
    let long = clean_name(&"ä".repeat(300), MediaType::Png);
    assert_eq!(long.chars().count(), 200);
}
