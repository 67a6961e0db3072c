# shellcheck shell=bash
# Builds the page, the sandbox server, the gateway, images and the archive. Sourced by `run`.
#
# Cargo is always asked for the whole workspace in debug builds: one package alone has
# other features in its dependencies, which would be built twice.

npm_install() {
    local folder=$1 stamp=$1/node_modules/.sepal-lock sum
    sum=$(sha256sum <"$folder/package-lock.json")
    if [[ ! -f $stamp || $(<"$stamp") != "$sum" ]]; then
        PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm --prefix "$folder" ci --no-audit --no-fund
        printf '%s\n' "$sum" >"$stamp"
    fi
}

build_page() { npm --prefix web run build; }

# A new page means a new release build of the gateway, so a start without changes builds neither.
build_changed_page() {
    local stamp=web/node_modules/.sepal-page sum
    sum=$(find web public clients/typescript/src \( -name node_modules -o -path web/dist -o -name '*.generated.ts' \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum)
    if [[ ! -f web/dist/index.html || ! -f $stamp || $(<"$stamp") != "$sum" ]]; then
        build_page
        printf '%s\n' "$sum" >"$stamp"
    fi
}

# ours COMMAND...: runs cargo with scripts/rustc as the compiler of our own crates.
ours() { RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/rustc "$@"; }

# build_sandbox_server PROFILE [PLACE...]: the server that runs inside every sandbox. It lies as `mcp-server` beside the
# `sepal` of each PLACE, or of PROFILE.
build_sandbox_server() {
    ours cargo build --locked --profile "$1" -p sepal-mcp-server
    place_sandbox_server "$@"
}

# place_sandbox_server PROFILE [PLACE...]: puts it there once it is built.
place_sandbox_server() {
    local place places=("${@:2}")
    ((${#places[@]})) || places=("$1")
    for place in "${places[@]}"; do
        mkdir -p "$target/$place"
        # A new file, because a running sandbox may still have the old one open.
        cp "$target/$1/sepal-mcp-server" "$target/$place/mcp-server.new"
        mv "$target/$place/mcp-server.new" "$target/$place/mcp-server"
    done
}

# build PROFILE: of Cargo.toml.
build() {
    step 'Install packages of the page' npm_install web
    step 'Build the page' build_changed_page
    step 'Build the gateway and the sandbox server' ours cargo build --locked --profile "$1" -p sepal -p sepal-mcp-server
    place_sandbox_server "$1"
}

# The quick build suits a first try, and takes less than half the time of a release.
start() {
    local profile=quick
    if [[ ${1:-} == --release ]]; then
        profile=release
        shift
    fi
    build "$profile"
    if [[ $profile == quick ]]; then
        printf '\nThis is the quick build; "./run start --release" takes longer and makes a faster gateway.\n'
    fi
    trap - EXIT
    exec "$target/$profile/sepal" serve "$@"
}

dev() {
    step 'Install packages of the page' npm_install web
    step 'Install packages of the client' npm_install clients/typescript
    step 'Build the sandbox server' build_sandbox_server quick debug
    step 'Build the gateway' cargo build --locked --workspace --bins
    npm --prefix web run dev &
    local page=$!
    # shellcheck disable=SC2064 # The process id of now is meant.
    trap "kill $page 2>/dev/null || true" EXIT
    SPL_LOG_LEVEL=${SPL_LOG_LEVEL:-debug} "$target/debug/sepal" serve "$@"
}

project_version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml; }

# build_image [--debootstrap]: the engine is that of DOCKER_HOST.
build_image() {
    local version base=() packages=()
    version=$(project_version)
    if [[ ${1:-} == --debootstrap ]]; then
        base=("$target/sandbox-image/base-bookworm.tar")
        [[ -e ${base[0]} ]] || as_root docker/sandbox/base "${base[0]}"
        packages=("$target/sandbox-image/packages-trixie.tar")
        [[ -e ${packages[0]} ]] || as_root docker/packages/base "${packages[0]}"
    elif (($#)); then
        printf 'There is no "./run image %s"; there is "--debootstrap".\n' "$1" >&2
        exit 2
    fi
    docker/sandbox/build "sepal/sandbox:$version" "$target/release/mcp-server" "${base[@]}"
    docker/packages/build "sepal/packages:$version" "sepal/sandbox:$version" "${packages[@]}"
}

# What people get: the slow build that is smallest and fastest, and everything beside it.
build_package() {
    step 'Install packages of the page' npm_install web
    step 'Build the page' build_changed_page
    step 'Build the sandbox server' build_sandbox_server release release dist
    step 'Build for delivery' deploy/dist/build -p sepal -p sepal-docker-proxy
    step 'Write the archive' deploy/package "$target/package" "$target/dist/sepal" \
        "$target/release/mcp-server" "$target/dist/sepal-docker-proxy" web/dist/third-party.txt
}

generate() {
    step 'Write generated files' write_generated
}

write_generated() {
    local tools
    cargo build --locked --workspace --bins
    tools=$("$target/debug/sepal-mcp-server" --describe)
    printf '%s\n' "$tools" >mcp-server/tools.json
    SEPAL_GENERATE=1 cargo test -q --locked --workspace --test it generated
}

clean() {
    cargo clean
    rm -rf -- web/dist web/node_modules tests/browser/node_modules tests/openapi/node_modules
}
