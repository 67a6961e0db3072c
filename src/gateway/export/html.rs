//! Writes a document as one HTML page without scripts or external resources.

use std::io;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use pulldown_cmark_escape::{escape_html, escape_html_body_text};

use super::call::{CallPart, PROPOSED, arguments, ending, tool};
use super::{Audience, Document, Part, Sink, minute};
use crate::domain::Attachment;

/// The page's style sheet, which includes print rules.
const STYLE: &str = include_str!("style.css");
/// The Content-Security-Policy: the page loads nothing external.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
/// The tag that keeps search engines away from shared pages.
const NOT_FOUND_BY_SEARCH: &str = "<meta name=\"robots\" content=\"noindex, nofollow\">\n";
/// The allowed link schemes; links of other schemes become text.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

pub(super) fn write(document: &Document, audience: Audience, to: &mut dyn Sink) -> io::Result<()> {
    let mut page = Page { to };
    let title = text(document.title());
    page.push(&format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         {}<style>{STYLE}</style></head><body><main>\n<h1>{title}</h1>\n<p class=\"meta\">{}</p>\n",
        match audience {
            Audience::Owner => "",
            Audience::Others => NOT_FOUND_BY_SEARCH,
        },
        source(document, audience),
    ))?;
    for part in &document.parts(audience) {
        page.part(part)?;
    }
    page.push("</main></body></html>\n")
}

/// Returns the line about the document's source.
fn source(document: &Document, audience: Audience) -> String {
    let at = minute(document.at);
    match audience {
        Audience::Owner => format!("Session {}, taken from Sepal at {at}.", document.session),
        Audience::Others => {
            format!("A session of Sepal, shared as it was on {at}. Nothing here can be answered.")
        }
    }
}

struct Page<'s> {
    to: &'s mut dyn Sink,
}

impl Page<'_> {
    fn push(&mut self, markup: &str) -> io::Result<()> {
        self.to.text(markup)
    }

    fn part(&mut self, part: &Part) -> io::Result<()> {
        match part {
            Part::User {
                author,
                at,
                text: said,
                attachments,
            } => {
                self.push("<article class=\"user\">")?;
                self.heading(author, &minute(*at))?;
                self.push(&rendered(said))?;
                self.attached(attachments)?;
                self.push("</article>\n")?;
            }
            Part::Agent {
                model,
                at,
                reasoning,
                text: said,
            } => {
                self.push("<article>")?;
                let model = model.as_ref().map_or("", |model| model.as_str());
                self.heading("Agent", &format!("{model} {}", minute(*at)))?;
                if let Some(reasoning) = reasoning {
                    let thought = text(reasoning);
                    self.push(&format!(
                        "<details><summary>Thought</summary><pre>{thought}</pre></details>"
                    ))?;
                }
                self.push(&rendered(said))?;
                self.push("</article>\n")?;
            }
            Part::Call(call) => self.call(call)?,
            Part::Note { at, text: said } => {
                let (said, at) = (text(said), minute(*at));
                self.push(&format!("<p class=\"note\">{said} <time>{at}</time></p>\n"))?;
            }
        }
        Ok(())
    }

    fn heading(&mut self, who: &str, rest: &str) -> io::Result<()> {
        let (who, rest) = (text(who), text(rest.trim()));
        self.push(&format!("<h2>{who} <small>{rest}</small></h2>\n"))
    }

    fn call(&mut self, call: &CallPart) -> io::Result<()> {
        let (tool, ending) = (text(&tool(call)), text(&ending(call)));
        let (args, output) = (text(&arguments(&call.args)), text(&call.output));
        self.push(&format!(
            "<details class=\"call\" open><summary><code>{tool}</code> {ending}</summary>\n\
             <pre>{args}</pre>\n"
        ))?;
        if let Some(proposed) = &call.proposed {
            let proposed = text(&arguments(proposed));
            self.push(&format!(
                "<p class=\"meta\">{PROPOSED}</p>\n<pre>{proposed}</pre>\n"
            ))?;
        }
        if !output.is_empty() {
            self.push(&format!("<pre>{output}</pre>\n"))?;
        }
        self.attached(&call.attachments)?;
        self.push("</details>\n")
    }

    /// Shows pictures inline, and other attachments as download links.
    fn attached(&mut self, attachments: &[Attachment]) -> io::Result<()> {
        for attachment in attachments {
            let (kind, name) = (attachment.media_type.as_str(), quoted(&attachment.name));
            let words = text(&attachment.to_string());
            let (before, after) = if attachment.media_type.is_image() {
                let before = format!("<figure><img alt=\"{name}\" src=\"data:{kind};base64,");
                (
                    before,
                    format!("\"><figcaption>{words}</figcaption></figure>\n"),
                )
            } else {
                let before = format!("<p><a download=\"{name}\" href=\"data:{kind};base64,");
                (before, format!("\">{words}</a></p>\n"))
            };
            self.push(&before)?;
            self.to.content(&attachment.id)?;
            self.push(&after)?;
        }
        Ok(())
    }
}

/// Renders Markdown as HTML: raw HTML becomes text, images become links, and links of unknown schemes become
/// text.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is neither a link nor markup stays as it is"
)]
fn rendered(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let mut dropped = Vec::new();
    let events = Parser::new_ext(markdown, options).filter_map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Some(Event::Text(raw)),
        Event::Start(Tag::Image { dest_url, .. } | Tag::Link { dest_url, .. }) => {
            let is_link = SCHEMES.iter().any(|scheme| dest_url.starts_with(scheme));
            dropped.push(!is_link);
            is_link.then(|| {
                let href = quoted(&dest_url);
                let link = format!("<a href=\"{href}\" rel=\"noopener noreferrer\">");
                Event::InlineHtml(CowStr::from(link))
            })
        }
        Event::End(TagEnd::Image | TagEnd::Link) => {
            let is_dropped = dropped.pop().unwrap_or(true);
            (!is_dropped).then_some(Event::InlineHtml(CowStr::Borrowed("</a>")))
        }
        other => Some(other),
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    out
}

/// Escapes text for an element. Writing into a `String` never fails.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let _ = escape_html_body_text(&mut out, raw);
    out
}

/// Escapes text for a quoted attribute.
fn quoted(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let _ = escape_html(&mut out, raw);
    out
}
