#!/usr/bin/env bash
# Measure what compression costs: ACE-Sync at compression ratios from 10 to 1000, Top-k and
# FedAvg against the best FullSync.
#
#	frontier.sh [DIR]	writes DIR/frontier.tsv, -claims.tsv, .svg
#
# For the variables see compare.sh; for the ways, ways.sh.
name=frontier
# shellcheck source=examples/compare.sh
. "$(dirname "$0")/compare.sh"

begin "${1:-.}"
# shellcheck disable=SC2086 # word splitting is intended
all ${ONLY:-FullSync FullSync-32 Top-k FedAvg ACE-10 ACE-30 ACE-100 ACE-250 ACE-500 ACE-1000}
judge
gnuplot -e "table='$table.tsv'; out='$table.svg'" \
    "$here/examples/style.gnuplot" "$here/examples/frontier.gnuplot"
