# shellcheck shell=bash
# Tests of Rust, of the page and of both together. Sourced by `run`.

# The tests that were skipped here, each with its reason.
skipped=()

# What a gateway of an ordinary user can seal: the tests above run as root. The user needs no name,
# and its files are copies, since it may not read ours.
escape_as_user() {
    local folder tests status=0
    if ((EUID != 0)); then
        printf 'The tests before ran as an ordinary user already.\n'
        return
    fi
    # Of the packages' test programs the one that has these tests.
    tests=$(linted cargo test --locked --workspace --test it --no-run 2>&1 |
        sed -n 's/.*Executable tests\/it\/main.rs (\(.*\))$/\1/p' |
        while read -r program; do
            if "$program" --list | grep '^sandboxes::escape' >/dev/null; then
                printf '%s\n' "$program"
            fi
        done)
    folder=$(mktemp -d "${TMPDIR:-/tmp}/sepal-escape.XXXXXX")
    mkdir -p "$folder/debug/deps" "$folder/home"
    cp "$tests" "$folder/debug/deps/it"
    cp "$target/debug/mcp-server" "$folder/debug/mcp-server"
    chown -R 65533:65533 "$folder"
    (
        cd "$folder/home"
        setpriv --reuid=65533 --regid=65533 --clear-groups \
            env -i PATH="$PATH" HOME="$folder/home" TMPDIR="$folder/home" \
            "$folder/debug/deps/it" sandboxes::escape --skip docker
    ) || status=$?
    rm -rf --one-file-system -- "$folder"
    return "$status"
}

# Schemathesis asks a real gateway what the description allows and forbids.
contract_test() {
    TARGET=$target tests/openapi/contract "$target/debug/sepal"
}

# A public test suite of SCIM asks a real gateway.
scim_test() {
    TARGET=$target tests/scim/suite "$target/debug/sepal"
}

test_unit() {
    step 'Build the sandbox server' build_sandbox_server quick debug
    step 'Unit tests of Rust' cargo test --locked --workspace --lib --bins
    step 'Install packages of the page' npm_install web
    step 'Unit tests of the page' npm --prefix web run test
}

# Chromium's own sandbox refuses root.
chromium_arguments() { [[ $(id -u) != 0 ]] || printf '%s' --no-sandbox; }

# The browser tests get a built gateway, a browser, and the client for programs.
browser_tests() {
    npm_install tests/browser
    npm_install clients/typescript
    npm --prefix clients/typescript run build
    # The authorisation server of a story.
    npm_install tests/conformance
    CHROMIUM_PATH=$(find_chromium) CHROMIUM_ARGS=$(chromium_arguments) SEPAL_BINARY=$target/debug/sepal \
        npm --prefix tests/browser test
}

# test_everything [OPTIONS]: of the test programs. What needs nothing of Rust uses the processor that compiling one crate
# after the other leaves idle.
test_everything() {
    step 'Lints of scripts' lint_scripts
    step 'Format of Rust' cargo fmt --all --check
    step 'Licences of crates' deploy/notices/programs --check
    beside 'The page, and what tests need' check_page_and_prepare
    step 'Build the tests of Rust, with lints' build_linted_tests
    finish_beside
    step 'Generated files are current' linted cargo test --locked --workspace --test it generated
    # Private servers: PostgreSQL, and a Docker engine whose image holds the sandbox server.
    # Three more than there are processors, because many wait for a sandbox or a server meanwhile.
    step 'Tests of Rust' linted env RUST_TEST_THREADS=$(($(nproc) + 3)) \
        tests/servers/servers run cargo test --locked --workspace -- "$@"
    step 'Coverage of the session' session_coverage
    step 'Conformance of the MCP client' tests/conformance/run client "$target/debug/examples/conformance-client"
    step 'Conformance of the MCP server' tests/conformance/run server "$target/debug/sepal"
    step 'Sandboxes of an ordinary user' escape_as_user
    # The tests of Rust have built the gateway, too; a debug build reads the page from its folder.
    step 'Tests in the browser' browser_tests
}

check_page_and_prepare() {
    check_page
    step 'Install the authorisation server and the conformance suite' npm_install tests/conformance
    step 'Install the browser tests' npm_install tests/browser
    step 'Make the bases of the images' tests/servers/servers bases
}

# Checks the page without a gateway, and builds it within its byte budget.
check_page() {
    lint_page
    step 'Unit tests of the page' npm --prefix web run test
    step 'Build the page, within its budget' build_changed_page
}

# Succeeds if the public registries answer, which have the packages of the tests `packages::real`.
registries_answer() {
    # shellcheck disable=SC2016 # It is Node's.
    node -e 'Promise.all(process.argv.slice(1).map((url) =>
        fetch(url, { signal: AbortSignal.timeout(20000) }).then((answer) => { if (!answer.ok) throw answer.status })))
        .catch(() => process.exit(1))' https://registry.npmjs.org/npm/latest https://pypi.org/pypi/pip/json
}

# Old and new clients ask the agent. Python's environments are made once.
sdk_rounds() {
    npm_install tests/conformance/sdks
    node tests/conformance/sdks/rounds.mjs "$target/debug/sepal" "$target/mcp-sdks"
}

# A real llama.cpp, whose tiny model has random weights. Where there is none it is built once, which takes ten
# minutes; where it cannot be built it is skipped, and counted so.
real_model_test() {
    local said status=0
    npm_install tests/browser
    said=$(tests/browser/real/llama-server "$target/llama" env SEPAL_BINARY="$target/debug/sepal" \
        node --test --test-timeout=120000 tests/browser/real/llama.test.mjs 2>&1) || status=$?
    printf '%s\n' "$said"
    if ((status == 3)); then
        skipped+=("a real model server: ${said##*$'\n'}")
        return 0
    fi
    return "$status"
}

tell_skipped() {
    printf '\n== Skipped: %d\n' "${#skipped[@]}"
    ((${#skipped[@]} == 0)) || printf '   %s\n' "${skipped[@]}"
}

run_tests() {
    case ${1:-} in
    '')
        require rust rust_tools node sandbox tracing databases engine browser coverage
        # What other people publish is tried by `./run test all`.
        test_everything --skip packages::real::
        ;;
    unit)
        # The unit tests of the sandbox start real ones.
        require rust node sandbox
        test_unit
        ;;
    all)
        require rust rust_tools node sandbox tracing databases engine browser coverage delivery fuzzing contract
        # proptest reads it itself.
        export PROPTEST_CASES=${PROPTEST_CASES:-100000} SEPAL_TEST_ROUNDS=${SEPAL_TEST_ROUNDS:-50}
        if registries_answer; then
            test_everything
            step 'The official MCP SDKs at each revision' sdk_rounds
        else
            skipped+=('packages of the public registries: registry.npmjs.org or pypi.org does not answer')
            skipped+=('the official MCP SDKs at each revision: they come from there')
            test_everything --skip packages::real::
        fi
        # No merge waits for the pages of our own code.
        step 'Documentation of Rust' document_rust
        step 'The REST door against its description' contract_test
        step 'The SCIM door against a public test suite' scim_test
        step 'Search and list at their sizes' linted tests/servers/servers postgres \
            cargo test --locked --workspace --test scale -- --test-threads=1 --nocapture
        step 'A real model server' real_model_test
        test_delivery
        fuzz
        soak --replays 500
        tell_skipped
        ;;
    *)
        printf 'There is no "./run test %s"; there are "unit" and "all".\n' "$1" >&2
        exit 2
        ;;
    esac
}
