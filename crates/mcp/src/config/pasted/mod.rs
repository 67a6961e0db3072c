//! Reads configurations of servers as people paste them: files of any program, fragments of them, command
//! lines, and addresses. Pure; the installation's own file is read by the same parts.

mod command;
mod entry;
mod json;

#[cfg(test)]
pub(super) use entry::MEMBERS;
pub(super) use entry::{config_of, is_ours};
pub(super) use json::{parse, servers_of};

use serde_json::{Value, json};
use url::Url;

use sepal_core::domain::{McpServerConfig, McpTransport};

/// The servers that were found in a pasted text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pasted {
    pub kind: PastedKind,
    pub servers: Vec<PastedServer>,
    /// One sentence for each entry that cannot be used; it says what to change.
    pub problems: Vec<String>,
}

/// The kind of the pasted text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PastedKind {
    #[default]
    Nothing,
    Json,
    Command,
    Image,
    Url,
}

impl PastedKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Json => "json",
            Self::Command => "command",
            Self::Image => "image",
            Self::Url => "url",
        }
    }
}

/// One server of a pasted text.
#[derive(Debug, Clone, PartialEq)]
pub struct PastedServer {
    /// A valid name.
    pub name: String,
    /// The entry; it is not checked yet.
    pub config: McpServerConfig,
}

/// The most characters of a name.
const MAX_NAME: usize = 64;

/// Reads a pasted text.
pub fn read_pasted(text: &str) -> Pasted {
    let text = without_wrapping(text);
    let text = text.as_str();
    if text.is_empty() {
        return Pasted::default();
    }
    if json::is_json(text) {
        return of_json(text);
    }
    let is_url = text.starts_with("http://") || text.starts_with("https://");
    if is_url && !text.contains(char::is_whitespace) {
        return of_url(text);
    }
    command::read(text)
}

fn of_json(text: &str) -> Pasted {
    match json::parse(text) {
        Ok(value) => of_value(&value),
        Err(problem) => Pasted {
            problems: vec![format!("the text is no valid JSON: {problem}")],
            ..Pasted::default()
        },
    }
}

fn of_value(value: &Value) -> Pasted {
    let mut pasted = Pasted {
        kind: PastedKind::Json,
        ..Pasted::default()
    };
    for (name, entry) in json::entries(value) {
        pasted.take(name.as_deref(), &entry);
    }
    if pasted.servers.is_empty() {
        pasted.kind = PastedKind::Nothing;
        if pasted.problems.is_empty() {
            let text = "no server is in it: a server has a `command` or a `url`, below its name in \
                        `mcpServers`";
            pasted.problems.push(text.to_owned());
        }
    }
    pasted
}

fn of_url(text: &str) -> Pasted {
    let Ok(url) = Url::parse(text) else {
        let problems = vec![format!("`{text}` is no address")];
        return Pasted {
            problems,
            ..Pasted::default()
        };
    };
    let mut pasted = Pasted {
        kind: PastedKind::Url,
        ..Pasted::default()
    };
    let entry = json!({ "transport": transport_of(&url).as_str(), "url": text });
    pasted.take(None, &entry);
    pasted
}

/// Old servers are at an address that ends with `/sse`.
fn transport_of(url: &Url) -> McpTransport {
    if url.path().trim_end_matches('/').ends_with("/sse") {
        McpTransport::Sse
    } else {
        McpTransport::Http
    }
}

impl Pasted {
    /// Takes an entry in, or notes what to change in it.
    fn take(&mut self, named: Option<&str>, entry: &Value) {
        let read = config_of(entry).and_then(|mut config| {
            if config.command.is_none() && config.url.is_none() && config.container_image.is_none()
            {
                return Err("has neither a `command` nor a `url`".to_owned());
            }
            entry::ask_for_inputs(&mut config);
            // `docker run …` becomes an image.
            super::as_image(&config)
                .map_err(|problem| format!("cannot be used: {}", problem.message))
        });
        let config = match read {
            Ok(config) => config,
            Err(problem) => {
                let name = named.unwrap_or("the server");
                self.problems.push(format!("`{name}` {problem}"));
                return;
            }
        };
        let image = config.container_image.as_deref();
        if self.kind == PastedKind::Command && image.is_some() {
            self.kind = PastedKind::Image;
        }
        let name = match (named, image) {
            (Some(name), _) => name_from(name),
            (None, Some(image)) => name_from(name_of_image(image)),
            (None, None) => name_of(&config),
        };
        self.servers.push(PastedServer { name, config });
    }
}

/// Removes what surrounds a pasted text: a byte order mark, invisible characters, a fence of Markdown.
fn without_wrapping(text: &str) -> String {
    let text = text.replace(
        ['\u{feff}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}'],
        "",
    );
    let text = text.replace(['\u{a0}', '\u{202f}'], " ");
    let text = text.trim();
    let fenced = ["```", "~~~"].iter().find_map(|fence| {
        let (_, rest) = text.split_once(fence)?;
        let (_, rest) = rest.split_once('\n')?;
        let end = rest.find(fence).unwrap_or(rest.len());
        rest.get(..end)
    });
    let text = fenced.unwrap_or(text).trim();
    let inline = text
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'));
    let inline = inline.filter(|inline| !inline.contains('`'));
    inline.unwrap_or(text).trim().to_owned()
}

/// Returns a valid name.
fn name_from(text: &str) -> String {
    let mut name = String::new();
    for char in text.chars() {
        if char.is_ascii_alphanumeric() || char == '_' || char == '-' {
            name.push(char);
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_matches('-');
    let name: String = name.chars().take(MAX_NAME).collect();
    if name.is_empty() {
        "server".to_owned()
    } else {
        name
    }
}

fn name_of_image(image: &str) -> &str {
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split([':', '@']).next().unwrap_or(last)
}

/// Returns a name from the package or program that starts the server, or from its host.
fn name_of(config: &McpServerConfig) -> String {
    const RUNNERS: [&str; 12] = [
        "npx", "uvx", "bunx", "pipx", "node", "python", "python3", "uv", "deno", "run", "exec",
        "tool",
    ];
    const PARTS: [&str; 8] = ["www", "mcp", "api", "com", "org", "net", "io", "dev"];
    if let Some(url) = &config.url {
        let host = Url::parse(url).ok();
        let host = host.as_ref().and_then(Url::host_str).unwrap_or("server");
        let part = host.split('.').find(|part| !PARTS.contains(part));
        return name_from(part.unwrap_or(host));
    }
    let words = config.command.iter().chain(&config.args);
    let mut words = words.filter(|word| !word.is_empty() && !word.starts_with('-'));
    let first = words.clone().next();
    let named = words.find(|word| !RUNNERS.contains(&word.as_str()));
    let named = named.or(first).map_or("server", String::as_str);
    let last = match named.rfind('@') {
        Some(at) if at > 0 => named.get(..at).unwrap_or(named),
        _ => named,
    };
    let last = last.rsplit('/').next().unwrap_or(last);
    let begun = ["mcp-server-", "server-", "mcp-"];
    let last = begun
        .iter()
        .find_map(|it| last.strip_prefix(it))
        .unwrap_or(last);
    let ended = ["-mcp-server", "-mcp", ".py", ".js", ".ts", ".mjs"];
    let last = ended
        .iter()
        .find_map(|it| last.strip_suffix(it))
        .unwrap_or(last);
    name_from(last)
}

#[cfg(test)]
mod tests;
