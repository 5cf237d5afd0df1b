#!/bin/sh
# The numbers of spools and states, for Prometheus: in a file that node_exporter
# collects, which is the old one or the new one, whole.
#
#   metrics.sh FOLDER DIR...	FOLDER: node_exporter's --collector.textfile.directory
#
# From cron, or by ace-metrics.timer, as the user to whom DIR belongs.  Several calls
# need each another NAME in the environment.
set -eu
to=$1/${NAME:-ace}.prom
shift
# what begins with a dot, or ends otherwise, is not collected
new=$(mktemp "${to%/*}/.ace.XXXXXX")
trap 'rm -f "$new"' EXIT
trap 'exit 143' INT TERM HUP
ace-status --format metrics "$@" >"$new"
chmod 644 "$new"
mv -T "$new" "$to"
