//! Rebuilds when the page changes: the macro that embeds it cannot see new files by itself.

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts by the environment"
)]
fn main() {
    if let Err(error) = std::fs::create_dir_all("web/dist") {
        println!("cargo:warning=cannot create the folder `web/dist`: {error}");
    }
    // Without a line like this one every changed file of the tree, even a document, would build the program anew.
    println!("cargo:rerun-if-changed=build.rs");
    // A debug build reads the page from its folder at run time.
    if std::env::var_os("PROFILE").is_some_and(|profile| profile == "release") {
        println!("cargo:rerun-if-changed=web/dist");
    }
}
