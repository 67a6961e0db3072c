//! Rebuilds when a migration or the page changes: the macros that embed them cannot see new files
//! by themselves.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    // A folder that is missing would count as changed at every build.
    if let Err(error) = std::fs::create_dir_all("public") {
        println!("cargo:warning=cannot create the folder `public`: {error}");
    }
    println!("cargo:rerun-if-changed=public");
}
