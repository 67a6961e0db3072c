//! Tests the parser of command lines, as tables.

mod bash;

use super::{Part, Word, read};

/// Formats a part as text: `[word]` each, `*` for tame and `?` for wild open words, followed by marks.
fn shown(part: &Part) -> String {
    let words = part.words.iter().map(|word| match word {
        Word::Literal(text) => format!("[{text}]"),
        Word::Open { is_tame: true } => "*".to_owned(),
        Word::Open { is_tame: false } => "?".to_owned(),
    });
    let mut text: String = words.collect();
    for (is_marked, mark) in [
        (part.redirects, " redirects"),
        (part.hidden.is_some(), " hidden"),
        (part.is_shadow, " shadow"),
    ] {
        text.push_str(if is_marked { mark } else { "" });
    }
    text
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let parts = read(text).unwrap_or_else(|why| panic!("{text:?}: {why}"));
    let parts: Vec<String> = parts.iter().map(shown).collect();
    assert_eq!(parts, expected, "{text:?}");
}

#[test]
fn words_are_read_as_bash_reads_them() {
    check("a b", &["[a][b]"]);
    check("a 'b c' \"d e\" f\\ g", &["[a][b c][d e][f g]"]);
    check("a'b'\"c\"d ''", &["[abcd][]"]);
    check("a \"\\a\\$\\\"\"", &["[a][\\a$\"]"]);
    check("a#b #c", &["[a#b]"]);
    check("a \\\n  b", &["[a][b]"]);
    check("a {} x{}", &["[a][{}][x{}]"]);
    check("a {b,c} b}", &["[a]??"]);
    check("a HEAD~1 ~ ~x a=~ a:~", &["[a][HEAD~1]??**"]);
    check("a *.c s/*.c -* [ab]", &["[a]?*??"]);
    check("a $x \"$x\" \"b$x\" \"-$x\" b$x ${x} $1", &["[a]??*????"]);
    check("a $ \"$\"", &["[a][$][$]"]);
    check("[ a = b ]", &["[[][a][=][b][]]"]);
}

#[test]
fn every_command_of_a_line_is_a_part() {
    check(
        "a && b || c | d; e & f",
        &["[a]", "[b]", "[c]", "[d]", "[e]", "[f]"],
    );
    check("a\nb\n\nc", &["[a]", "[b]", "[c]"]);
    check("(a; b) && { c; }", &["[a]", "[b]", "[c]"]);
    check(
        "if a; then b; elif c; then d; else e; fi",
        &["[a]", "[b]", "[c]", "[d]", "[e]"],
    );
    check("while a; do b; done", &["[a]", "[b]"]);
    check("! a", &["[a]"]);
    check("a $(b \"$(c)\") <(d)", &["[c]", "[b]?", "[d]", "[a]?*"]);
    check("for f in x y; do a \"$f\" $f; done", &["[a]*?"]);
    check("for f in x -y; do a \"$f\"; done", &["[a]?"]);
    check("for f in $(b); do a \"$f\"; done", &["[b]", "[a]?"]);
    check(
        "for f in s/*; do a \"$f\"; done; a \"$f\"",
        &["[a]*", "[a]?"],
    );
    check("for _ in s; do a \"$_\"; done", &[" hidden", "[a]?"]);
    check("for PATH in s; do a; done", &[" hidden", "[a]"]);
    check("for http_proxy in s; do a; done", &[" hidden", "[a]"]);
    check("a {b}<c", &["[a]? hidden"]);
    check("{b}>/dev/null a", &["?[a] hidden"]);
    check("{ a; }</dev/null", &["[a]"]);
}

#[test]
fn functions_branches_and_backquotes_are_read() {
    check("a `b` \"x`c \\`d\\``\"", &["[b]", "[d]", "[c]?", "[a]?*"]);
    check("a() { b; }; a", &["[b]", " hidden", "[a]"]);
    check("function a { b $1; }", &["[b]?", " hidden"]);
    check("a () ( b )", &["[b]", " hidden"]);
    check(
        "case $(a) in b|'c d') e;; (f*) g; h ;& *) i; esac > j",
        &["[a]", "[e]", "[g]", "[h]", "[i]", " redirects"],
    );
    check(
        "trap 'a; b' EXIT",
        &["[a]", "[b]", "[trap][a; b][EXIT] hidden"],
    );
    check("sh <<X\na\nX\nb", &["[a]", "[sh] hidden", "[b]"]);
    check("a <<X\nb\nX", &["[a]"]);
}

#[test]
fn redirections_and_assignments_are_seen() {
    check("a > b", &["[a] redirects"]);
    check("a <b", &["[a]"]);
    check("a <$b", &["[a] redirects"]);
    check("a <>b", &["[a] redirects"]);
    check("a </dev/tcp/b/1", &["[a] redirects"]);
    check("a >/dev/null 2>&1 2>&-", &["[a]"]);
    check("a &>b", &["[a] redirects"]);
    check("a >&b", &["[a] redirects"]);
    check("a 2b>c", &["[a][2b] redirects"]);
    check("{ a; } > b", &["[a]", " redirects"]);
    check("> b", &[" redirects"]);
    check("a <<< \"$(b)\"", &["[b]", "[a]"]);
    check("A=1 b", &["[b] hidden"]);
    check("A=$(c) b", &["[c]", "[b] hidden"]);
    check("A+=1", &[" hidden"]);
    check("a <<X | b\n1\nX\nc", &["[a]", "[b]", "[c]"]);
    check("a <<'X'\n$(b)\nX", &["[a]"]);
    check("a <<-X\n\t1\n\tX\nc", &["[a]", "[c]"]);
    check("a <<X <<Y\nX\nX\nY\nc", &["[a]", "[c]"]);
}

#[test]
fn commands_in_commands_are_looked_through() {
    check("env -i a b", &["[a][b]", "[env][-i][a][b]"]);
    check("env A=1 b", &["[b]", "[env][A=1][b] hidden"]);
    check("env -S 'a b'", &["[env][-S][a b] hidden"]);
    check(
        "timeout -k 5 10 a b",
        &["[a][b]", "[timeout][-k][5][10][a][b]"],
    );
    check(
        "timeout --unknown 10 a",
        &["[timeout][--unknown][10][a] hidden"],
    );
    check(
        "nice -n5 nohup a",
        &["[a]", "[nohup][a]", "[nice][-n5][nohup][a]"],
    );
    check("sudo -u x a", &["[a]", "[sudo][-u][x][a]"]);
    check("sh -c 'a && b' c", &["[a]", "[b]", "[sh][-c][a && b][c]"]);
    check("bash -lc \"a '$x'\"", &["[bash][-lc]* hidden"]);
    check("sh -c 'a $(('", &["[sh][-c][a $((] hidden"]);
    check("a | sh", &["[a]", "[sh] hidden"]);
    check("bash a b", &["[a][b] shadow", "[bash][a][b]"]);
    check("eval a '&& b'", &["[a]", "[b]", "[eval][a][&& b]"]);
    check(
        "xargs -0 -n 1 a b",
        &["[a][b]?", "[xargs][-0][-n][1][a][b]"],
    );
    check("xargs -I{} a x{}", &["[a]?", "[xargs][-I{}][a][x{}]"]);
    check(
        "find s -exec a {} \\; -exec b {}x +",
        &[
            "[a]*",
            "[b]?[+]",
            "[find][s][-exec][a][{}][;][-exec][b][{}x][+]",
        ],
    );
    check("git -C x a", &["[git][a] shadow", "[git][-C][x][a]"]);
    check(
        "git -c x=y a",
        &["[git][a] shadow", "[git][-c][x=y][a] hidden"],
    );
    check("git rebase --exe a", &["[git][rebase][--exe][a] hidden"]);
    check("python -c a", &["[python][-c][a] hidden"]);
    check("python3.12 a b", &["[a][b] shadow", "[python3.12][a][b]"]);
    check("python -m a", &["[python][-m][a]"]);
    check("alias a=b", &["[alias][a=b] hidden"]);
    check("set -euo pipefail", &["[set][-euo][pipefail]"]);
    check("set -- a", &["[set][--][a] hidden"]);
    check("awk '{print $1}' f", &["[awk][{print $1}][f]"]);
    check(
        "awk 'BEGIN{system(\"a\")}'",
        &["[awk][BEGIN{system(\"a\")}] hidden"],
    );
    check("sed s/a/b/g f", &["[sed][s/a/b/g][f]"]);
    check("sed s/a/b/e f", &["[sed][s/a/b/e][f] hidden"]);
    check("time ! a", &["[!][a]", "[time][!][a] hidden"]);
    check("command -v a", &["[command][-v][a]"]);
    check("tar -I a -xf b", &["[tar][-I][a][-xf][b] hidden"]);
}

/// Texts that bash refuses, or whose meaning in bash is uncertain.
const UNREAD: &[&str] = &[
    "",
    "  ",
    "# a",
    "a '",
    "a \"",
    "a $(",
    "a $((1))",
    "a $[1]",
    "a $'b'",
    "a $\"b\"",
    "a ${b:-c}",
    "a ${#b}",
    "[[ a ]]",
    "((a))",
    "select a in b; do c; done",
    "coproc a",
    "a |& b",
    "a ;; b",
    "a `b",
    "a ``",
    "a() b",
    "a() (( b ))",
    "function a b",
    "case a in a) b;; ",
    "case a in a b) c;; esac",
    "case a in @(a|b)) c;; esac",
    "case in esac",
    "a &&& b",
    "a(b)",
    "a @(b|c)",
    "a=(b c)",
    "a[1]=b",
    "a[$(b)]=c",
    "a\u{a0}b",
    "a\u{200b}b",
    "a\u{202e}b",
    "a\u{301}",
    "a\rb",
    "a\x07",
    "a\u{feff}",
    "a \\",
    "a\\\nb",
    "a \"b\\\nc\"",
    "a <<X",
    "a <<X\nb",
    "a <<X\n$b\nX",
    "a <<X\n`b`\nX",
    "a <<\"$x\"\n$x",
    "a <<X 'b\nc'\nX",
    "a $(b <<X)\nX",
    "a <(#b\n)",
    "a $()",
    "a $(b <<X\n1\nX\nc;\nd & )",
    "if a; then b",
    "{ a",
    "( a",
    "a )",
    "a; }",
    "then a",
    "a | ",
    "a &&",
    "for a b",
    "for ((;;)); do a; done",
    "for f in a; do for f in -x; do b; done; done",
    "a <(b)c",
    "a >",
    "a > > b",
    "$a(b)",
    "a $\\\nb",
    "time { a; }",
];

#[test]
fn what_is_not_surely_understood_is_not_read() {
    for text in UNREAD {
        assert!(read(text).is_err(), "{text:?}: {:?}", read(text));
    }
}

#[test]
fn what_is_too_long_or_too_deep_is_not_read() {
    for deep in [
        "(".repeat(100_000),
        "a $(".repeat(100_000),
        "{ ".repeat(100_000),
        "! ".repeat(30_000),
        "a \"$(".repeat(10_000),
        format!("{}{}", "( ".repeat(1_000), " )".repeat(1_000)),
        "a;".repeat(20_000),
        "env ".repeat(10_000) + "a",
        "if ".repeat(20_000),
        "a <(".repeat(10_000),
    ] {
        assert!(read(&deep).is_err());
    }
}
