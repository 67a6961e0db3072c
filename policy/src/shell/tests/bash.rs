//! Compares the parser on random command lines with the commands that bash itself starts.

use std::process::{Command, Stdio};

use proptest::prelude::*;
use tempfile::TempDir;

use crate::shell::grammar::begins_no_option;
use crate::shell::{Hidden, Word, read};

/// Returns the words of every command that bash would start for `text`, through a hook that runs instead of
/// them. Bash writes line by line, so concurrent commands write no line end.
fn started_by_bash(text: &str, folder: &TempDir) -> Vec<Vec<String>> {
    let (log, home) = (folder.path().join("log"), folder.path().join("home"));
    std::fs::create_dir_all(&home).unwrap();
    let hook = format!(
        "PATH=/nowhere; command_not_found_handle() {{\n\
         local IFS=$'\\1'; local line=\"$*\"; printf '%s\\2' \"${{line//$'\\n'/$'\\3'}}\" >>'{log}'; }}\n\
         trap wait EXIT; exec 2>/dev/null\n{text}",
        log = log.display()
    );
    std::fs::write(&log, "").unwrap();
    let status = Command::new("bash")
        .args(["-c", &hook])
        .current_dir(&home)
        .env("HOME", &home)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.unwrap();
    let log = String::from_utf8(std::fs::read(&log).unwrap()).unwrap();
    let lines = log.replace('\u{3}', "\n");
    let mut lines: Vec<&str> = lines.split('\u{2}').collect();
    assert_eq!(lines.pop(), Some(""), "{text:?}");
    let words = |line: &str| line.split('\u{1}').map(str::to_owned).collect();
    lines.into_iter().map(words).collect()
}

/// Returns true if bash could have made `started` from `words`.
fn may_become(words: &[Word], started: &[String]) -> bool {
    match words.split_first() {
        None => started.is_empty(),
        Some((Word::Literal(text), rest)) => started
            .split_first()
            .is_some_and(|(first, more)| first == text && may_become(rest, more)),
        Some((Word::Open { is_tame: true }, rest)) => {
            let tame = started
                .iter()
                .take_while(|word| begins_no_option(word))
                .count();
            (1..=tame).any(|many| may_become(rest, &started[many..]))
        }
        Some((Word::Open { is_tame: false }, rest)) => {
            (0..=started.len()).any(|many| may_become(rest, &started[many..]))
        }
    }
}

/// Generates texts from pieces: some look like commands, some like nothing.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c1", "-x", "{}", "é", "=", "x=", "~", "1", "2"]),
        6 => prop::sample::select(vec![" ", " ", " ", "\n", "\t", "; ", " && ", " | ", " || ", " & "]),
        4 => prop::sample::select(vec!["'", "\"", "\\", "#", "$", "\\\n", "'b c'", "\"$x\"", "\"a$x\"", "$(", ")", "(", "{ ", "}", "; }"]),
        2 => prop::sample::select(vec![">", ">>", "<", "2>&1", "<<<", "<<X\n", "<<X", "\nX\n", "<<'X'\n", "<<-X\n", "\tX\n", "<(", "&>", ">|", ">/dev/null"]),
        2 => prop::sample::select(vec!["if ", "then ", "; then ", "fi", "; fi", "else ", "while ", "do ", "; do ", "done", "; done", "for ", "for v in a b", "\"$v\"", "! ", "in ", "time "]),
        2 => prop::sample::select(vec!["*", "?", "[", "]", "{a,b}", "{", ",", "!", "~", ":", "^", "%", "@", "+", "`", "[[", "]]", "((", "))", "case ", "$v", "${v}", "${x:-a}", "$'", "$1", "eval ", "eval 'a b'", "sleep 1"]),
    ];
    prop::collection::vec(piece, 1..14).prop_map(|pieces| pieces.concat())
}

/// Words that may hide where they end.
const WORDS: &[&str] = &[
    "a",
    "b",
    "-x",
    "'b\nc'",
    "\"b\nc\"",
    "'it'\\''s'",
    "\\#",
    "a#b",
    "\\;",
    "{}",
    "\"a$v\"",
    "\"$v\"",
    "'#'",
    "\"'\"",
    "'\"'",
    "c=d",
    "\\\\",
    "''",
    ">/dev/null",
    "2>&1",
    "&>/dev/null",
    "<<<'a\nb'",
    "$v",
    "*",
];

/// Ends of commands that may hide where the line ends.
const ENDS: &[&str] = &[
    "; ",
    " && ",
    " || ",
    " | ",
    " & ",
    "\n",
    "\n\n",
    " # it's\n",
    " # \"\n",
    " # $(\n",
    " #\\\n",
    " \\\n",
    ";\n",
    " |\n",
    " <<X\n'\nX\n",
    " <<'X'\n$(\nX\n",
    " <<-X\n\tb\n\tX\n",
    " <<X | ",
    " <<X; ",
    "\nb\nX\n",
    " <<X && b\nc\nX\n",
];

/// Generates texts that bash mostly understands, with everything that may hide where a word or a line ends.
fn lists() -> impl Strategy<Value = String> {
    let words = prop::sample::select(WORDS);
    let word = words.prop_map(|word| (*word).to_owned());
    let separators = prop::sample::select(ENDS);
    let simple = prop::collection::vec(word, 1..4).prop_map(|words| words.join(" "));
    let list = simple.prop_recursive(4, 24, 3, move |inner| {
        let list = prop::collection::vec((inner.clone(), separators.clone()), 1..4)
            .prop_map(|list| list.into_iter().flat_map(|(one, end)| [one, (*end).to_owned()]).collect::<String>());
        prop_oneof![
            4 => list,
            1 => inner.clone().prop_map(|list| format!("( {list} )")),
            1 => inner.clone().prop_map(|list| format!("{{ {list}\n}}")),
            1 => inner.clone().prop_map(|list| format!("a $({list}\n) b")),
            1 => inner.clone().prop_map(|list| format!("a \"x$({list})\"")),
            1 => inner.clone().prop_map(|list| format!("a <({list}) b")),
            1 => inner.clone().prop_map(|list| format!("! {list}")),
            1 => inner.clone().prop_map(|list| format!("for v in s -s; do {list}\ndone")),
            1 => inner.clone().prop_map(|list| format!("for v in s t*; do\n{list}\ndone >/dev/null")),
            1 => (inner.clone(), inner).prop_map(|(one, two)| format!("if {one}\nthen {two}; else {one}\nfi")),
        ]
    });
    // One change makes a text that is almost understood.
    (
        list,
        any::<prop::sample::Index>(),
        prop::sample::select(vec![
            "", "", "'", "\"", "\\", "\n", "#", ")", "$", " ", "<", "&",
        ]),
    )
        .prop_map(|(mut list, at, sign)| {
            let ends: Vec<usize> = list.char_indices().map(|(at, _)| at).collect();
            list.insert_str(*at.get(&ends), sign);
            list
        })
}

/// Runs at least 1,024 random texts; `PROPTEST_CASES` sets more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: default.cases.max(1_024),
        failure_persistence: None,
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    /// Every command that bash starts for a parsed text is one of its parts.
    #[test]
    fn bash_starts_nothing_that_was_not_read(text in prop_oneof![1 => pieces(), 2 => lists()]) {
        // An endless loop in bash, because its hook succeeds.
        if text.contains("while") || text.contains("until") {
            return Ok(());
        }
        let Ok(parts) = read(&text) else { return Ok(()) };
        let folder = TempDir::new().unwrap();
        let is_hidden = parts.iter().any(|part| !matches!(part.hidden, None | Some(Hidden::Assignment)));
        for started in started_by_bash(&text, &folder) {
            let is_read = parts.iter().any(|part| may_become(&part.words, &started));
            prop_assert!(is_read || is_hidden, "{:?}: bash started {:?}, read was {:?}", text, started, parts);
        }
        let files = std::fs::read_dir(folder.path().join("home")).unwrap();
        let redirects = parts.iter().any(|part| part.redirects);
        // `eval '>'{`: the writes of a hidden command are unknown.
        prop_assert!(redirects || is_hidden || files.count() == 0, "{:?} wrote", text);
    }

    #[test]
    fn every_text_has_an_end(text in "\\PC{0,200}") {
        let _ = read(&text);
    }
}
