#!/bin/sh
# Write the metrics of spools and states for Prometheus, to a file that node_exporter
# collects.  The file is replaced as a whole.
#
#   metrics.sh FOLDER DIR...	FOLDER: node_exporter's --collector.textfile.directory
#
# Run it from cron, or by ace-metrics.timer, as the user who owns DIR.  Several calls
# need different NAMEs in the environment.
set -eu
to=${1:?expected FOLDER DIR...}/ace${NAME:+-$NAME}.prom
shift
# node_exporter ignores files whose names begin with a dot or have another suffix
new=$(mktemp "${to%/*}/.ace.XXXXXX")
trap 'rm -f "$new"' EXIT
trap 'exit 143' INT TERM HUP
ace-status --format metrics "$@" >"$new"
chmod 644 "$new"
mv -T "$new" "$to"
