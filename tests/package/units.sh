#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# units.sh SOURCE - as root in a Debian system that may be spoilt, with the packages quorlock, systemd and redis-server:
# the installed units under a real systemd, which is process 1 of namespaces of its own. Status 77, after a line
# "SKIPPED: why", where that cannot be; systemd-analyze has verified the units all the same.
set -euo pipefail

source_dir=$1
SKIPPED=77
LIMIT_S=90
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ -e /.quorlock-base ] || fail 'this is no root of scripts/test packages: it would start services of your system'

# ---- within, as a service of that systemd ----

# soon COMMAND...: until it succeeds; else what the units said.
soon() {
    local end=$((SECONDS + 30))
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$end" ]; then
            systemctl status --no-pager -l 'quorlock*' || :
            fail "not within 30 s: $*"
        fi
        sleep 0.1
    done
}

# conf NAME COMMAND [OPTION]: what the unit of that name reads.
conf() {
    mkdir -p /etc/quorlock
    printf '%s\n' "COMMAND=$2" "OPTIONS=${3:-}" "QUORLOCK_NODES=$(IFS=,; echo "${nodes[*]}")" >"/etc/quorlock/$1.conf"
}

# drop_in UNIT LINE...
drop_in() {
    mkdir -p "/etc/systemd/system/$1.d"
    printf '%s\n' "${@:2}" >"/etc/systemd/system/$1.d/test.conf"
    systemctl daemon-reload
}

nodes_config() {
    local node
    for node in "${nodes[@]}"; do redis-cli -p "${node##*:}" ${AUTH:+-a "$AUTH" --no-auth-warning} config set "$@" >/dev/null; done
}

restarted() { [ "$(systemctl show -P NRestarts "quorlock@$1")" -ge "$2" ]; }
is_state() { [ "$(systemctl show -P ActiveState "$1")" = "$2" ]; }
key_held() { [ "$(redis-cli -p "${nodes[0]##*:}" exists "$1")" = 1 ]; }

# More starts than StartLimitBurst has by default, in less than its interval.
check_quick_ends() {
    conf quick /bin/true
    systemctl start --no-block quorlock@quick
    soon restarted quick 8
    is_state quorlock@quick failed && fail 'quorlock@quick has failed'
    systemctl stop quorlock@quick
    is_state quorlock@quick inactive || fail 'quorlock@quick does not stop'
    no_key quick
    passed 'quorlock@.service: a command that ends again and again is started again'
}

check_wrong_password() {
    conf late '/bin/sleep 600'
    nodes_config requirepass sesame
    systemctl start --no-block quorlock@late
    soon restarted late 8
    is_state quorlock@late failed && fail 'quorlock@late has failed'
    AUTH=sesame nodes_config requirepass ''
    soon is_state quorlock@late active
    key_held late || fail 'quorlock@late is active without its lock'
    systemctl stop quorlock@late
    no_key late
    passed 'quorlock@.service: a password that is wrong for a while leaves no unit failed, and a stop releases the lock'
}

check_job() {
    conf nightly "/usr/bin/touch $work/nightly"
    quorlock --nodes "$(IFS=,; echo "${nodes[*]}")" run nightly -- sleep 600 &
    soon key_held nightly
    systemctl start quorlock-job@nightly || fail 'quorlock-job@nightly fails where the job is being done'
    [ ! -e "$work/nightly" ] || fail 'quorlock-job@nightly ran without the lock'
    kill "$!"
    wait "$!" || :
    drop_in quorlock-job@nightly.timer '[Timer]' OnCalendar= 'OnCalendar=*:*:*'
    systemctl enable --now quorlock-job@nightly.timer 2>/dev/null
    soon test -e "$work/nightly"
    systemctl disable --now quorlock-job@nightly.timer 2>/dev/null
    soon is_state quorlock-job@nightly inactive
    no_key nightly
    passed 'quorlock-job@: the timer starts the job, and one that is being done elsewhere is no failure'
}

# The part SERVICES of quorlock-operations(7), as it is written, after what the part before it sets up.
check_services() {
    local node
    printf '%s\n' "nodes = $(IFS=,; echo "${nodes[*]}")" 'user = app' 'password-file = /etc/quorlock/password' >/etc/quorlock.conf
    (umask 077 && echo sesame >/etc/quorlock/password)
    for node in "${nodes[@]}"; do redis-cli -p "${node##*:}" ACL SETUSER app on '>sesame' '~*' '&*' +@all >/dev/null; done
    sed -n '/^\.SH SERVICES/,/^\.SH RESTARTING/p' "$source_dir/src/man/quorlock-operations.7" |
        sed -n '/^\.nf/,/^\.fi/{/^\./d;s/\\-/-/g;p}' >"$work/services"
    [ -s "$work/services" ] || fail 'quorlock-operations(7) has no commands in SERVICES'
    bash -ex "$work/services" || {
        systemctl status --no-pager -l 'quorlock*' || :
        fail 'the commands of SERVICES in quorlock-operations(7)'
    }
    is_state quorlock@schedule active || fail 'quorlock@schedule is not active'
    key_held schedule || fail 'quorlock@schedule is active without its lock'
    [ "$(ps -o user= -p "$(systemctl show -P MainPID quorlock@schedule)")" = schedule ] || fail 'quorlock@schedule runs as another user'
    [ "$(systemctl show -P Result quorlock-job@nightly)" = success ] || fail 'quorlock-job@nightly failed'
    # Where the user cannot read the file, the unit goes on when it can.
    systemctl stop quorlock@schedule
    chmod 600 /etc/quorlock/password
    systemctl start --no-block quorlock@schedule
    soon restarted schedule 2
    chmod 640 /etc/quorlock/password
    soon is_state quorlock@schedule active
    systemctl disable --now quorlock@schedule 2>/dev/null
    no_key schedule
    rm /etc/quorlock.conf
    passed 'quorlock@.service and quorlock-job@.service with users of their own, as quorlock-operations(7) sets them up'
}

within() {
    start_nodes quorlock
    drop_in quorlock@.service '[Service]' RestartSec=100ms
    check_quick_ends
    check_wrong_password
    check_job
    check_services
}

# ---- outside ----

# What begins with the machine is not for this system: it would set up the machine's kernel.
prepare() {
    find /etc/systemd/system /lib/systemd/system -maxdepth 1 -name '*.wants' -exec rm -r {} +
    cat >/etc/systemd/system/test-units.service <<UNIT
[Unit]
SuccessAction=exit-force
FailureAction=exit-force
FailureActionExitStatus=1
SuccessActionExitStatus=0

[Service]
Type=oneshot
Environment=QUORLOCK_UNITS_WITHIN=1
ExecStart=$(realpath "${BASH_SOURCE[0]}") $source_dir
StandardOutput=append:$work/said
StandardError=append:$work/said
UNIT
}

verify() {
    systemd-analyze verify --man=no quorlock@name.service quorlock-job@name.{service,timer} >"$work/verify" 2>&1 ||
        fail "systemd-analyze verify: $(cat "$work/verify")"
    [ ! -s "$work/verify" ] || fail "systemd-analyze verify: $(cat "$work/verify")"
    passed 'systemd-analyze verify has nothing to say of the units'
}

# boot COMMAND...: runs it as process 1 in namespaces with devices, processes and control groups of its own.
boot() {
    local group=$work/cgroup/quorlock-units
    mkdir "$work/cgroup"
    mount -t cgroup2 none "$work/cgroup" || return
    mkdir -p "$group"
    # shellcheck disable=SC2016
    timeout --foreground -s KILL "$LIMIT_S" sh -euc 'echo $$ >"$0/cgroup.procs"
        exec unshare --cgroup --mount --propagation unchanged --pid --net --ipc --uts --fork --kill-child "$@"' "$group" \
        sh -euc '
            mount --make-rshared / # as on any machine: systemd hands out credentials by it
            mount -t tmpfs -o mode=755 run /run
            mount -t proc proc /proc
            mount -o bind,ro /proc/sys /proc/sys
            mount -t sysfs -o ro sysfs /sys
            mount -t cgroup2 cgroup2 /sys/fs/cgroup
            mkdir /run/dev
            for name in null zero full random urandom; do
                : >"/run/dev/$name"
                mount --bind "/dev/$name" "/run/dev/$name"
            done
            ln -s /proc/self/fd /run/dev/fd
            mkdir /run/dev/shm
            mount --rbind /run/dev /dev
            : >/run/booted
            exec env -i container=quorlock "$@"
        ' sh "$@" || booted=$?
    find "$work/cgroup/quorlock-units" -depth -type d -exec rmdir {} + 2>/dev/null || :
    umount "$work/cgroup"
}

if [ -n "${QUORLOCK_UNITS_WITHIN:-}" ]; then
    within
    exit 0
fi
prepare
verify
booted=0
boot /lib/systemd/systemd --unit=test-units.service </dev/null >"$work/boot" 2>&1 || booted=$?
cat "$work/said" 2>/dev/null || :
rm -rf -- /etc/quorlock /etc/systemd/system/{quorlock*,test-units.service}
if [ ! -e "$work/said" ]; then
    printf 'SKIPPED: systemd does not start in namespaces here (status %s): %s\n' "$booted" "$(tail -n 1 "$work/boot")"
    exit "$SKIPPED"
fi
[ "$booted" = 0 ] || fail "the units under systemd (status $booted; 137: not done within $LIMIT_S s)"
