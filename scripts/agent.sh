# shellcheck shell=bash
# The agent on the command line. Sourced by `run`.

build_agent() {
    step 'Build the sandbox server' build_sandbox_server quick debug
    step 'Build the gateway' cargo build --locked --workspace --bins
}

# host_of URL: its host, with the port where one is named.
host_of() {
    local host=${1#*://}
    host=${host%%[/?#]*}
    printf '%s\n' "${host##*@}"
}

# ask FILE QUESTION: the answer alone goes to standard output.
ask() {
    local file=$1 question=$2
    build_agent >&2
    if [[ -z ${SPL_LLM_API_KEY:-}${LLM_API_KEY:-}${OPENAI_API_KEY:-}${SPL_LLM_PROVIDER:-}${LLM_PROVIDER:-} ]]; then
        printf 'No key in the environment (SPL_LLM_API_KEY): the scripted model answers.\n' >&2
        export SPL_LLM_PROVIDER=scripted SPL_LLM_MODEL=scripted
    fi
    trap - EXIT
    exec "$target/debug/sepal" --config "$file" agent --call "$question"
}

# The variables go into a file that only this user can read: arguments are seen by everybody who can
# list processes.
write_inspector_settings() {
    # shellcheck disable=SC2016 # The program is JavaScript.
    node -e '
        const [, file, command, settings] = process.argv;
        const ours = ([name]) => name.startsWith("SPL_");
        const env = Object.fromEntries(Object.entries(process.env).filter(ours));
        const args = ["--config", settings, "agent"];
        const text = JSON.stringify({ mcpServers: { sepal: { command, args, env } } });
        require("node:fs").writeFileSync(file, text, { mode: 0o600, flag: "w" });
    ' "$1" "$target/debug/sepal" "$2"
}

inspect() {
    local settings=${1:-site/examples/simple.yaml} package=@modelcontextprotocol/inspector folder
    build_agent
    if ! npm view "$package" version >/dev/null 2>&1; then
        printf 'The MCP inspector (%s) cannot be had: npm does not reach its registry.\n' "$package" >&2
        printf 'Point npm at one that it reaches, or use another MCP client:\n  %s --config %s agent\n' \
            "$target/debug/sepal" "$settings" >&2
        exit 1
    fi
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # The folder of now is meant.
    trap "rm -rf -- '$folder'" EXIT
    write_inspector_settings "$folder/inspector.json" "$settings"
    npx --yes "$package" --config "$folder/inspector.json" --server sepal
}
