#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# gpu_pool.sh - gpu_pool.c from a shell loop: each job has one of a few GPUs for itself
#
# usage: gpu_pool.sh WORKER JOBS GPUS DATABASE
#
# A job of your own finds its GPU in QUORLOCK_SLOT:
#
#   quorlock run --permits 4 gpu -- sh -c 'CUDA_VISIBLE_DEVICES=$QUORLOCK_SLOT exec ./train'
#
# quorlock takes the nodes from QUORLOCK_NODES. A job that exits with 1 was refused by its GPU, which has seen a newer
# token: it is done again.
worker=$1 jobs=$2 gpus=$3 database=$4
while [ "$jobs" -gt 0 ]; do
    status=0
    quorlock run --permits "$gpus" --fence --set-name examples gpu -- gpu_pool job "$worker" "$database" || status=$?
    case $status in
    0) jobs=$((jobs - 1)) ;;
    1) ;;
    *) exit "$status" ;;
    esac
done
