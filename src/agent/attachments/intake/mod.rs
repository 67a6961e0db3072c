//! Turns an uploaded file into an attachment. Pure, and slow for pictures: they are decoded within limits,
//! turned upright, scaled down to what models read, and encoded anew, which drops all metadata.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use crate::domain::{Attachment, BlobId, MediaType};

/// The longest edge of a stored picture: vendors scale larger ones down to this.
const MAX_EDGE: u32 = 1568;
/// The most pixels of an uploaded picture. A small file may claim any number.
const MAX_PIXELS: u64 = 50_000_000;
/// The most bytes that a decoder may allocate for one picture.
const MAX_DECODED: u64 = 256 * 1024 * 1024;
/// The most bytes of a stored picture: as base64 it is below the limit of every vendor.
const MAX_IMAGE_BYTES: usize = 3_500_000;
/// The most bytes of a text: more would fill the window of most models.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The most characters of a name.
const MAX_NAME_CHARS: usize = 200;
const JPEG_QUALITY: u8 = 88;

/// The reason a file cannot be attached.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttachmentError {
    #[error("the file is empty")]
    Empty,
    #[error(
        "this kind of file cannot be attached; PNG, JPEG, GIF and WebP images, PDF and UTF-8 text can"
    )]
    Kind,
    #[error("the image has {0} million pixels; {most} million are the most", most = MAX_PIXELS / 1_000_000)]
    TooManyPixels(u64),
    #[error("a text file may have {most} bytes; put larger ones into the workspace", most = MAX_TEXT_BYTES)]
    TooLong,
    #[error("the image cannot be read; it may be damaged or too large")]
    Unreadable(#[source] image::ImageError),
    #[error("the image cannot be written")]
    Unwritable(#[source] image::ImageError),
}

/// An attachment and the content to store.
pub(super) type PreparedAttachment = (Attachment, Vec<u8>);

/// Prepares a file. Its type is detected from the bytes; the name and the sender's type are ignored.
pub(super) fn prepare(name: &str, bytes: Vec<u8>) -> Result<PreparedAttachment, AttachmentError> {
    if bytes.is_empty() {
        return Err(AttachmentError::Empty);
    }
    if let Some(format) = picture_format(&bytes) {
        return picture(name, &bytes, format);
    }
    if bytes.starts_with(b"%PDF-") {
        return Ok(kept(name, MediaType::Pdf, None, bytes));
    }
    if bytes.contains(&0) || std::str::from_utf8(&bytes).is_err() {
        return Err(AttachmentError::Kind);
    }
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(AttachmentError::TooLong);
    }
    Ok(kept(name, MediaType::Text, None, bytes))
}

/// Does the same for a file from an MCP server, which may also be a sound or any other bytes, for people and
/// as files. The bytes decide here as well; a text that is too long for models is stored as a binary file.
pub(super) fn prepare_of_server(
    name: &str,
    bytes: Vec<u8>,
) -> Result<PreparedAttachment, AttachmentError> {
    if let Some(kind) = audio_kind(&bytes) {
        return Ok(kept(name, kind, None, bytes));
    }
    let is_known = picture_format(&bytes).is_some() || bytes.starts_with(b"%PDF-");
    let is_text = !bytes.contains(&0) && std::str::from_utf8(&bytes).is_ok();
    if is_known || bytes.is_empty() || (is_text && bytes.len() <= MAX_TEXT_BYTES) {
        return prepare(name, bytes);
    }
    Ok(kept(name, MediaType::Binary, None, bytes))
}

/// Detects the kind of a sound by its first bytes.
fn audio_kind(bytes: &[u8]) -> Option<MediaType> {
    let is_wave = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE");
    // The header of an MPEG frame, layer III.
    let is_frame = matches!(bytes, [0xff, second, ..] if second & 0xe6 == 0xe2);
    if is_wave {
        Some(MediaType::Wav)
    } else if bytes.starts_with(b"ID3") || is_frame {
        Some(MediaType::Mp3)
    } else if bytes.starts_with(b"OggS") {
        Some(MediaType::Ogg)
    } else if bytes.starts_with(b"fLaC") {
        Some(MediaType::Flac)
    } else {
        None
    }
}

/// Returns true if [`prepare`] treats the bytes as a picture.
pub(super) fn is_image(bytes: &[u8]) -> bool {
    picture_format(bytes).is_some()
}

/// Detects the format of an accepted picture. The library knows more formats, some of which begin with two
/// plain letters, as texts do.
fn picture_format(bytes: &[u8]) -> Option<ImageFormat> {
    let taken = [
        ImageFormat::Png,
        ImageFormat::Jpeg,
        ImageFormat::Gif,
        ImageFormat::WebP,
    ];
    let format = image::guess_format(bytes).ok()?;
    taken.contains(&format).then_some(format)
}

fn kept(
    name: &str,
    media_type: MediaType,
    size: Option<(u32, u32)>,
    content: Vec<u8>,
) -> PreparedAttachment {
    let attachment = Attachment {
        id: BlobId::of(&content),
        name: clean_name(name, media_type),
        media_type,
        bytes: content.len() as u64,
        width: size.map(|(width, _)| width),
        height: size.map(|(_, height)| height),
        source: None,
    };
    (attachment, content)
}

/// Returns the last component of a path, on one line: the name goes into headers and to models.
fn clean_name(name: &str, media_type: MediaType) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = name.chars().filter(|c| !c.is_control() && *c != '"');
    let name: String = plain.take(MAX_NAME_CHARS).collect();
    let name = name.trim();
    if !name.is_empty() {
        return name.to_owned();
    }
    media_type.usual_name().to_owned()
}

fn picture(
    name: &str,
    bytes: &[u8],
    format: ImageFormat,
) -> Result<PreparedAttachment, AttachmentError> {
    let mut image = decode(bytes, format)?;
    if image.width().max(image.height()) > MAX_EDGE {
        image = image.thumbnail(MAX_EDGE, MAX_EDGE);
    }
    let size = Some((image.width(), image.height()));
    let is_opaque = is_opaque(&image);
    // Photographs stay JPEG; drawings and screenshots become PNG to keep their edges sharp.
    let is_photograph = format == ImageFormat::Jpeg || (format == ImageFormat::WebP && is_opaque);
    if !is_photograph {
        let content = png(&image, is_opaque)?;
        if content.len() <= MAX_IMAGE_BYTES {
            return Ok(kept(name, MediaType::Png, size, content));
        }
    }
    Ok(kept(name, MediaType::Jpeg, size, jpeg(image, is_opaque)?))
}

/// Reads from a picture's header how many pixels it claims to have; 0 if it is not a readable picture.
pub(super) fn pixels(bytes: &[u8]) -> u64 {
    let decoder = picture_format(bytes).and_then(|format| opened(bytes, format).ok());
    decoder.map_or(0, |decoder| {
        let (width, height) = decoder.dimensions();
        u64::from(width) * u64::from(height)
    })
}

fn opened(bytes: &[u8], format: ImageFormat) -> Result<impl ImageDecoder, AttachmentError> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    reader.into_decoder().map_err(AttachmentError::Unreadable)
}

fn decode(bytes: &[u8], format: ImageFormat) -> Result<DynamicImage, AttachmentError> {
    let mut decoder = opened(bytes, format)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels > MAX_PIXELS {
        return Err(AttachmentError::TooManyPixels(pixels.div_ceil(1_000_000)));
    }
    let upright = decoder.orientation().map_err(AttachmentError::Unreadable)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(AttachmentError::Unreadable)?;
    image.apply_orientation(upright);
    Ok(image)
}

fn is_opaque(image: &DynamicImage) -> bool {
    !image.color().has_alpha() || image.to_rgba8().pixels().all(|pixel| pixel.0[3] == u8::MAX)
}

fn png(image: &DynamicImage, is_opaque: bool) -> Result<Vec<u8>, AttachmentError> {
    let image = if is_opaque {
        DynamicImage::from(image.to_rgb8())
    } else {
        DynamicImage::from(image.to_rgba8())
    };
    let mut content = Cursor::new(Vec::new());
    let written = image.write_to(&mut content, ImageFormat::Png);
    written.map_err(AttachmentError::Unwritable)?;
    Ok(content.into_inner())
}

fn jpeg(image: DynamicImage, is_opaque: bool) -> Result<Vec<u8>, AttachmentError> {
    let image = if is_opaque {
        image.into_rgb8()
    } else {
        // JPEG has no transparency, so blend with white.
        let mut image = image.into_rgba8();
        for pixel in image.pixels_mut() {
            let [red, green, blue, alpha] = pixel.0.map(u16::from);
            let blend = |part: u16| {
                let whole = (part * alpha + 255 * (255 - alpha)) / 255;
                u8::try_from(whole).unwrap_or(u8::MAX)
            };
            pixel.0 = [blend(red), blend(green), blend(blue), u8::MAX];
        }
        DynamicImage::from(image).into_rgb8()
    };
    let mut content = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut content, JPEG_QUALITY);
    encoder
        .encode_image(&image)
        .map_err(AttachmentError::Unwritable)?;
    Ok(content)
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
