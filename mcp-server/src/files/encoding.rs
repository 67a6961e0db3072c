//! Reads text files that are not UTF-8: UTF-16 with or without a byte order mark, and Latin-1 as Windows writes it.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

/// The letters of Windows-1252 in place of the control characters of Latin-1; five bytes mean nothing.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];
/// The first byte of `WINDOWS`.
const WINDOWS_FROM: u8 = 0x80;

/// The order of the bytes of UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Utf16 {
    Little,
    Big,
}

impl Utf16 {
    /// Recognises a text in UTF-16 by its first bytes: by its mark, or because one byte of almost every pair is
    /// zero.
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        match start {
            // The mark of UTF-32 begins the same.
            [0xff, 0xfe, 0, 0, ..] => return None,
            [0xff, 0xfe, ..] => return Some(Self::Little),
            [0xfe, 0xff, ..] => return Some(Self::Big),
            _ => {}
        }
        let (pairs, _) = start.as_chunks::<2>();
        [Self::Little, Self::Big].into_iter().find(|order| {
            let units = pairs.iter().map(|pair| order.unit(*pair));
            // Most letters are ASCII, and no text has control characters.
            let latin = units.clone().filter(|unit| *unit < 0x100).count();
            let is_control = |unit: u16| unit < 0x20 && !matches!(unit, 0x09 | 0x0a | 0x0d);
            pairs.len() >= 2 && latin * 2 > pairs.len() && !units.clone().any(is_control)
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Little => "UTF-16 (little-endian)",
            Self::Big => "UTF-16 (big-endian)",
        }
    }

    fn unit(self, pair: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(pair),
            Self::Big => u16::from_be_bytes(pair),
        }
    }
}

/// The text of a UTF-16 file as UTF-8, read piece by piece.
pub(super) struct Utf16Reader<R> {
    inner: R,
    order: Utf16,
    /// The text that was not consumed yet, from `at` on.
    text: Vec<u8>,
    at: usize,
    /// The first half of a surrogate pair.
    half: Option<u16>,
    is_begun: bool,
}

impl<R: BufRead> Utf16Reader<R> {
    pub(super) fn new(inner: R, order: Utf16) -> Self {
        Self {
            inner,
            order,
            text: Vec::new(),
            at: 0,
            half: None,
            is_begun: false,
        }
    }

    /// Reads on until there is some text, or the file ends.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.at = 0;
        while self.text.is_empty() {
            let mut bytes = Vec::new();
            let read = (&mut self.inner).take(4096).read_to_end(&mut bytes)?;
            if read == 0 && self.half.is_none() {
                return Ok(());
            }
            let (pairs, rest) = bytes.as_chunks::<2>();
            let mut units: Vec<u16> = self.half.take().into_iter().collect();
            units.extend(pairs.iter().map(|pair| self.order.unit(*pair)));
            // An odd byte at the end belongs to no letter.
            if !rest.is_empty() {
                units.push(0xfffd);
            }
            let is_half = units
                .last()
                .is_some_and(|unit| (0xd800..0xdc00).contains(unit));
            if read > 0 && is_half {
                self.half = units.pop();
            }
            if !std::mem::replace(&mut self.is_begun, true) && units.first() == Some(&0xfeff) {
                units.remove(0);
            }
            let text: String = char::decode_utf16(units)
                .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            self.text = text.into_bytes();
            if read == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Utf16Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let length = available.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Utf16Reader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.text.len() {
            self.fill()?;
        }
        Ok(self.text.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, length: usize) {
        self.at += length;
    }
}

/// The form in which a text without zero bytes could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoded {
    Utf8,
    Latin1,
    /// UTF-8 with other bytes in it, each of which was replaced.
    Damaged,
}

/// Decodes a part of a file. A part that was cut inside of a letter ends before that letter.
pub(super) fn decoded(bytes: &[u8], is_cut: bool) -> (Cow<'_, str>, Decoded) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => return (Cow::Borrowed(text), Decoded::Utf8),
        Err(error) if is_cut && error.error_len().is_none() => {
            let whole = bytes.get(..error.valid_up_to()).unwrap_or_default();
            return (String::from_utf8_lossy(whole), Decoded::Utf8);
        }
        Err(_) => String::from_utf8_lossy(bytes),
    };
    // What is valid beyond ASCII can hardly be anything but UTF-8.
    let has_utf8 = bytes.utf8_chunks().any(|chunk| !chunk.valid().is_ascii());
    if has_utf8 {
        return (text, Decoded::Damaged);
    }
    let letters = bytes.iter().map(|byte| {
        let place = byte.checked_sub(WINDOWS_FROM).map(usize::from);
        let letter = place.and_then(|place| WINDOWS.get(place));
        letter.copied().unwrap_or(char::from(*byte))
    });
    (Cow::Owned(letters.collect()), Decoded::Latin1)
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _};

    use super::*;

    fn utf16(text: &str, order: Utf16, has_mark: bool) -> Vec<u8> {
        let mark = has_mark.then_some('\u{feff}');
        let letters: String = mark.into_iter().chain(text.chars()).collect();
        let bytes = letters.encode_utf16().map(|unit| match order {
            Utf16::Little => unit.to_le_bytes(),
            Utf16::Big => unit.to_be_bytes(),
        });
        bytes.flatten().collect()
    }

    #[test]
    fn utf_16_is_read_in_both_orders_with_and_without_its_mark() {
        for text in [
            "one\ntwo\n",
            "Größe: 5 €\r\nein Satz.",
            "a🔑b and more",
            "x y",
        ] {
            for order in [Utf16::Little, Utf16::Big] {
                for has_mark in [true, false] {
                    let bytes = utf16(text, order, has_mark);
                    assert_eq!(
                        Utf16::of(&bytes),
                        Some(order),
                        "{text} {order:?} {has_mark}"
                    );
                    // In pieces that end inside of a letter.
                    let inner = BufReader::with_capacity(3, bytes.as_slice());
                    let mut read = String::new();
                    Utf16Reader::new(inner, order)
                        .read_to_string(&mut read)
                        .unwrap();
                    assert_eq!(read, text, "{order:?} {has_mark}");
                }
            }
        }
        let long = "ж🔑\n".repeat(3_000);
        let bytes = utf16(&long, Utf16::Little, true);
        let mut read = String::new();
        let mut reader = Utf16Reader::new(bytes.as_slice(), Utf16::Little);
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, long);
    }

    #[test]
    fn damaged_utf_16_changes_only_the_damaged_letter() {
        let read = |bytes: &[u8]| {
            let mut text = String::new();
            let mut reader = Utf16Reader::new(bytes, Utf16::Little);
            reader.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read(b"a\0\x00\xd8b\0"), "a\u{fffd}b");
        assert_eq!(read(b"a\0\x00\xdcb\0"), "a\u{fffd}b");
        assert_eq!(read(b"a\0b\0c"), "ab\u{fffd}");
        assert_eq!(read(b"a\0\x3d\xd8"), "a\u{fffd}");
        assert_eq!(read(b""), "");
    }

    #[test]
    fn other_files_are_no_utf_16() {
        for bytes in [
            b"plain text\n".as_slice(),
            b"",
            b"\0",
            b"a\0",
            b"\xff\xfe\0\0a\0\0\0",
            b"\0\0\0\0\0\0\0\0",
            b"a\0b\0\0c\0d",
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0",
        ] {
            assert_eq!(Utf16::of(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_part_is_utf_8_latin_1_or_damaged() {
        for (bytes, is_cut, expected, what) in [
            (b"plain".as_slice(), false, "plain", Decoded::Utf8),
            ("Größe €".as_bytes(), false, "Größe €", Decoded::Utf8),
            (b"Gr\xf6\xdfe", false, "Größe", Decoded::Latin1),
            (
                b"5 \x80 \x93ok\x94 \x81",
                false,
                "5 € “ok” \u{81}",
                Decoded::Latin1,
            ),
            (b"a\xe4", false, "aä", Decoded::Latin1),
            (
                b"\xc3\xb6 and \xf6",
                false,
                "ö and \u{fffd}",
                Decoded::Damaged,
            ),
            (b"a\xc3", true, "a", Decoded::Utf8),
            (b"\xc3\xb6\xc3", true, "ö", Decoded::Utf8),
            (b"", false, "", Decoded::Utf8),
        ] {
            let (text, found) = decoded(bytes, is_cut);
            assert_eq!((text.as_ref(), found), (expected, what), "{bytes:?}");
        }
    }
}
