#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# scheduled_job.sh - scheduled_job.c from a shell loop: a job of several replicas, one of which runs it each tick
#
# usage: scheduled_job.sh lock|keep|tick REPLICA WORK_MS DATABASE
#
# One replica; each line on stdin is a tick. A cron line has it shorter:
#
#   * * * * *  quorlock run -n -E 100 --keep 25s job -- /usr/local/bin/job $(( $(date +\%s) / 60 ))
#
# quorlock takes the nodes from QUORLOCK_NODES. With -n it tries once; another status than 1 for "another has it"
# (-E) keeps that apart from a job that failed. The lock is renewed while the job runs, and released when it ends; with
# --keep not before so long a time is over, so the clocks of the replicas may be that far apart.
# Where the job knows which tick was run (see scheduled_job.c) it waits instead, and is told.
way=$1 replica=$2 work_ms=$3 database=$4
case $way in
tick) how=--wait=forever ;;
keep) how='-n --keep 4s' ;;
*) how=-n ;;
esac
while read -r tick; do
    status=0
    # shellcheck disable=SC2086
    quorlock run $how -E 100 --set-name examples job -- \
        scheduled_job job "$way" "$tick" "$replica" "$work_ms" "$database" || status=$?
    case $status in
    0) ;; # the job itself says what it did
    100) echo "0 another-runs tick=$tick" ;;
    *) echo "0 no-lock tick=$tick status=$status" ;;
    esac
done
