# shellcheck shell=bash
# Formats and lints. Sourced by `run`.

document_rust() { RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps --document-private-items; }

# Of the scripts as bash and of docker-compose.yml as compose see them, where those are installed.
lint_scripts() {
    local script scripts=() version
    while IFS= read -r script; do
        # What is sourced is read through what sources it.
        [[ $(head -c 32 "$script" | tr -d '\0') != '#!/usr/bin/env bash'* ]] || scripts+=("$script")
    done < <(git ls-files -- run .ci docker deploy tests)
    if has shellcheck; then
        shellcheck --external-sources "${scripts[@]}"
    else
        printf 'shellcheck is not installed; the scripts are looked at where it is.\n'
    fi
    version=$(project_version)
    if grep -E 'SEPAL_VERSION:-' docker-compose.yml | grep -vqF "SEPAL_VERSION:-$version}"; then
        printf 'docker-compose.yml names another version than %s of Cargo.toml.\n' "$version" >&2
        return 1
    fi
    lint_dockerignore
}

# The images are compiled from what .dockerignore lets in: every crate of ours has to be in it.
lint_dockerignore() {
    local crate
    while IFS= read -r crate; do
        if ! grep -qxF "!${crate%%/*}" .dockerignore; then
            printf '.dockerignore keeps %s of Cargo.toml out of the images.\n' "$crate" >&2
            return 1
        fi
    done < <(sed -nE 's/^members = \[(.*)\]$/\1/p; s/.*[{ ]path = ("[^"]*").*/\1/p' Cargo.toml |
        grep -o '"[^"]*"' | tr -d '"' | grep -vxF . | sort -u)
}

lint_rust() {
    step 'Format of Rust' cargo fmt --all --check
    step 'Lints of Rust' cargo clippy --locked --workspace --all-targets -- -D warnings
    # Not among all targets, because `cargo test` shall not run it.
    step 'Lints of the test of sizes' cargo clippy --locked --workspace --test scale -- -D warnings
    step 'Licences of crates' deploy/notices/programs --check
}

# linted COMMAND...: runs cargo with lints on while it compiles our own crates, set up as `cargo clippy -- -D warnings`
# does. Clippy's driver also generates code, so lints and tests cost one compilation. Dependencies are those of a plain
# `cargo test`.
linted() {
    LLVM_PROFILE_FILE=$target/coverage/session/%8m.profraw CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ ours "$@"
}

build_linted_tests() {
    rm -rf -- "$target/coverage/session"
    # `--test '*'` includes the tests that `cargo test` alone does not run. A second command for those would
    # build all crates once more, with other features.
    linted cargo test --locked --workspace --no-run --lib --bins --examples --test '*'
    place_sandbox_server debug
}

# Spectral reads the description of the REST door as its clients' generators do.
lint_description() {
    npm_install tests/openapi
    npm --prefix tests/openapi run lint
}

lint_page() {
    step 'Install packages of the page' npm_install web
    step 'Install packages of the client' npm_install clients/typescript
    step 'Lints of the page' npm --prefix web run lint
    step 'Types of the page' npm --prefix web run typecheck
    step 'Lints of the description of the REST door' lint_description
}
