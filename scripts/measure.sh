# shellcheck shell=bash
# Measures the gateway and the page, and how much of the code the tests reach. Sourced by `run`.

# One at a time: together they would be built with each other's features.
build_measured() {
    deploy/dist/build -p sepal -p sepal-docker-proxy && deploy/dist/build -p sepal-bench
}

# Processor time beside a raw relay; fails where a gate does. Figures stay in target/bench. What is
# measured is what is shipped, and the relay is built in the same way.
bench() {
    local out
    local part=compare
    if [[ ${1:-} == page ]]; then
        bench_page
        return
    fi
    if [[ ${1:-} == growth ]]; then
        part=growth
        shift
    fi
    out=$target/bench/$part-$(date -u +%Y%m%dT%H%M%SZ).json
    step 'Build the sandbox server' build_sandbox_server release dist
    step 'Build the gateway and the bench' build_measured
    step 'Measure' "$target/dist/sepal-bench" "$part" \
        --sepal "$target/dist/sepal" --out "$out" "$@"
}

# For a quiet machine, so it is no test.
bench_page() {
    require browser
    build quick
    step 'Install the browser tests' npm_install tests/browser
    step 'Measure the page' measure_page
}

measure_page() {
    CHROMIUM_PATH=$(find_chromium) CHROMIUM_ARGS=$(chromium_arguments) SEPAL_BINARY=$target/quick/sepal \
        npm --prefix tests/browser run bench
}

# Sessions with faults of every kind; fails when anything was lost, ran twice, grew or was left.
soak() {
    local out
    out=$target/soak/$(date -u +%Y%m%dT%H%M%SZ).json
    step 'Build the sandbox server' build_sandbox_server release dist
    step 'Build the gateway and the soak' build_measured
    # Gateways that share their sessions share records too.
    step 'Soak' tests/servers/servers postgres "$target/dist/sepal-bench" soak \
        --sepal "$target/dist/sepal" --out "$out" "$@"
}

# The folder of llvm-profdata and llvm-cov: rustup's own, else the system's newest. Version 19 is the
# first that reads what this compiler writes.
llvm_tools() {
    local folder
    while IFS= read -r folder; do
        if [[ -x $folder/llvm-profdata && -x $folder/llvm-cov ]]; then
            printf '%s\n' "$folder"
            return
        fi
    done < <(
        printf '%s\n' "$(rustc --print target-libdir 2>/dev/null)/../bin"
        compgen -G '/usr/lib/llvm-[1-9][0-9]/bin' | awk -F '[-/]' '$5 >= 19' | sort -rV
    )
}

# covered COMMAND...: cargo test with the compiler's own coverage. What it says is kept, because it
# names the programs.
covered() {
    rm -rf -- "$target/coverage"
    mkdir -p "$target/coverage"
    LLVM_PROFILE_FILE=$target/coverage/%8m.profraw RUSTC_WORKSPACE_WRAPPER=$PWD/tests/coverage/rustc \
        "$@" 2>&1 | tee "$target/coverage/log"
}

# llvm_cov FOLDER COMMAND [--OPTION...] SOURCE...: FOLDER has what cargo said of the programs, and what they wrote. Tests
# are not what is to be covered.
llvm_cov() {
    local folder=$1 tools programs=() program
    shift
    tools=$(llvm_tools)
    while IFS= read -r program; do
        [[ $program == /* ]] || program=$PWD/$program
        # The first is an argument of its own, so that what follows is sources.
        programs+=(${programs[0]:+--object} "$program")
    done < <(sed -nE 's/^ *(Executable|Running) .* \((.*)\)$/\2/p' "$folder/log")
    if [[ ! -e $folder/profdata ]]; then
        # A program that was killed while it wrote leaves a file that cannot be read.
        if ! "$tools/llvm-profdata" merge --sparse --failure-mode=all -o "$folder/profdata" "$folder"/*.profraw; then
            printf "%s does not read what this compiler writes. Run 'rustup component add llvm-tools'.\n" "$tools" >&2
            return 1
        fi
    fi
    "$tools/llvm-cov" "$1" --instr-profile="$folder/profdata" \
        --ignore-filename-regex='/(tests|[a-z_]*stories|properties|fuzz)(/|\.rs$)' \
        "${programs[@]}" "${@:2}"
}

# What the unit tests of the pure core reach of the session (S0.63), once they ran. All tests: `./run coverage`.
session_coverage() {
    local folder=$target/coverage/session
    if ! compgen -G "$folder/*.profraw" >/dev/null; then
        printf "The tests of the core have not run: './run test' runs them.\n" >&2
        return 1
    fi
    rm -f -- "$folder/profdata"
    linted cargo test --locked --workspace --no-run --lib 2>&1 | grep -F /sepal_core- >"$folder/log"
    llvm_cov "$folder" report "$PWD/crates/core/src/session/" | awk '
        /^Filename/ { printf "\n%-24s %6s %6s %9s\n", "crates/core/src/session", "lines", "missed", "reached" }
        $8 ~ /^[0-9]+$/ { printf "%-24s %6d %6d %9s\n", $1, $8, $9, $10 }'
}

coverage() {
    step 'Build the sandbox server' build_sandbox_server quick debug
    step 'Tests of Rust, with coverage' covered tests/servers/servers run cargo test --locked --workspace
    llvm_cov "$target/coverage" show --format=html --output-dir="$target/coverage/html" "$PWD/src" "$PWD/crates" "$PWD/docker-proxy/src" "$PWD/mcp-server/src" "$PWD/policy/src"
    llvm_cov "$target/coverage" report "$PWD/src" "$PWD/crates" "$PWD/docker-proxy/src" "$PWD/mcp-server/src" "$PWD/policy/src" | tail -n 1
    printf 'Open %s\n' "$target/coverage/html/index.html"
}
