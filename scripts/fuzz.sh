# shellcheck shell=bash
# Runs the fuzzers with libFuzzer. Sourced by `run`.

# The tests once more, with the compiler's own coverage pass, which needs no nightly one; the cfg
# adds libFuzzer (fuzz/Cargo.toml). The flags are for the target alone: with a named one, build
# scripts and macros are spared.
build_fuzzers() {
    local triple coverage=-Cllvm-args=-sanitizer-coverage
    triple=$(rustc -vV | sed -n 's/^host: //p')
    mkdir -p "$target/fuzz-corpus"
    RUSTFLAGS="${RUSTFLAGS:-} --cfg sepal_fuzzing -Cpasses=sancov-module $coverage-level=4
        $coverage-inline-8bit-counters $coverage-pc-table $coverage-trace-compares" \
        cargo test --locked --no-run --profile fuzz --target "$triple" --lib --bin sepal-mcp-server \
        -p sepal -p sepal-config -p sepal-core -p sepal-llm -p sepal-mcp -p sepal-oidc -p sepal-skills -p sepal-store -p sepal-docker-proxy -p sepal-mcp-server -p sepal-policy 2>&1 | tee "$target/fuzz-corpus/build.log"
    list_fuzzers >"$target/fuzz-corpus/list"
}

# A line for each fuzzer: its program and its test. The tests of the modules `fuzz` are the fuzzers.
list_fuzzers() {
    local program
    while IFS= read -r program; do
        [[ $program == /* ]] || program=$PWD/$program
        "$program" --list --format terse |
            sed -nE "s|^((.*::)?fuzz::[a-z_]+): test\$|$program \1|p"
    done < <(sed -nE 's/^ *Executable unittests .* \((.*)\)$/\1/p' "$target/fuzz-corpus/build.log")
}

# fuzz_one MINUTES PROGRAM TEST: what is found lies in fuzz/corpus afterwards, what is new in target.
fuzz_one() {
    local minutes=$1 program=$2 test=$3 name=${3##*::} status=0
    local log=$target/fuzz-corpus/$name.log grown=$target/fuzz-corpus/$name
    mkdir -p "$grown"
    SEPAL_FUZZ_CORPUS=$grown SEPAL_FUZZ_ARGUMENTS="-max_total_time=$((minutes * 60)) -timeout=10
        -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1" \
        "$program" --exact "$test" --nocapture --test-threads=1 >"$log" 2>&1 </dev/null || status=$?
    if ((status != 0)); then
        printf '\n!! %s found something:\n' "$name"
        grep -vE '^#[0-9]+|^ +[0-9]+: |^ +at ' "$log" | tail -n 25
        return 1
    fi
    printf '%-18s %s\n' "$name" "$(awk '
        /\tINITED cov: / { begin = $4 } / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") end = $(i + 1) }
        /number_of_executed_units/ { runs = $2 } /average_exec_per_sec/ { speed = $2 }
        END { printf "%d inputs, %d each second, coverage %d to %d", runs, speed, begin, end }' "$log")"
}

# run_fuzzers MINUTES [name…]: as many at once as there are processors.
run_fuzzers() {
    local minutes=$1 jobs=${SEPAL_FUZZ_JOBS:-$(nproc)} program test name pid failed=0 pids=()
    shift
    for name in "$@"; do
        if ! grep -q "::$name\$\| $name\$" "$target/fuzz-corpus/list"; then
            printf 'There is no fuzzer "%s"; there are:%s\n' "$name" \
                "$(sed 's/.*::/ /' "$target/fuzz-corpus/list" | tr -d '\n')" >&2
            return 2
        fi
    done
    while read -r program test; do
        [[ $# == 0 || " $* " == *" ${test##*::} "* ]] || continue
        while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
        fuzz_one "$minutes" "$program" "$test" &
        pids+=("$!")
    done <"$target/fuzz-corpus/list"
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    return "$failed"
}

fuzz() {
    local minutes=${SEPAL_FUZZ_MINUTES:-10} names=()
    while (($#)); do
        case $1 in
        --minutes)
            minutes=${2:-}
            shift
            ;;
        *) names+=("$1") ;;
        esac
        shift
    done
    if ! [[ $minutes =~ ^[1-9][0-9]*$ ]]; then
        printf 'The minutes have to be a number from 1.\n' >&2
        exit 2
    fi
    step 'Build the fuzzers' build_fuzzers
    step "Fuzzers, $minutes minutes each" run_fuzzers "$minutes" "${names[@]}"
}
