# shellcheck shell=bash
# What the machine needs: programs are looked for, and installed with apt where it can be. Sourced by `run`.

has() { command -v "$1" >/dev/null 2>&1; }

# at_least HAVE WANT: compares version numbers.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

packages=()
problems=()

need_rust() {
    local have=''
    # rustup's rustc fails when it has no toolchain.
    if has rustc; then
        have=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) || have=''
    fi
    if [[ -z $have ]]; then
        problems+=("Rust $MIN_RUST or newer. A distribution's own is too old; install rustup from https://rustup.rs, then run 'rustup toolchain install stable'.")
    elif ! at_least "$have" "$MIN_RUST"; then
        problems+=("Rust $MIN_RUST or newer; this is $have. Run 'rustup update stable', or install rustup from https://rustup.rs when this one came with the distribution.")
    fi
    # SQLite and the cryptography are C; libc6-dev holds the static C library of the sandbox server.
    { has cc && has ar; } || packages+=(gcc libc6-dev)
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || packages+=(ca-certificates)
}

need_rust_tools() {
    has rustc || return 0
    cargo fmt --version >/dev/null 2>&1 || problems+=("rustfmt. Run 'rustup component add rustfmt'.")
    cargo clippy --version >/dev/null 2>&1 || problems+=("clippy. Run 'rustup component add clippy'.")
}

need_node() {
    local have='' offered=''
    has node && have=$(node --version | tr -d v)
    if [[ -n $have ]] && at_least "$have" "$MIN_NODE" && has npm; then
        return
    fi
    if [[ -z $have ]] && has apt-cache; then
        offered=$(apt-cache policy nodejs 2>/dev/null | sed -n 's/^ *Candidate: *\([0-9][0-9.]*\).*/\1/p')
    fi
    if [[ -n $offered ]] && at_least "$offered" "$MIN_NODE"; then
        packages+=(nodejs)
        # Some packagings bring npm along and conflict with a package of that name.
        apt-cache show nodejs 2>/dev/null | grep -q '^Provides:.*\bnpm\b' || packages+=(npm)
    else
        problems+=("Node.js $MIN_NODE or newer with npm; here is ${have:-none}, and the system offers ${offered:-none}. Install a current LTS from https://nodejs.org/en/download.")
    fi
}

need_sandbox() {
    has bwrap || packages+=(bubblewrap)
    # For servers that are Python packages. Sandboxes see the system's own Python alone, and everything
    # else works without it.
    if has apt-get && can_install && ! env -i PATH=/usr/local/bin:/usr/bin:/bin python3 -c 'import pip' 2>/dev/null; then
        packages+=(python3 python3-pip)
    fi
}

# A test watches what commands do that rules let run unasked.
need_tracing() {
    has strace || packages+=(strace)
    has git || packages+=(git)
}

# Private ones are started by the tests; no server of the machine is used.
need_databases() {
    has redis-server || packages+=(redis-server)
    has openssl || packages+=(openssl)
    has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || packages+=(postgresql)
}

# A private engine is started by the tests; that of the machine is never used.
need_engine() {
    has dockerd || packages+=(docker.io)
    # Newer releases have the command line in a package of its own.
    if ! has docker && apt-cache show docker-cli >/dev/null 2>&1; then
        packages+=(docker-cli)
    fi
    has debootstrap || packages+=(debootstrap)
}

# The proxies whose recipes are in deploy/, and what reads the unit and docker-compose.yml.
need_delivery() {
    has systemd-analyze || packages+=(systemd)
    has caddy || packages+=(caddy)
    has nginx || [[ -x /usr/sbin/nginx ]] || packages+=(nginx-light)
    if ! docker compose version >/dev/null 2>&1 && ! has docker-compose; then
        # Ubuntu has the second version under a name of its own.
        if apt-cache show docker-compose-v2 >/dev/null 2>&1; then
            packages+=(docker-compose-v2)
        else
            packages+=(docker-compose)
        fi
    fi
    has objdump || packages+=(binutils)
    has ip || packages+=(iproute2)
}

# Schemathesis is a Python program.
need_contract() {
    has curl || packages+=(curl)
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3 python3-venv)
}

# Coverage is read by LLVM's own tools.
need_coverage() {
    local version
    [[ -z $(llvm_tools) ]] || return 0
    for version in 22 21 20 19; do
        if has apt-cache && apt-cache show "llvm-$version" >/dev/null 2>&1; then
            packages+=("llvm-$version")
            return
        fi
    done
    problems+=("LLVM's tools for coverage. Run 'rustup component add llvm-tools'.")
}

# libFuzzer is C++.
need_fuzzing() {
    has c++ || packages+=(g++)
}

# The one without windows takes a quarter less of the processor.
find_chromium() {
    local name
    for name in "${CHROMIUM_PATH:-}" chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do
        if [[ -n $name ]] && has "$name"; then
            command -v "$name"
            return
        fi
    done
}

need_browser() {
    local found
    found=$(find_chromium)
    # A machine that tests only what is committed gets the quick one beside another.
    if [[ -n $found && (${CI:-} != true || $found == *headless* || -n ${CHROMIUM_PATH:-}) ]]; then
        return
    fi
    # Ubuntu's package is a stub that wants snapd, which containers and CI machines lack.
    if grep -qs '^ID=ubuntu' /etc/os-release; then
        [[ -z $found ]] || return 0
        problems+=("Chromium for the browser tests. Ubuntu has it only as a snap: install it, or any Chrome, and set CHROMIUM_PATH to the program.")
    elif has apt-cache && apt-cache show chromium-headless-shell >/dev/null 2>&1; then
        packages+=(chromium-headless-shell fonts-dejavu-core)
    elif [[ -z $found ]]; then
        packages+=(chromium fonts-dejavu-core)
    fi
}

as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif [[ ${CI:-} == true ]]; then
        sudo -n "$@"
    else
        sudo "$@"
    fi
}

# require WHAT...: checks all, installs what apt can, and names all the rest at once.
require() {
    local what
    # An image without package lists offers nothing until they are fetched.
    if has apt-get && ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null && lacks_something "$@"; then
        can_install && update_lists
    fi
    packages=()
    problems=()
    for what in "$@"; do "need_$what"; done
    if ((${#packages[@]})) && ! { has apt-get && can_install; }; then
        problems+=("these programs, which this script can install only on Debian or Ubuntu, as root or with sudo: ${packages[*]}")
        packages=()
    fi
    if ((${#problems[@]})); then
        printf 'Sepal needs:\n' >&2
        printf '  - %s\n' "${problems[@]}" >&2
        exit 1
    fi
    if ((${#packages[@]})); then
        printf 'Missing here, to be installed with apt-get: %s\n' "${packages[*]}"
        step 'Install system packages' install_packages "${packages[@]}"
    fi
}

lacks_something() {
    local what
    packages=()
    problems=()
    for what in "$@"; do "need_$what"; done
    ((${#packages[@]} + ${#problems[@]}))
}

can_install() { [[ $(id -u) == 0 ]] || has sudo; }

update_lists() { as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q; }

install_packages() {
    update_lists
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}
