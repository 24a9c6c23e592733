# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
#
# Sourced by the tests of what is installed: checks that count, and servers that end with the test.

# What an image may set so that everything is found: without it.
unset LIBRARY_PATH LD_LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH || :

work=$(mktemp -d)
servers=()
nodes=()
checks=0

finish() {
    for pid in ${servers[@]+"${servers[@]}"}; do
        kill -9 "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    rm -rf -- "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

fail() {
    printf '%s: FAILED: %s\n' "${0##*/}" "$*" >&2
    exit 1
}
passed() {
    checks=$((checks + 1))
    printf 'ok: %s\n' "$*"
}

# manual_example SOURCE PAGE [N]: the first program, or the Nth, in the examples of that page of section 3.
manual_example() {
    awk -v wanted="${3:-1}" '/^\.SH / { examples = /EXAMPLES/ } /^\.fi/ { inside = 0 }
        inside && n == wanted && !/^\./ { print }
        examples && /^\.nf/ { inside = 1; n++ }' "$1/src/man/$2.3" | sed 's/\\-/-/g; s/\\e/\\/g'
}

# A port may be taken in the moment between: then the server ends, and the next is tried.
start_server() {
    local port pid try i
    for try in 1 2 3 4 5 6 7 8; do
        port=$((20000 + RANDOM % 12000))
        mkdir "$work/$port" 2>/dev/null || continue
        setpriv --pdeathsig KILL "${REDIS_SERVER:-redis-server}" --port "$port" --bind 127.0.0.1 --save '' \
            --dir "$work/$port" >"$work/$port/log" 2>&1 &
        pid=$!
        for ((i = 0; i < 400; i++)); do
            kill -0 "$pid" 2>/dev/null || break
            if grep -q "^process_id:$pid" <<<"$(redis-cli -p "$port" info server 2>/dev/null)"; then
                servers+=("$pid")
                nodes+=("127.0.0.1:$port")
                return
            fi
            sleep 0.05
        done
        kill -9 "$pid" 2>/dev/null || :
    done
    fail "redis-server does not start (after $try tries)"
}

# start_nodes COMMAND: three of them, bootstrapped by that command, for they are fresh: there is no lock on them.
start_nodes() {
    for _ in 1 2 3; do start_server; done
    "$1" --nodes "$(IFS=,; echo "${nodes[*]}")" bootstrap >"$work/bootstrap.log" 2>&1 ||
        fail "bootstrap: $(cat "$work/bootstrap.log")"
}

# no_key KEY: it is on none of the nodes.
no_key() {
    local node
    for node in "${nodes[@]}"; do
        [ "$(redis-cli -p "${node##*:}" exists "$1")" = 0 ] || fail "$1 was left on $node"
    done
}
