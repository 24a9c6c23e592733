# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Functions of cluster/up, down, status and hurt. Sourced by bash, never run.
#
# A cluster is one folder. It has a marker that proves that the folder is ours,
# `cluster.conf` (size, first port, server program, max lease) and a folder for each node:
#
#   node-1/redis.conf   the configuration of the server
#   node-1/started      the tick of its start (the 22nd field of /proc/PID/stat)
#   node-1/pid          its pid. The process itself writes both files, the pid
#                       last, before it becomes the server; so every running
#                       server can be found
#   node-1/data/        its data (append-only file); `wipe` removes it
#   node-1/redis.log
#   node-1/network-*   a file for each fault of its network
#
# A signal is sent only to a process that is alive, started at the recorded
# tick and has our redis.conf as its first argument. A reused pid fails the
# last two tests.

CLUSTER_ME="cluster/$(basename -- "$0")"
CLUSTER_MARKER=.quorlock-cluster
CLUSTER_NODES_MAX=31

# From sysexits.h, as in the command quorlock.
CLUSTER_EX_USAGE=64

cluster_say() { printf '%s\n' "$*"; }

cluster_warn() { printf '%s: %s\n' "$CLUSTER_ME" "$*" >&2; }

cluster_die() {
    cluster_warn "$@"
    exit 1
}

cluster_usage_error() {
    cluster_warn "$@"
    cluster_warn "try '$CLUSTER_ME --help'"
    exit "$CLUSTER_EX_USAGE"
}

# cluster_need_value OPTION [VALUE]: fails if the option has no value.
cluster_need_value() {
    [ $# -ge 2 ] || cluster_usage_error "$1 needs a value"
    [ -n "$2" ] || cluster_usage_error "$1: '' is no value"
}

cluster_default_dir() {
    local base=${XDG_RUNTIME_DIR:-/tmp}
    # sudo -E and cron may name a folder that does not exist.
    if [ ! -d "$base" ] || [ ! -w "$base" ]; then base=/tmp; fi
    printf '%s/quorlock-cluster-%s\n' "$base" "$(id -u)"
}

# cluster_set_dir DIR: sets $dir to the absolute path; "" is the default.
cluster_set_dir() {
    dir=${1:-$(cluster_default_dir)}
    case $dir in
    *$'\n'*) cluster_usage_error "--dir: a folder name with a line break is refused" ;;
    esac
    dir=$(realpath -m -- "$dir") || cluster_usage_error "--dir: cannot resolve '$1'"
    [ "$dir" != / ] || cluster_usage_error "--dir: '/' cannot hold a cluster; name a folder of its own"
    # The option that suggested commands need to reach this cluster.
    dir_hint=''
    if [ -n "$1" ]; then printf -v dir_hint ' --dir %q' "$dir"; fi
}

cluster_is_ours() {
    [ -d "$dir" ] && [ -O "$dir" ] && [ -f "$dir/$CLUSTER_MARKER" ] && [ -O "$dir/$CLUSTER_MARKER" ]
}

# Allows one change at a time. The folder itself is locked, so no lock file is
# left over. Callers close descriptor 9 in the processes that they start.
cluster_lock() {
    exec 9<"$dir" || cluster_die "cannot open $dir"
    flock -w 60 9 || cluster_die "another cluster command has been at work in $dir for 60 s; try again when it is done"
    # The folder may have been removed, or made again, while we waited.
    [ "$(stat -Lc %d:%i /proc/self/fd/9)" = "$(stat -c %d:%i -- "$dir" 2>/dev/null)" ] ||
        cluster_die "$dir was changed by another cluster command just now; try again"
}

# Reads cluster.conf into $nodes, $port_base, $server, $max_lease. Non-zero: there is no valid one.
# shellcheck disable=SC2034
cluster_load() {
    local name value
    nodes='' port_base='' server='' max_lease=''
    [ -f "$dir/cluster.conf" ] || return 1
    while IFS='=' read -r name value; do
        case $name in
        nodes) nodes=$value ;;
        port_base) port_base=$value ;;
        server) server=$value ;;
        max_lease) max_lease=$value ;;
        esac
    done <"$dir/cluster.conf"
    [[ $nodes =~ ^[1-9][0-9]?$ && $port_base =~ ^[1-9][0-9]{0,4}$ && -n $server ]]
}

# cluster_find_lost: finds servers of ours whose pid file was lost by their command line, and writes the file again.
# Otherwise cluster/down would leave them running and remove their folders.
cluster_find_lost() {
    local i whole=1 entry node state start argv=()
    for ((i = 1; i <= nodes; i++)); do node_is_recorded "$i" || whole=0; done
    if [ "$whole" = 1 ]; then return 0; fi
    for entry in /proc/[1-9]*; do
        [ -O "$entry" ] || continue
        { mapfile -d '' -t argv <"$entry/cmdline"; } 2>/dev/null || continue
        node=${argv[1]:-}
        case $node in "$dir"/node-*/redis.conf) node=${node#"$dir/node-"} node=${node%/redis.conf} ;; *) continue ;; esac
        [[ $node =~ ^[1-9][0-9]?$ ]] && ! node_is_recorded "$node" || continue
        read -r state start <<<"$(proc_stat "${entry#/proc/}")" || continue
        case $state in '' | Z | X) continue ;; esac
        mkdir -p -- "$(node_dir "$node")"
        echo "$start" >"$(node_dir "$node")/started"
        echo "${entry#/proc/}" >"$(node_dir "$node")/pid"
    done
}

# For down, status and hurt: fails with a message unless $dir holds a cluster of ours.
cluster_require() {
    [ -e "$dir" ] || cluster_die "no cluster in $dir; start one with cluster/up$dir_hint"
    cluster_is_ours || cluster_die "$dir was not made by cluster/up (as this user); left alone"
    cluster_load || cluster_die "$dir/cluster.conf is missing or damaged; cluster/down$dir_hint clears up"
    cluster_find_lost
}

node_dir() { printf '%s/node-%s\n' "$dir" "$1"; }
node_port() { printf '%s\n' $((port_base + $1 - 1)); }

# Prints all addresses as QUORLOCK_NODES takes them.
cluster_addresses() {
    local i list=
    for ((i = 1; i <= nodes; i++)); do list+=,127.0.0.1:$(node_port "$i"); done
    printf '%s\n' "${list#,}"
}

# proc_stat PID: prints "STATE STARTTIME"; non-zero: there is no such process.
# The name in the second field may contain blanks and brackets, so the line is
# cut behind the last bracket.
proc_stat() {
    local line
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    # shellcheck disable=SC2086
    set -- ${line##*) }
    printf '%s %s\n' "$1" "${20}"
}

# node_is_recorded NODE: succeeds if both of its files are filled.
node_is_recorded() { [ -s "$(node_dir "$1")/pid" ] && [ -s "$(node_dir "$1")/started" ]; }

# node_recorded NODE: reads pid and start from its files.
node_recorded() {
    { read -r pid <"$(node_dir "$1")/pid" && read -r start <"$(node_dir "$1")/started"; } 2>/dev/null
}

# node_pid NODE: prints the pid of the server, if it is alive and proven ours.
node_pid() {
    local pid start state now argv=()
    node_recorded "$1" || return 1
    [[ $pid =~ ^[1-9][0-9]*$ && $start =~ ^[0-9]+$ ]] || return 1
    read -r state now <<<"$(proc_stat "$pid")" || return 1
    # A zombie counts as dead.
    case $state in '' | Z | X) return 1 ;; esac
    [ "$now" = "$start" ] || return 1
    { mapfile -d '' -t argv <"/proc/$pid/cmdline"; } 2>/dev/null || return 1
    [ "${argv[1]:-}" = "$(node_dir "$1")/redis.conf" ] || return 1
    printf '%s\n' "$pid"
}

# node_answers NODE PID SECONDS: succeeds if this very process answers in time.
# bash itself speaks to the server, so redis-cli is not needed.
node_answers() {
    local port line=
    port=$(node_port "$1")
    # In a group, so that a refused connection prints nothing on stderr.
    { exec 8<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || return 1
    { printf 'INFO server\r\n' >&8; } 2>/dev/null
    while IFS= read -r -t "$3" line <&8; do
        line=${line%$'\r'}
        case $line in
        process_id:*)
            exec 8>&-
            [ "${line#process_id:}" = "$2" ]
            return
            ;;
        -*) break ;;
        esac
    done
    exec 8>&-
    return 1
}

# node_state NODE: sets $node_state to up, stopped, silent (alive without
# answering) or dead, and $node_state_pid to its pid.
node_state() {
    local state _
    node_state=dead
    node_state_pid=$(node_pid "$1") || return 0
    read -r state _ <<<"$(proc_stat "$node_state_pid")"
    case $state in
    T | t) node_state=stopped ;;
    *)
        node_state=silent
        # shellcheck disable=SC2034
        if node_answers "$1" "$node_state_pid" 1; then node_state=up; fi
        ;;
    esac
}

# node_read_guard NODE: sets $node_guard to why the node's votes are ignored;
# empty if they are not, or it does not answer.
node_read_guard() {
    local port line='' run_id='' guard='' now='' now_us='' fields=()
    node_guard=''
    port=$(node_port "$1")
    { exec 8<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || return 0
    { printf 'INFO server\r\nGET quorlock:guard\r\nTIME\r\n' >&8; } 2>/dev/null
    # Three replies; the last has the seconds in its third line and the microseconds in its fifth.
    IFS= read -r -t 1 line <&8 || :
    while IFS= read -r -t 1 line <&8 && [[ $line != [\$-]* ]]; do
        case $line in run_id:*) run_id=${line#run_id:} && run_id=${run_id%$'\r'} ;; esac
    done
    if [[ $line == \$[0-9]* ]]; then
        IFS= read -r -t 1 guard <&8 || :
    fi
    { IFS= read -r -t 1 line && IFS= read -r -t 1 line && IFS= read -r -t 1 now &&
        IFS= read -r -t 1 line && IFS= read -r -t 1 now_us; } <&8 || :
    exec 8>&-
    now=${now%$'\r'} now_us=${now_us%$'\r'} guard=${guard%$'\r'}
    [[ -n $run_id && $now =~ ^[0-9]+$ && $now_us =~ ^[0-9]+$ ]] || return 0
    now=$((now * 1000 + 10#$now_us / 1000))
    # Fields: format, number, set, max lease, run id, replication id, end of the quarantine in ms.
    IFS='|' read -r -a fields <<<"$guard"
    if [ ${#fields[@]} -lt 7 ]; then
        node_guard='no guard: quarantined at the first contact'
    elif [ "${fields[4]}" != "$run_id" ]; then
        node_guard='restarted: quarantined at the next contact'
    elif [[ ${fields[6]} =~ ^[0-9]+$ ]] && [ "${fields[6]}" -gt "$now" ]; then
        # shellcheck disable=SC2034
        node_guard="quarantined for $(((fields[6] - now + 999) / 1000)) s"
    fi
}

# cluster_find_quorlock: prints the command, or nothing if there is none.
cluster_find_quorlock() {
    local built
    built=$(dirname -- "${BASH_SOURCE[0]}")/../build/bin/quorlock
    if [ -n "${QUORLOCK:-}" ]; then
        command -v -- "$QUORLOCK" || :
    elif [ -x "$built" ]; then
        printf '%s\n' "$built"
    else
        command -v quorlock || :
    fi
}

# port_taken PORT: succeeds if a server that listens there would keep ours from
# binding 127.0.0.1. Reads the kernel's table: a connection would disturb that
# server.
port_taken() {
    local hex
    printf -v hex '%04X' "$1"
    awk -v port="$hex" '
        FNR > 1 && $4 == "0A" {
            n = split($2, a, ":")
            if (a[n] != port) next
            if (a[1] == "0100007F" || a[1] ~ /^0+$/ || a[1] ~ /FFFF00000100007F$/) found = 1
        }
        END { exit !found }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# cluster_port_error NODE: the remedy depends on whether the others are running.
cluster_port_error() {
    local port
    port=$(node_port "$1")
    if [ "$CLUSTER_ME" = "cluster/up" ]; then
        cluster_warn "port $port is in use by another program, so nothing was started; choose other ports with --port-base P (P to P+$((nodes - 1)) must be free), and another --dir if another cluster is up"
    else
        cluster_warn "port $port of node $1 was taken by another program meanwhile; free it, then: cluster/hurt$dir_hint $1 restart"
    fi
}

conf_quote() {
    local s=${1//\\/\\\\}
    printf '"%s"\n' "${s//\"/\\\"}"
}

server_version() { "$1" --version 2>/dev/null | sed -n 's/.* v=\([0-9][0-9.]*\).*/\1/p'; }

# Sets $server and $server_major from REDIS_SERVER or the default.
cluster_find_server() {
    local version
    server=${REDIS_SERVER:-$(command -v redis-server || command -v valkey-server || echo redis-server)}
    server=$(command -v -- "$server" 2>/dev/null) ||
        cluster_die "'${REDIS_SERVER:-redis-server}' is not installed; run scripts/setup, or name a server program in REDIS_SERVER"
    # Symbolic links are kept: the program looks at the name by which it is called.
    server=$(realpath -s -- "$server")
    version=$(server_version "$server") || :
    [ -n "$version" ] || cluster_die "'$server --version' does not look like Redis or Valkey; REDIS_SERVER must name such a server"
    server_major=${version%%.*}
}

node_write_conf() {
    local folder
    folder=$(node_dir "$1")
    mkdir -p -- "$folder/data"
    {
        cat <<CONF
# Written by cluster/up.
bind 127.0.0.1
port $(node_port "$1")
protected-mode yes
daemonize no
supervised no
# The command line proves that the server is ours, so it must not change.
set-proc-title no
dir $(conf_quote "$folder/data")
logfile $(conf_quote "$folder/redis.log")
save ""
appendonly yes
appendfsync always
CONF
        # Redis 6.2 has no such setting.
        if [ "$server_major" -ge 7 ]; then echo 'enable-debug-command no'; fi
    } >"$folder/redis.conf"
}

launched=()
# node_launch NODE: starts the server and returns at once; node_wait_up tells whether it runs. Its process is in $launched.
node_launch() {
    local folder
    folder=$(node_dir "$1")
    mkdir -p -- "$folder/data"
    rm -f -- "$folder/pid" "$folder/started"
    : >"$folder/redis.log"
    # In a session of its own, so that Ctrl-C on the terminal does not end it.
    # shellcheck disable=SC2016
    setsid sh -c '
        folder=$1 server=$2
        read -r line <"/proc/$$/stat" || exit 1
        set -- ${line##*) }
        shift 19
        echo "$1" >"$folder/started" && echo "$$" >"$folder/pid" || exit 1
        exec "$server" "$folder/redis.conf"
    ' sh "$folder" "$server" </dev/null >>"$folder/redis.log" 2>&1 8>&- 9>&- &
    launched+=("$!") # setsid does not fork: it is the server's
    disown
}

# network_rules NODE FAULT: prints the rules of the packet filter that are this fault, one a line. They name the server's
# port, so they touch nothing else on this machine.
network_rules() {
    local port way
    port=$(node_port "$1")
    for way in "INPUT -p tcp -d 127.0.0.1 --dport $port" "OUTPUT -p tcp -s 127.0.0.1 --sport $port"; do
        case $2 in
        loss) echo "$way -m statistic --mode random --probability 0.1 -j DROP" ;;
        # Packets pass freely when nobody listens to the queue.
        delay) echo "$way -j NFQUEUE --queue-num $port --queue-bypass" ;;
        one-way) case $way in OUTPUT*) echo "$way --tcp-flags SYN,PSH PSH -j DROP" ;; esac ;;
        esac
    done
}

# node_network NODE: prints the faults of its network.
node_network() {
    local fault
    for fault in loss delay one-way; do
        if [ -e "$(node_dir "$1")/network-$fault" ]; then printf '%s ' "$fault"; fi
    done
}

# node_heal NODE: ends the faults of its network.
node_heal() {
    local fault rule
    for fault in $(node_network "$1"); do
        while read -r rule; do
            # shellcheck disable=SC2086
            iptables -w 5 -D $rule 2>/dev/null || :
        done < <(network_rules "$1" "$fault")
        # The process that delays packets ends with its file.
        rm -f -- "$(node_dir "$1")/network-$fault"
    done
}

# node_wait_up NODE: 0: it answers; 1: it does not, for a reason that was printed on stderr.
node_wait_up() {
    local folder pid='' until=$((SECONDS + 15)) seen=0
    folder=$(node_dir "$1")
    while [ "$SECONDS" -lt "$until" ]; do
        if pid=$(node_pid "$1"); then
            seen=1
            if node_answers "$1" "$pid" 1; then return 0; fi
        elif [ "$seen" = 1 ] || node_gave_up "$1"; then
            break
        fi
        sleep 0.02
    done
    if grep -q 'Address already in use' "$folder/redis.log" 2>/dev/null || port_taken "$(node_port "$1")"; then
        cluster_port_error "$1"
    else
        cluster_warn "node $1 on port $(node_port "$1") does not start; the end of $folder/redis.log:"
        tail -n 5 -- "$folder/redis.log" >&2 || :
    fi
    return 1
}

# Succeeds if the launched process ended before it became a server: the pid file
# is written first, so a pid without its process means that.
node_gave_up() {
    local pid start state now
    node_recorded "$1" || return 1
    read -r state now <<<"$(proc_stat "$pid")" || return 0
    case $state in '' | Z | X) return 0 ;; esac
    [ "$now" != "$start" ]
}

# node_signal NODE SIGNAL: 1: there is no server of ours to signal.
node_signal() {
    local pid
    pid=$(node_pid "$1") || return 1
    kill -s "$2" "$pid" 2>/dev/null
}

# node_gone NODE: succeeds if the whole process has ended. Its first thread may
# be a zombie while other threads still hold the port for a moment, and a process
# that is ending has no arguments left by which node_pid would know it.
node_gone() {
    local pid start state now tasks argv=()
    node_recorded "$1" || return 0
    read -r state now <<<"$(proc_stat "$pid")"
    [ "$now" = "$start" ] || return 0
    case $state in
    X) return 0 ;;
    Z)
        tasks=("/proc/$pid/task/"*)
        [ ${#tasks[@]} -le 1 ]
        return
        ;;
    esac
    ! node_pid "$1" >/dev/null && { mapfile -d '' -t argv <"/proc/$pid/cmdline"; } 2>/dev/null && [ ${#argv[@]} -gt 0 ]
}

# node_wait_gone NODE SECONDS
node_wait_gone() {
    local until=$((SECONDS + $2 + 1))
    until node_gone "$1"; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.02
    done
}

# node_wait_proc_state NODE PATTERN: waits until the kernel shows such a state.
node_wait_proc_state() {
    local pid state _ until=$((SECONDS + 5))
    while pid=$(node_pid "$1"); do
        read -r state _ <<<"$(proc_stat "$pid")"
        # shellcheck disable=SC2254
        case $state in $2) return 0 ;; esac
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.01
    done
    return 1
}

# Ends every server in $dir, including frozen ones. All get their signal before
# any is waited for, so this takes as long as the slowest.
cluster_end_all() {
    local i failed=0
    for ((i = 1; i <= nodes; i++)); do
        node_heal "$i"
        # TERM comes before CONT, so that a frozen server does nothing else when it wakes.
        node_signal "$i" TERM && node_signal "$i" CONT
    done
    for ((i = 1; i <= nodes; i++)); do
        node_wait_gone "$i" 5 && continue
        node_signal "$i" KILL || :
        node_wait_gone "$i" 5 || {
            cluster_warn "node $i does not end (pid $(node_pid "$i" || echo gone))"
            failed=1
        }
    done
    return "$failed"
}

# Removes the files of cluster/up from $dir, and $dir itself if nothing else is in it.
cluster_remove_files() {
    local i
    cluster_is_ours || return 1
    for ((i = 1; i <= CLUSTER_NODES_MAX; i++)); do rm -rf -- "$dir/node-$i"; done
    rm -f -- "$dir/cluster.conf" "$dir/$CLUSTER_MARKER"
    rmdir -- "$dir" 2>/dev/null || cluster_warn "$dir holds files that are not ours; they are left alone"
}
