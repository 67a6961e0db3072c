//! Makes text safe to judge by eye: invisible characters and look-alikes become escapes. The page renders
//! calls by the same rules (`web/src/text/hiddenCharacters.ts`), but this module also escapes emoji joiners and
//! the characters of host names one by one, because the client's font is unknown.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Taller stacks of combining marks cover the neighboring lines.
const MAX_COMBINING_MARKS: usize = 4;
/// Letters of other scripts that look like a Latin letter in common fonts.
const LOOK_ALIKES: &str = "аеорсухіјѕԁԛԝһӏґѵьпАВЕКМНОРСТУХІЈЅԚԜӀҮ\
    αγεηικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոզցհյքԱՕՍԼᎠᎡᎢᎥᎪᎬᎳᎷᎻᏀᏃᏎᏏᏒᏔᏙᏚᏞᏟᏢᏦᏴ";
/// Characters that look like a dot, a slash, a colon or an `@`.
const LOOKS_LIKE_PUNCTUATION: &str = "\u{2024}\u{2044}\u{2215}\u{2236}\u{29F8}\u{3002}\u{A789}\
    \u{FF0E}\u{FF0F}\u{FF1A}\u{FF20}\u{FF61}";

/// Escapes hidden characters in a text of several lines.
pub fn visible(text: &str) -> String {
    drawn(text, |c| c == '\n' || c == '\t')
}

/// Escapes hidden characters, including line breaks and tabs.
pub fn visible_line(text: &str) -> String {
    drawn(text, |_| false)
}

fn drawn(text: &str, may_stand: impl Fn(char) -> bool) -> String {
    let mut drawn = String::with_capacity(text.len());
    let mut marks = 0;
    let mut before = None;
    for word in text.split_inclusive(ends_word) {
        let is_host = drawn.ends_with("://");
        let is_host_shaped = is_host_shaped(word.trim_end_matches(ends_word));
        let mut rest = word.chars().peekable();
        let mut run = Run::default();
        while let Some(c) = rest.next() {
            if !run.holds(c) {
                run = Run::starting(c, rest.clone());
            }
            let category = get_general_category(c);
            marks = if is_mark(category) { marks + 1 } else { 0 };
            let is_between = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            let is_other_sign = LOOKS_LIKE_PUNCTUATION.contains(c)
                && is_between(before)
                && is_between(rest.peek().copied());
            let is_plain = c.is_ascii_graphic() || c == ' ' || may_stand(c);
            let is_drawn_otherwise = is_other_sign
                || is_hidden(c, category)
                || marks > MAX_COMBINING_MARKS
                || (is_alike(c) && run.is_mixed(is_host_shaped))
                || (is_host && !c.is_ascii());
            if is_plain || !is_drawn_otherwise {
                drawn.push(c);
            } else {
                let sign = format!("⟦U+{:04X}⟧", u32::from(c));
                drawn.push_str(&sign);
            }
            before = Some(c);
        }
    }
    drawn
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || "/\\?#\"'<>`()[]{},;=&|".contains(c)
}

/// A run of letters, marks and digits.
#[derive(Default)]
struct Run {
    is_open: bool,
    has_latin: bool,
    has_others: bool,
}

impl Run {
    fn starting(first: char, rest: impl Iterator<Item = char>) -> Self {
        let mut run = Self::default();
        if !is_of_run(first) {
            return run;
        }
        run.is_open = true;
        for c in std::iter::once(first).chain(rest.take_while(|c| is_of_run(*c))) {
            run.has_latin |= c.is_ascii_alphabetic();
            run.has_others |= !is_alike(c);
        }
        run
    }

    fn holds(&self, c: char) -> bool {
        self.is_open && is_of_run(c)
    }

    /// Returns true if the run mixes Latin letters with look-alikes, or is a part of a host name and
    /// consists only of look-alikes.
    fn is_mixed(&self, is_host_shaped: bool) -> bool {
        self.has_latin || (is_host_shaped && !self.has_others)
    }
}

fn is_of_run(c: char) -> bool {
    c.is_alphanumeric() || is_mark(get_general_category(c))
}

fn is_mark(category: GeneralCategory) -> bool {
    matches!(
        category,
        GeneralCategory::NonspacingMark
            | GeneralCategory::SpacingMark
            | GeneralCategory::EnclosingMark
    )
}

fn is_alike(c: char) -> bool {
    // Letters that are Latin only by a compatibility mapping: wide, mathematical, circled, letter-like.
    LOOK_ALIKES.contains(c)
        || matches!(c, '\u{FF10}'..='\u{FF19}' | '\u{FF21}'..='\u{FF3A}' | '\u{FF41}'..='\u{FF5A}'
            | '\u{1D400}'..='\u{1D7FF}' | '\u{24B6}'..='\u{24E9}' | '\u{2100}'..='\u{214F}')
}

/// Returns true for words such as `a.com` or `a.com:80`, without a scheme.
fn is_host_shaped(word: &str) -> bool {
    let mut labels = word.split('.').skip(1);
    labels.any(|label| {
        let name = label.split(':').next().unwrap_or_default();
        name.len() > 1 && name.chars().all(|c| c.is_ascii_alphabetic())
    })
}

fn is_hidden(c: char, category: GeneralCategory) -> bool {
    let is_blank = matches!(
        category,
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::Surrogate
            | GeneralCategory::PrivateUse
            | GeneralCategory::Unassigned
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::SpaceSeparator
    );
    // The brackets of our own escapes, so that none can be forged; the blank Braille pattern; and the
    // characters that fonts leave out (`Default_Ignorable_Code_Point`) without the category `Format`.
    is_blank
        || matches!(c, '\u{27E6}' | '\u{27E7}' | '\u{2800}' | '\u{34F}' | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}'
            | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::{visible, visible_line};

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(visible(input), expected, "{input:?}");
    }

    #[test]
    fn plain_text_of_any_script_stays_as_it_is() {
        for plain in [
            "",
            "echo \"hi\" > a.txt\n\tnext line",
            "Grüße, 世界。 файл.txt שלום مرحبا",
            "naïve résumé.txt 5 µs Δt",
            "e\u{301}",
        ] {
            check(plain, plain);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        for (input, expected) in [
            ("a\u{202E}txt.exe", "a⟦U+202E⟧txt.exe"),
            ("a\u{2066}b\u{2069}", "a⟦U+2066⟧b⟦U+2069⟧"),
            ("a\u{200B}b", "a⟦U+200B⟧b"),
            ("a\u{200D}b", "a⟦U+200D⟧b"),
            ("\u{FEFF}a", "⟦U+FEFF⟧a"),
            ("a\0b", "a⟦U+0000⟧b"),
            ("a\u{1b}[31mb", "a⟦U+001B⟧[31mb"),
            ("a\rb", "a⟦U+000D⟧b"),
            ("a\u{7f}b", "a⟦U+007F⟧b"),
            ("a\u{85}b", "a⟦U+0085⟧b"),
            ("a\u{A0}b", "a⟦U+00A0⟧b"),
            ("a\u{3000}b", "a⟦U+3000⟧b"),
            ("a\u{2028}b", "a⟦U+2028⟧b"),
            ("a\u{AD}b", "a⟦U+00AD⟧b"),
            ("a\u{3164}b", "a⟦U+3164⟧b"),
            ("a\u{2800}b", "a⟦U+2800⟧b"),
            ("a\u{34F}b", "a⟦U+034F⟧b"),
            ("a\u{FE0F}b", "a⟦U+FE0F⟧b"),
            ("a\u{E0041}b", "a⟦U+E0041⟧b"),
            ("a\u{E000}b", "a⟦U+E000⟧b"),
            ("a\u{378}b", "a⟦U+0378⟧b"),
            (
                "e\u{301}\u{301}\u{301}\u{301}\u{301}",
                "e\u{301}\u{301}\u{301}\u{301}⟦U+0301⟧",
            ),
            ("⟦U+202E⟧", "⟦U+27E6⟧U+202E⟦U+27E7⟧"),
        ] {
            check(input, expected);
        }
        assert_eq!(visible_line("a\nb\tc"), "a⟦U+000A⟧b⟦U+0009⟧c");
    }

    #[test]
    fn what_looks_like_something_else_is_written_out() {
        for (input, expected) in [
            (
                "https://user@b\u{fc}cher.test:80/ü",
                "https://user@b⟦U+00FC⟧cher.test:80/ü",
            ),
            ("https://a\u{3002}com/", "https://a⟦U+3002⟧com/"),
            ("git@раypal.com", "git@⟦U+0440⟧⟦U+0430⟧ypal.com"),
            (
                "ping аррӏе.com",
                "ping ⟦U+0430⟧⟦U+0440⟧⟦U+0440⟧⟦U+04CF⟧⟦U+0435⟧.com",
            ),
            ("rm /etc/pаsswd", "rm /etc/p⟦U+0430⟧sswd"),
            ("a\u{2044}b", "a⟦U+2044⟧b"),
            ("echo 𝐫𝐦x", "echo ⟦U+1D42B⟧⟦U+1D426⟧x"),
        ] {
            check(input, expected);
        }
    }
}
