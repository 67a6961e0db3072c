//! Reads the paths that a source file names, by its tokens: comments, strings and macros included
//! in the way the compiler sees them.

use std::iter::Peekable;

use proc_macro2::{Delimiter, TokenStream, TokenTree, token_stream};

/// What one file says that the rules ask for.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Every path with two segments or more, `crate::` and `super::` resolved to start at `crate`.
    pub(super) paths: Vec<Vec<String>>,
    /// Every identifier.
    pub(super) words: Vec<String>,
    /// Modules that are declared, in order.
    pub(super) modules: Vec<String>,
}

/// Reads a file's text; `place` is the module it holds, without `crate`.
pub(super) fn read(text: &str, place: &[&str]) -> Source {
    let mut source = Source::default();
    let place: Vec<String> = place.iter().map(|&name| name.to_owned()).collect();
    let tokens: TokenStream = text.parse().unwrap();
    source.stream(tokens, &place);
    source
}

impl Source {
    fn stream(&mut self, tokens: TokenStream, place: &[String]) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => self.stream(group.stream(), place),
                TokenTree::Ident(word) if word == "mod" => self.module(&mut tokens, place),
                TokenTree::Ident(word) => {
                    let paths = rest_of_path(word.to_string(), &mut tokens, self, place);
                    let paths = paths.into_iter().filter(|path| path.len() > 1);
                    self.paths.extend(paths.map(|path| absolute(path, place)));
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn module(&mut self, tokens: &mut Peekable<token_stream::IntoIter>, place: &[String]) {
        let Some(TokenTree::Ident(name)) = tokens.next() else {
            return;
        };
        self.modules.push(name.to_string());
        if let Some(TokenTree::Group(body)) = tokens.next_if(is_braces) {
            let mut place = place.to_vec();
            place.push(name.to_string());
            self.stream(body.stream(), &place);
        }
    }
}

/// All paths that begin with the word: one, or one for each leaf behind braces.
fn rest_of_path(
    word: String,
    tokens: &mut Peekable<token_stream::IntoIter>,
    source: &mut Source,
    place: &[String],
) -> Vec<Vec<String>> {
    source.words.push(word.clone());
    if !take_colons(tokens) {
        return vec![vec![word]];
    }
    let tails = match tokens.peek() {
        Some(TokenTree::Ident(_)) => {
            let next = tokens.next().unwrap().to_string();
            rest_of_path(next, tokens, source, place)
        }
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let inner = group.stream();
            tokens.next();
            leaves(inner, source, place)
        }
        Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
            tokens.next();
            vec![vec!["*".to_owned()]]
        }
        _ => vec![vec![]],
    };
    let with_word = tails.into_iter().map(|mut tail| {
        tail.insert(0, word.clone());
        tail
    });
    with_word.collect()
}

/// The paths inside the braces of a `use`.
fn leaves(inner: TokenStream, source: &mut Source, place: &[String]) -> Vec<Vec<String>> {
    let mut tokens = inner.into_iter().peekable();
    let mut paths = Vec::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) => {
                paths.extend(rest_of_path(word.to_string(), &mut tokens, source, place));
            }
            TokenTree::Punct(star) if star.as_char() == '*' => paths.push(vec!["*".to_owned()]),
            TokenTree::Punct(_) | TokenTree::Group(_) | TokenTree::Literal(_) => {}
        }
    }
    paths
}

/// Takes `::`, if it is next.
fn take_colons(tokens: &mut Peekable<token_stream::IntoIter>) -> bool {
    let mut ahead = tokens.clone();
    let is_colons = [ahead.next(), ahead.next()]
        .iter()
        .all(|token| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':'));
    if is_colons {
        *tokens = ahead;
    }
    is_colons
}

fn is_braces(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// Resolves leading `self` and `super` against the module in which the path stands.
fn absolute(path: Vec<String>, place: &[String]) -> Vec<String> {
    let ups = path
        .iter()
        .take_while(|segment| *segment == "super")
        .count();
    let is_relative = ups > 0 || path.first().is_some_and(|first| first == "self");
    if !is_relative {
        return path;
    }
    let base = place.len().saturating_sub(ups);
    let skipped = ups.max(1);
    let tail = path.into_iter().skip(skipped);
    let base = place.iter().take(base).cloned();
    std::iter::once("crate".to_owned())
        .chain(base)
        .chain(tail)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[track_caller]
    fn check(text: &str, place: &[&str], expected: &[&str]) {
        let source = read(text, place);
        let paths: Vec<String> = source.paths.iter().map(|path| path.join("::")).collect();
        assert_eq!(paths, expected);
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        check("use crate::llm::Error;", &["mcp"], &["crate::llm::Error"]);
        check(
            "use crate::{llm::{Error, wire::*}, mcp};",
            &["x"],
            &["crate::llm::Error", "crate::llm::wire::*", "crate::mcp"],
        );
        check(
            "fn f() { crate::app::run(1) }",
            &["x"],
            &["crate::app::run"],
        );
        check("info!(\"{}\", crate::app::X);", &["x"], &["crate::app::X"]);
        check("use super::super::app::X;", &["a", "b"], &["crate::app::X"]);
        check("use super::c;", &["a", "b"], &["crate::a::c"]);
        check(
            "mod t { use super::super::c::D; }",
            &["a", "b"],
            &["crate::a::c::D"],
        );
        check("use self::c::D;", &["a"], &["crate::a::c::D"]);
        check("pub(crate) fn f() {} // crate::app::run", &["a"], &[]);
        check("const S: &str = \"crate::app\";", &["a"], &[]);
        check(
            "let x = a.b::<C>(std::fs::read(p));",
            &["a"],
            &["std::fs::read"],
        );
    }

    #[test]
    fn words_and_modules_are_found() {
        let source = read("mod a; pub mod b { mod c {} async fn f() {} }", &[]);
        assert_eq!(source.modules, ["a", "b", "c"]);
        assert!(source.words.contains(&"async".to_owned()));
    }
}
