#!/usr/bin/env bash
# Measure table 1 of ACE-Sync, and more: several edges train the same small model
# through real pipes, in seven ways, on text that is read once.
#
#	table1.sh [DIR]		writes DIR/table1.tsv, -claims.tsv, .svg
#
# For the variables see compare.sh; for the ways, ways.sh.
name=table1
# shellcheck source=examples/compare.sh
. "$(dirname "$0")/compare.sh"

begin "${1:-.}"
# shellcheck disable=SC2086 # word splitting is intended
all ${ONLY:-FullSync FullSync-32 Top-k PowerSGD FedAvg DiLoCo ACE-Sync}
judge
gnuplot -e "curves='$table-curves.tsv'; ways='$ways'; out='$table.svg'" \
    "$here/examples/style.gnuplot" "$here/examples/table1.gnuplot"
