//! Turns the marks by which ChatGPT cites its sources into links. Marks of unknown sources are removed.

use serde_json::Value;

use super::parts::{field, text_of};

/// The characters around and inside of a mark: `cite`, a separator, the names of the sources.
const BEGIN: char = '\u{e200}';
const END: char = '\u{e201}';
const SEPARATOR: char = '\u{e202}';
/// The characters around a mark of earlier exports, such as `【4:2†source】`.
const OLD_BEGIN: char = '【';
const OLD_END: char = '】';
const OLD_SEPARATOR: char = '†';
/// The most characters of a link's text.
const MAX_TITLE: usize = 120;
/// The longest address of a link.
const MAX_URL: usize = 2_000;

/// Returns a text with links in place of the marks that its message's `metadata` explains.
pub(super) fn linked(text: &str, metadata: &Value) -> String {
    let mut linked = text.to_owned();
    let references = field(metadata, "content_references").as_array();
    for reference in references.into_iter().flatten() {
        let mark = field(reference, "matched_text")
            .as_str()
            .unwrap_or_default();
        if has_marks(mark) {
            linked = linked.replace(mark, &links_of(reference));
        }
    }
    let citations = field(metadata, "citations").as_array();
    let mut citations = citations
        .into_iter()
        .flatten()
        .map(|it| field(it, "metadata"));
    let mut rest = linked.as_str();
    let mut out = String::with_capacity(rest.len());
    while let Some((at, end)) = next_mark(rest) {
        let (before, mark) = (rest.get(..at), rest.get(at..end));
        out.push_str(before.unwrap_or_default());
        let mark = mark.unwrap_or_default();
        if mark.starts_with(OLD_BEGIN) {
            // Earlier exports tell of the sources in the order of their marks.
            out.push_str(&citations.next().and_then(link).unwrap_or_default());
        } else {
            out.push_str(&words_of(mark));
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    out.push_str(rest);
    out.retain(|letter| !is_of_a_mark(letter));
    out
}

fn has_marks(text: &str) -> bool {
    text.contains(is_of_a_mark) || text.contains(OLD_BEGIN)
}

/// Returns true for the private characters of marks.
fn is_of_a_mark(letter: char) -> bool {
    ('\u{e200}'..='\u{e206}').contains(&letter)
}

/// Returns the place of the next mark, with its end. A bracket without `†` is text.
fn next_mark(text: &str) -> Option<(usize, usize)> {
    let places = text.char_indices();
    let mut marks = places.filter(|(_, letter)| matches!(*letter, BEGIN | OLD_BEGIN));
    marks.find_map(|(at, begin)| {
        let from = text.get(at + begin.len_utf8()..)?;
        let end = if begin == BEGIN { END } else { OLD_END };
        let length = from.find(end)?;
        let inside = from.get(..length)?;
        let is_mark = begin == BEGIN || inside.contains(OLD_SEPARATOR) && !inside.contains('\n');
        is_mark.then(|| (at, at + begin.len_utf8() + length + end.len_utf8()))
    })
}

/// Returns the links of a reference: of its sources, or of the reference itself.
fn links_of(reference: &Value) -> String {
    let lists = ["items", "sources", "refs"];
    let items = lists
        .iter()
        .filter_map(|name| field(reference, name).as_array());
    let mut links: Vec<String> = Vec::new();
    for found in items.flatten().filter_map(link).chain(link(reference)) {
        if !links.contains(&found) {
            links.push(found);
        }
    }
    if !links.is_empty() {
        return links.join(" ");
    }
    let alternative = text_of(field(reference, "alt")).unwrap_or_default();
    let mark = field(reference, "matched_text")
        .as_str()
        .unwrap_or_default();
    if alternative.is_empty() {
        words_of(mark)
    } else {
        alternative.to_owned()
    }
}

/// Returns the link of a source that has an address.
fn link(source: &Value) -> Option<String> {
    let url = text_of(field(source, "url"))?;
    let title = text_of(field(source, "title")).unwrap_or(url);
    markdown(title, url)
}

fn markdown(title: &str, url: &str) -> Option<String> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    if !is_web || url.len() > MAX_URL || url.contains(char::is_control) {
        return None;
    }
    let words = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = words.chars().take(MAX_TITLE).collect();
    let title = title.replace('[', "\\[").replace(']', "\\]");
    let url = url
        .replace(' ', "%20")
        .replace('(', "%28")
        .replace(')', "%29")
        .replace('<', "%3C")
        .replace('>', "%3E");
    Some(format!("[{title}]({url})"))
}

/// Returns the words that a mark itself has: the title of an address, or the name of a thing.
fn words_of(mark: &str) -> String {
    let inside = mark.trim_matches([BEGIN, END]);
    let mut parts = inside.split(SEPARATOR);
    let kind = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    if kind == "entity" {
        // `["city", "Paris", "the capital of France"]`
        let named: Option<Vec<Value>> = parts.first().and_then(|it| serde_json::from_str(it).ok());
        let name = named.as_ref().and_then(|named| text_of(named.get(1)?));
        return name.unwrap_or_default().to_owned();
    }
    let url = parts.iter().find(|part| part.starts_with("http"));
    let title = parts.iter().find(|part| !part.starts_with("http"));
    url.and_then(|url| markdown(title.unwrap_or(url), url))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::linked;

    fn check(text: &str, metadata: &Value, expected: &str) {
        assert_eq!(linked(text, metadata), expected, "{text}");
    }

    #[test]
    fn a_mark_becomes_the_links_of_its_sources() {
        let mark = "\u{e200}cite\u{e202}turn0search1\u{e202}turn0search3\u{e201}";
        let references = |more: Value| {
            let mut reference = json!({ "matched_text": mark, "start_idx": 3, "end_idx": 9 });
            for (name, value) in more.as_object().unwrap() {
                reference[name] = value.clone();
            }
            json!({ "content_references": [reference] })
        };
        let text = format!("It rains.{mark} A lot.");
        for (more, expected) in [
            (
                json!({ "items": [
                    { "title": "Rain [daily]", "url": "https://rain.test/a(b)" },
                    { "title": null, "url": "https://wet.test/" },
                ] }),
                "It rains.[Rain \\[daily\\]](https://rain.test/a%28b%29) [https://wet.test/](https://wet.test/) A lot.",
            ),
            (
                json!({ "url": "https://a.test", "title": "A" }),
                "It rains.[A](https://a.test) A lot.",
            ),
            (
                json!({ "items": [], "alt": "([a.test](https://a.test))" }),
                "It rains.([a.test](https://a.test)) A lot.",
            ),
            (
                json!({ "items": [{ "title": "x", "url": "javascript:alert(1)" }] }),
                "It rains. A lot.",
            ),
            (
                json!({ "items": [5, null, {}, { "title": "x" }] }),
                "It rains. A lot.",
            ),
            (json!({ "items": "none", "alt": null }), "It rains. A lot."),
            (json!({ "type": "hidden" }), "It rains. A lot."),
        ] {
            check(&text, &references(more), expected);
        }
    }

    #[test]
    fn what_nothing_explains_goes_and_what_a_mark_says_itself_stays() {
        for (text, expected) in [
            ("a \u{e200}cite\u{e202}turn0search1\u{e201}b", "a b"),
            (
                "a \u{e200}filecite\u{e202}turn0file0\u{e202}L1-L2\u{e201}.",
                "a .",
            ),
            (
                "in \u{e200}entity\u{e202}[\"city\",\"Paris\",\"capital\"]\u{e201}.",
                "in Paris.",
            ),
            ("in \u{e200}entity\u{e202}[\"city\"\u{e201}.", "in ."),
            (
                "see \u{e200}url\u{e202}A page\u{e202}https://a.test/x\u{e201}.",
                "see [A page](https://a.test/x).",
            ),
            (
                "see \u{e200}url\u{e202}A page\u{e202}ftp://a.test\u{e201}.",
                "see .",
            ),
            ("half \u{e200}cite\u{e202}turn0", "half citeturn0"),
            ("old【4†source】 mark【4:2†a.pdf】", "old mark"),
            ("日本【東京】です", "日本【東京】です"),
            ("a【b\n†】c", "a【b\n†】c"),
            ("plain", "plain"),
            ("", ""),
        ] {
            check(text, &Value::Null, expected);
        }
        let citations = json!({ "citations": [
            { "start_ix": 3, "end_ix": 13, "metadata": { "type": "webpage", "title": "One", "url": "https://one.test" } },
            { "metadata": { "type": "file", "name": "b.pdf" } },
            5,
        ] });
        check(
            "x【1†source】y【2†b.pdf】z【3†c】",
            &citations,
            "x[One](https://one.test)yz",
        );
    }
}
