#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# cache_refresher.sh - cache_refresher.c from a shell loop: readers beside each other, a refresher alone
#
# usage: cache_refresher.sh read|refresh TIMES DATABASE
#
# quorlock takes the nodes from QUORLOCK_NODES. A refresher that lost the lock begins anew.
what=$1 times=$2 database=$3
while [ "$times" -gt 0 ]; do
    status=0
    case $what in
    read) quorlock run --shared cache --set-name examples -- cache_refresher read 1 "$database" || status=$? ;;
    *) quorlock run --fence --set-name examples cache -- cache_refresher refresh 1 "$database" || status=$? ;;
    esac
    case $status in
    0) times=$((times - 1)) ;;
    75) ;;
    *) exit "$status" ;;
    esac
done
