# shellcheck shell=bash
# Tests of what is delivered, as it is delivered. Sourced by `run`.

# The recipes of deploy/ with the delivered gateway behind them, and the page on plain http.
recipe_tests() {
    npm_install tests/browser
    CHROMIUM_PATH=$(find_chromium) SEPAL_BINARY=$target/dist/sepal \
        node --test --test-timeout=180000 --test-reporter=spec tests/deploy/*.test.mjs
}

# debian TARBALL PACKAGE...: a Debian of packages alone, made once.
debian() {
    [[ -e $1 ]] || as_root docker/sandbox/base "$@"
}

archive_test() {
    local bare=$target/sandbox-image/base-bookworm.tar
    debian "$bare"
    as_root tests/deploy/archive "$(newest_archive)" "$bare"
}

compose_test() {
    local services=$target/sandbox-image/services-bookworm.tar
    debian "$services" redis-server postgresql
    # The client of the slice.
    npm_install tests/browser
    tests/servers/servers run tests/deploy/compose "$(newest_archive)" "$services"
}

# The unit under a systemd of its own, which an engine's container gives.
service_test() {
    local system=$target/sandbox-image/system-bookworm.tar
    debian "$system" systemd-sysv bubblewrap sudo
    npm_install tests/browser
    tests/servers/servers run tests/deploy/service "$(newest_archive)" "$system"
}

newest_archive() { printf '%s\n' "$target/package/sepal-$(project_version)-linux-$(uname -m).tar.gz"; }

# What is delivered, as it is delivered. The slow build makes it too long for every merge.
test_delivery() {
    build_package
    step 'The archive on a bare Debian' archive_test
    step 'Recipes for proxies and systemd' recipe_tests
    step 'The unit, under systemd' service_test
    step 'Compose, from the archive' compose_test
}
