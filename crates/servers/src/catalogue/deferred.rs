//! Lets models search tool definitions instead of sending all of them: with many servers they would take a
//! large part of each request.
//!
//! The model gets two tools in their place, whose definitions do not depend on searches. A call through them
//! is decided and run as a call of the tool itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use bm25::{Document, SearchEngine, SearchEngineBuilder, Tokenizer};
use rust_stemmers::{Algorithm, Stemmer};
use serde_json::{Value, json};

use super::entry::BUNDLED;
use sepal_core::domain::{FIND_TOOLS, Tool, ToolAnnotations, USE_TOOL};
use sepal_llm::tokens;
use sepal_llm::tool_search::{Searchable, ServerTools};
use sepal_mcp::Toolbox;

/// The most tools that one search returns.
const MAX_FOUND: usize = 8;
/// The most names that an empty search lists.
const MAX_LISTED: usize = 200;
/// The most bytes of definitions that one search returns, unless the first one alone is longer.
const MAX_FOUND_BYTES: usize = 24 * 1024;
/// The most characters of a description in a list of names.
const MAX_LINE_CHARS: usize = 120;

/// The definitions of an offering that can be searched instead of sent.
pub struct Deferred {
    /// The definitions that are sent: the bundled server's tools, and the two tools that find and call the
    /// others.
    pub definitions: Arc<[Tool]>,
    /// The same for a vendor with a tool search of its own.
    pub searchable: Arc<Searchable>,
    /// The estimated tokens of the two tools.
    pub tokens: u64,
    /// The search index, built at the first search.
    index: OnceLock<SearchEngine<usize, u32, Words>>,
}

/// Splits names and descriptions into words: `create_pull_request` and `createPullRequest` have three.
#[derive(Debug, Default)]
struct Words;

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut was_lower = false;
        for letter in text.chars() {
            let begins = letter.is_uppercase() && was_lower;
            was_lower = letter.is_lowercase();
            if begins || !letter.is_alphanumeric() {
                words.push(String::new());
            }
            if letter.is_alphanumeric()
                && let Some(word) = words.last_mut()
            {
                word.extend(letter.to_lowercase());
            }
        }
        words.retain(|word| !word.is_empty());
        // Almost all definitions are English; words of other languages are hardly changed by the stemmer.
        let stemmer = Stemmer::create(Algorithm::English);
        let stems = words.iter().map(|word| stemmer.stem(word).into_owned());
        stems.collect()
    }
}

impl Deferred {
    pub(crate) fn new(toolbox: &Toolbox) -> Self {
        let (bundled, others): (Vec<_>, Vec<_>) =
            toolbox.tools().partition(|tool| tool.at.server == BUNDLED);
        let mut by_server = BTreeMap::<&str, Vec<Tool>>::new();
        for tool in &others {
            let of_server = by_server.entry(&tool.at.server).or_default();
            of_server.push(tool.tool.clone());
        }
        let ways = [finding(of_servers(&by_server)), using()];
        let told: Arc<[Tool]> = bundled.iter().map(|tool| tool.tool.clone()).collect();
        let servers = by_server.into_iter().map(|(server, tools)| ServerTools {
            server: server.to_owned(),
            tools,
        });
        Self {
            tokens: ways.iter().map(tokens::of_tool).sum(),
            definitions: told.iter().cloned().chain(ways).collect(),
            searchable: Arc::new(Searchable {
                told,
                servers: servers.collect(),
            }),
            index: OnceLock::new(),
        }
    }

    /// Returns the searchable tools, by server.
    fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.searchable.deferred()
    }

    fn index(&self) -> &SearchEngine<usize, u32, Words> {
        self.index.get_or_init(|| {
            let servers = self.searchable.servers.iter();
            let tools = servers.flat_map(|of| of.tools.iter().map(|tool| (&*of.server, tool)));
            let documents = tools.enumerate().map(|(at, (server, tool))| {
                // The name counts twice, because it says what the tool does.
                let name = &tool.name;
                let parameters = tool.input_schema.get("properties");
                let parameters = parameters.and_then(Value::as_object);
                let parameters = parameters.into_iter().flat_map(serde_json::Map::keys);
                let parameters: Vec<&str> = parameters.map(String::as_str).collect();
                let text = format!(
                    "{name} {name} {server} {} {}",
                    tool.description,
                    parameters.join(" ")
                );
                Document::new(at, text)
            });
            SearchEngineBuilder::with_tokenizer_and_documents(Words, documents).build()
        })
    }

    /// Returns the result of a call of `find_tools`, or the error in its arguments.
    pub fn find(&self, args: &Value) -> Result<String, String> {
        let query = args.get("query").map_or(Some(""), Value::as_str);
        let query =
            query.ok_or("the arguments of `find_tools` are not valid: `query` is a text")?;
        if query.trim().is_empty() {
            return Ok(self.names());
        }
        // An exact name comes first.
        let exact = self.tools().filter(|tool| tool.name == query.trim());
        let ranked = self.index().search(query, MAX_FOUND).into_iter();
        let ranked = ranked.filter_map(|found| self.tools().nth(found.document.id));
        let ranked = ranked.filter(|tool| tool.name != query.trim());
        let mut told = String::new();
        for tool in exact.chain(ranked).take(MAX_FOUND) {
            let line = json!({
                "name": tool.name, "description": tool.description, "input_schema": tool.input_schema,
            });
            let line = line.to_string();
            if !told.is_empty() && told.len() + line.len() > MAX_FOUND_BYTES {
                break;
            }
            told.push_str(&line);
            told.push('\n');
        }
        if told.is_empty() {
            return Ok(format!(
                "No tool matches. Search with other words; `{FIND_TOOLS}` with an empty `query` lists \
                 all names."
            ));
        }
        Ok(format!("Call one of these with `{USE_TOOL}`:\n{told}"))
    }

    fn names(&self) -> String {
        let mut told = String::new();
        for tool in self.tools().take(MAX_LISTED) {
            let line = tool.description.lines().next().unwrap_or_default();
            let line: String = line.chars().take(MAX_LINE_CHARS).collect();
            told.push_str(&tool.name);
            told.push_str(if line.is_empty() { "" } else { ": " });
            told.push_str(&line);
            told.push('\n');
        }
        let more = self.tools().count().saturating_sub(MAX_LISTED);
        if more > 0 {
            // Writing to a `String` does not fail.
            let _ = writeln!(told, "and {more} more; search for them by words");
        }
        told
    }
}

/// Returns the two tools that find and call the tools that a provider refused to be sent.
pub(super) fn ways_to(refused: &[&str]) -> [Tool; 2] {
    let names: Vec<String> = refused.iter().map(|name| format!("`{name}`")).collect();
    let description = format!(
        "Finds tools by words. These tools can be used although their definitions are not sent: {}. Search \
         for one by its name to read its description and the schema of its arguments, and call it with \
         `{USE_TOOL}`.",
        names.join(", ")
    );
    [finding(description), using()]
}

/// Returns the tool and the arguments of a call of `use_tool`, or the error in the call.
pub fn asked_for(args: &Value) -> Result<(String, Value), String> {
    let tool = args.get("tool").and_then(Value::as_str);
    let tool = tool.filter(|tool| *tool != USE_TOOL && *tool != FIND_TOOLS);
    let Some(tool) = tool else {
        return Err(format!(
            "the arguments of `{USE_TOOL}` are not valid: `tool` is the name of a tool that \
             `{FIND_TOOLS}` gave"
        ));
    };
    match args.get("arguments") {
        None | Some(Value::Null) => Ok((tool.to_owned(), json!({}))),
        Some(inner @ Value::Object(_)) => Ok((tool.to_owned(), inner.clone())),
        // Some models send the arguments as a string.
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(inner @ Value::Object(_)) => Ok((tool.to_owned(), inner)),
            Ok(_) | Err(_) => Err(no_object()),
        },
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => Err(no_object()),
    }
}

fn no_object() -> String {
    format!("the arguments of `{USE_TOOL}` are not valid: `arguments` is an object")
}

fn of_servers(by_server: &BTreeMap<&str, Vec<Tool>>) -> String {
    let servers = by_server.iter();
    let servers: Vec<String> = servers
        .map(|(server, tools)| format!("{server} ({})", tools.len()))
        .collect();
    format!(
        "Finds tools by words. More tools than those listed here can be used; their number by server: \
         {}. Search before you say that something cannot be done. Each result has a tool's name, its \
         description and the schema of its arguments; call the tool with `{USE_TOOL}`.",
        servers.join(", ")
    )
}

fn finding(description: String) -> Tool {
    tool(
        FIND_TOOLS,
        description,
        json!({
            "type": "object",
            "properties": {"query": {
                "type": "string",
                "description": "What the tool should do, in a few words, or its name; empty lists all names.",
            }},
            "required": ["query"],
        }),
    )
}

fn using() -> Tool {
    let description = format!(
        "Calls a tool that `{FIND_TOOLS}` found, by its name and with arguments that fit its schema."
    );
    tool(
        USE_TOOL,
        description,
        json!({
            "type": "object",
            "properties": {
                "tool": {"type": "string", "description": "The tool's name, as it was found."},
                "arguments": {"type": "object", "description": "Its arguments."},
            },
            "required": ["tool", "arguments"],
        }),
    )
}

fn tool(name: &str, description: String, input_schema: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        title: None,
        description,
        input_schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        needs_tasks: false,
        view: None,
        runs_as_task: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Deferred, Words, asked_for, tool};
    use sepal_mcp::{Naming, Offer, Toolbox};

    fn toolbox() -> Toolbox {
        let mut toolbox = Toolbox::default();
        let mut add = |server, tools: &[(&str, &str)]| {
            let offer = Offer {
                server,
                prefix: "",
                naming: Naming::Auto,
                is_trusted: false,
            };
            let schema = json!({"type": "object", "properties": {"repository": {}}});
            let tools = tools.iter();
            let tools: Vec<_> = tools
                .map(|(name, words)| tool(name, (*words).to_owned(), schema.clone()))
                .collect();
            assert!(toolbox.add(offer, &tools).is_empty());
        };
        add("sandbox", &[("read_file", "Reads a file")]);
        add(
            "forge",
            &[
                ("createPullRequest", "Opens a pull request"),
                ("list_issues", "Lists the issues of a repository"),
                ("find_tools", "Finds screwdrivers"),
            ],
        );
        add("mail", &[("send", "Sends a message to somebody")]);
        toolbox
    }

    fn names(found: &str) -> Vec<String> {
        let lines = found.lines().skip(1);
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn tools_are_found_by_their_words_and_by_their_names() {
        let deferred = Deferred::new(&toolbox());
        let first = |query: &str| {
            let found = deferred.find(&json!({ "query": query })).unwrap();
            names(&found).first().cloned().unwrap_or_default()
        };
        assert_eq!(first("pull requests"), "createPullRequest");
        assert_eq!(first("show me an ISSUE"), "list_issues");
        assert_eq!(first("mail a message"), "send");
        assert_eq!(first("send"), "send");
        assert_eq!(
            first("screwdriver"),
            "forge__find_tools",
            "the plain name is ours"
        );
        let none = deferred.find(&json!({ "query": "xylophone" })).unwrap();
        assert!(none.starts_with("No tool matches"), "{none}");
        let all = deferred.find(&json!({ "query": " " })).unwrap();
        assert_eq!(all.lines().count(), 4, "{all}");
        assert!(all.contains("send: Sends a message"), "{all}");
        assert!(deferred.find(&json!({ "query": 3 })).is_err());
    }

    #[test]
    fn what_is_sent_is_our_own_tools_and_how_to_find_the_others() {
        let deferred = Deferred::new(&toolbox());
        let sent = deferred.definitions.iter();
        let sent: Vec<&str> = sent.map(|tool| tool.name.as_str()).collect();
        assert_eq!(sent, ["read_file", "find_tools", "use_tool"]);
        let words = &deferred.definitions[1].description;
        assert!(words.contains("forge (3), mail (1)"), "{words}");
        assert!(deferred.tokens > 50, "{}", deferred.tokens);
        let searchable = &deferred.searchable;
        assert_eq!(searchable.told[..], deferred.definitions[..1]);
        let servers = searchable.servers.iter();
        let servers: Vec<_> = servers.map(|of| (&*of.server, of.tools.len())).collect();
        assert_eq!(servers, [("forge", 3), ("mail", 1)]);
        assert!(deferred.index.get().is_none(), "nobody has searched");
    }

    #[test]
    fn a_call_names_its_tool_and_gives_it_an_object() {
        let check =
            |args: Value, expected: Result<(&str, Value), &str>| match (asked_for(&args), expected)
            {
                (Ok((tool, inner)), Ok(expected)) => assert_eq!((tool.as_str(), inner), expected),
                (Err(problem), Err(part)) => assert!(problem.contains(part), "{problem}"),
                (found, _) => panic!("{args}: {found:?}"),
            };
        let args = json!({"a": 1});
        check(
            json!({"tool": "t", "arguments": args}),
            Ok(("t", args.clone())),
        );
        check(
            json!({"tool": "t", "arguments": "{\"a\":1}"}),
            Ok(("t", args)),
        );
        check(json!({"tool": "t"}), Ok(("t", json!({}))));
        check(json!({"tool": "t", "arguments": [1]}), Err("`arguments`"));
        check(json!({"tool": "t", "arguments": "no"}), Err("`arguments`"));
        for tool in [
            json!(null),
            json!(3),
            json!("use_tool"),
            json!("find_tools"),
        ] {
            check(json!({"tool": tool, "arguments": {}}), Err("`tool`"));
        }
    }

    #[test]
    fn words_are_told_apart_in_every_spelling() {
        use bm25::Tokenizer as _;
        for (text, expected) in [
            ("create_pull-request", "creat pull request"),
            ("createPullRequests", "creat pull request"),
            ("Lists the issues!", "list the issu"),
            ("an issue", "an issu"),
            ("HTTP", "http"),
            ("", ""),
        ] {
            assert_eq!(Words.tokenize(text).join(" "), expected, "{text}");
        }
    }
}
