//! Files that are written from the code stand in the repository as the code would write them.

use std::fs;
use std::path::Path;

use sepal::config::docs;
use sepal::gateway;

/// Compares a file, or writes it for `./run generate`.
fn check(path: &str, expected: &str) {
    #[expect(
        clippy::disallowed_methods,
        reason = "`./run generate` has no other way to tell a test that it should write"
    )]
    let writes = std::env::var_os("SEPAL_GENERATE").is_some();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if writes {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expected,
        "`{path}` differs from what the code says; run `./run generate` and commit it"
    );
}

#[test]
fn the_documentation_of_the_settings_is_current() {
    check("docs/configuration.md", &docs::markdown());
}

#[test]
fn the_example_environment_is_current() {
    check(".env.example", &docs::env_example());
}

#[test]
fn the_description_of_the_rest_door_is_current() {
    check("docs/openapi.json", &gateway::openapi_json());
}
