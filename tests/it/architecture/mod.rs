//! Checks the rules of ARCHITECTURE.md that Cargo cannot check: Cargo keeps the crates in order, and these
//! tests the modules of each crate.

mod roads;
mod rules;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use source::Source;

/// The layers of the program and of the core, from top to bottom; each may use what stands below it.
const LAYERS: &[&[&str]] = &[
    &["cli"],
    &["app"],
    &["gateway"],
    &["agent"],
    CRATES,
    &["history"],
    &["session"],
    &["domain"],
];

/// The crates that the program exports like modules. Cargo keeps the order among them.
const CRATES: &[&str] = &[
    "config",
    "context",
    "jobs",
    "llm",
    "mcp",
    "net",
    "oidc",
    "providers",
    "sandbox",
    "servers",
    "skills",
    "store",
    "telemetry",
    "tenancy",
];

/// Modules that only compute: no waiting, no I/O, no clock.
const PURE: &[&str] = &["domain", "history", "session"];

/// Paths that a pure module must not name. `Cargo.toml` of `crates/core` keeps other crates away.
const IMPURE_PATHS: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "net"],
    &["std", "time", "SystemTime"],
    &["std", "time", "Instant"],
];

/// Words that a pure module must not use.
const IMPURE_WORDS: &[&str] = &["async", "await", "SystemTime", "Instant"];

/// Names that say nothing.
const EMPTY_NAMES: &[&str] = &[
    "common", "core", "helper", "helpers", "manager", "managers", "types", "util", "utils",
];

/// One file of a crate.
struct File {
    /// Its path below the crate's `src`.
    path: String,
    /// The module it holds, without `crate`.
    place: Vec<String>,
    text: String,
    source: Source,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        let stem = path.trim_end_matches(".rs");
        let place: Vec<&str> = stem
            .split('/')
            .filter(|name| !matches!(*name, "mod" | "lib" | "main"))
            .collect();
        Self {
            path: path.to_owned(),
            source: source::read(text, &place),
            place: place.into_iter().map(str::to_owned).collect(),
            text: text.to_owned(),
        }
    }

    /// The top-level module; `None` for `lib.rs` and `main.rs`.
    fn module(&self) -> Option<&str> {
        self.place.first().map(String::as_str)
    }

    /// The paths into our own crate, without `crate`.
    fn own_paths(&self) -> impl Iterator<Item = &[String]> {
        let paths = self.source.paths.iter();
        paths.filter_map(|path| path.strip_prefix(&["crate".to_owned()]))
    }
}

/// The trees of modules that have layers: the program, and the core, whose modules the program exports.
const LAYERED: [&str; 2] = ["src", "crates/core/src"];

/// All trees of modules by their folder, read once for all rules: that takes longer than any of them.
fn trees() -> &'static BTreeMap<String, Vec<File>> {
    static TREES: LazyLock<BTreeMap<String, Vec<File>>> = LazyLock::new(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let crates = fs::read_dir(root.join("crates")).unwrap();
        let crates = crates.map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            format!("crates/{name}/src")
        });
        let folders = crates.chain(["src".to_owned()]);
        folders
            .map(|folder| {
                let files = files_below(&folder);
                (folder, files)
            })
            .collect()
    });
    &TREES
}

/// The findings of a rule in the layered trees.
fn in_layers(rule: fn(&[File]) -> Vec<String>) -> Vec<String> {
    let layered = LAYERED.iter().map(|folder| &trees()[*folder]);
    layered.flat_map(|files| rule(files)).collect()
}

/// The findings of a rule in all trees.
fn everywhere(rule: fn(&[File]) -> Vec<String>) -> Vec<String> {
    trees().values().flat_map(|files| rule(files)).collect()
}

fn files_below(folder: &str) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
                files.push(File::new(name, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Uses of a layer that does not stand below.
fn wrong_layers(files: &[File]) -> Vec<String> {
    let mut wrong = BTreeSet::new();
    for file in files {
        let Some(from) = file.module() else { continue };
        for target in file.own_paths().filter_map(<[String]>::first) {
            let is_below = match (layer(from), layer(target)) {
                (Some(from), Some(to)) => from < to,
                // Not a module: a macro or an item of `lib.rs`, which belongs to nobody.
                _ => false,
            };
            if target != from && !is_below {
                wrong.insert(format!("{}: `{from}` may not use `{target}`", file.path));
            }
        }
    }
    wrong.into_iter().collect()
}

/// What a pure module says that it must not.
fn impurities(files: &[File]) -> Vec<String> {
    let mut wrong = BTreeSet::new();
    let pure = |file: &&File| file.module().is_some_and(|module| PURE.contains(&module));
    for file in files.iter().filter(pure) {
        for path in &file.source.paths {
            let is_impure = |impure: &&[&str]| {
                path.len() >= impure.len() && path.iter().zip(*impure).all(|(a, b)| a == b)
            };
            if IMPURE_PATHS.iter().any(is_impure) {
                wrong.insert(format!("{}: `{}`", file.path, path.join("::")));
            }
        }
        let words = file.source.words.iter();
        let words = words.filter(|word| IMPURE_WORDS.contains(&word.as_str()));
        wrong.extend(words.map(|word| format!("{}: `{word}`", file.path)));
    }
    wrong.into_iter().collect()
}

/// Circles between the modules of one folder, as far as they name each other directly.
fn circles(files: &[File]) -> Vec<String> {
    let modules: BTreeSet<&[String]> = files.iter().map(|file| file.place.as_slice()).collect();
    let mut uses: BTreeMap<&[String], BTreeSet<&[String]>> = BTreeMap::new();
    for file in files {
        for path in file.own_paths() {
            // Both are cut to the first name in which they differ: siblings of one folder.
            let same = file
                .place
                .iter()
                .zip(path)
                .take_while(|(a, b)| a == b)
                .count();
            let (from, to) = (file.place.get(..=same), path.get(..=same));
            if let (Some(from), Some(to)) = (from, to)
                && modules.contains(to)
            {
                uses.entry(from).or_default().insert(to);
            }
        }
    }
    let starts = uses.keys().filter(|start| reaches(start, start, &uses));
    starts.map(|start| start.join("::")).collect()
}

/// Whether a module uses another, directly or through its siblings.
fn reaches<'a>(
    from: &'a [String],
    goal: &[String],
    uses: &BTreeMap<&'a [String], BTreeSet<&'a [String]>>,
) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for &next in uses.get(module).into_iter().flatten() {
            if next == goal {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

fn empty_names(files: &[File]) -> Vec<String> {
    let mut wrong = BTreeSet::new();
    for file in files {
        for name in file.place.iter().chain(&file.source.modules) {
            if EMPTY_NAMES.contains(&name.as_str()) {
                wrong.insert(format!("{}: module `{name}`", file.path));
            }
        }
    }
    wrong.into_iter().collect()
}

fn without_front_page(files: &[File]) -> Vec<String> {
    let without = files.iter().filter(|file| !file.text.starts_with("//!"));
    without.map(|file| file.path.clone()).collect()
}

/// Public items without a doc comment. Modules open with their front page.
fn undocumented(files: &[File]) -> Vec<String> {
    const ITEMS: &[&str] = &[
        "pub fn ",
        "pub async fn ",
        "pub struct ",
        "pub enum ",
        "pub trait ",
        "pub const ",
        "pub static ",
        "pub type ",
    ];
    let mut wrong = Vec::new();
    for file in files {
        let (mut is_documented, mut is_in_attribute) = (false, false);
        for line in file.text.lines().map(str::trim_start) {
            if line.starts_with("///") || line.starts_with("$(#[") {
                is_documented = true;
            } else if is_in_attribute || line.starts_with("#[") {
                is_in_attribute = !line.ends_with(']');
            } else {
                if !is_documented && ITEMS.iter().any(|item| line.starts_with(item)) {
                    wrong.push(format!("{}: `{line}`", file.path));
                }
                is_documented = false;
            }
        }
    }
    wrong
}

/// Modules of `lib.rs` that are in no layer or stand above one that they may not use.
fn wrong_reading_order(files: &[File]) -> Vec<String> {
    let mut wrong = Vec::new();
    for lib in files.iter().filter(|file| file.path == "lib.rs") {
        let mut last = 0;
        for module in &lib.source.modules {
            match layer(module) {
                Some(at) if at >= last => last = at,
                Some(_) => wrong.push(format!("`{module}` stands too low")),
                None => wrong.push(format!("`{module}` is in no layer")),
            }
        }
    }
    wrong
}

#[track_caller]
fn assert_none(rule: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{rule}:\n  {}", wrong.join("\n  "));
}

/// Asserts S0.66.
#[test]
fn a_layer_uses_only_what_stands_below_it() {
    assert_none(
        "Each layer may use only what stands below it, siblings never each other",
        &in_layers(wrong_layers),
    );
}

#[test]
fn the_pure_core_has_no_clock_and_no_io() {
    assert_none(
        "These modules only compute: no async, no clock, no I/O",
        &in_layers(impurities),
    );
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    assert_none(
        "These modules use each other in a circle; put what they share into a third",
        &everywhere(circles),
    );
}

#[test]
fn every_module_has_a_name_that_says_something() {
    assert_none(
        "A module is called for what it is about",
        &everywhere(empty_names),
    );
}

#[test]
fn every_file_opens_with_its_front_page() {
    assert_none(
        "Every file opens with one or two sentences after `//!`",
        &everywhere(without_front_page),
    );
}

#[test]
fn every_public_item_says_what_it_is_for() {
    assert_none(
        "A public item has a doc comment (fields only where their name and type do not say it)",
        &everywhere(undocumented),
    );
}

#[test]
fn the_front_page_lists_the_modules_in_reading_order() {
    assert_none(
        "lib.rs lists the modules from the top layer to the bottom",
        &in_layers(wrong_reading_order),
    );
}
