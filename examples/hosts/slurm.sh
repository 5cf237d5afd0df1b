#!/bin/bash
#SBATCH --job-name=ace
# A run as a Slurm job, whose tasks are the devices and whose first node is the cloud:
#
#   sbatch --ntasks=8 slurm.sh DIR ROUNDS COMMAND...
#
# DIR is on a file system that all nodes share.  The same command resumes the run.
ace-cloud "$1" --devices "$SLURM_NTASKS" --rounds "$2" &
trap 'kill $!' EXIT
until [ -e "$1/run" ]; do
	kill -0 $! 2>/dev/null || { wait $!; exit; }
	sleep 1
done
srun sh -c 'exec ace-edge "$0" --state "$0/task$SLURM_PROCID" --name "task$SLURM_PROCID" -- "$@"' \
    "$1" "${@:3}"
