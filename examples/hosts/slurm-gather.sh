#!/bin/bash
# The same as a Slurm job, one task on each edge:
#
#   sbatch --nodes=3 --ntasks=3 slurm-gather.sh STEP     # or salloc
#
#SBATCH --job-name=ace-step
#
# srun merges its tasks' standard outputs line by line, which ruins binary; so
# each task has a file of its own.  They lie in the job's directory, which all
# nodes share, and the mean beside them.
set -eu
step=$1

# plain WHAT WORD [MORE]: a name that no shell reads as more, here or there
plain() {
	case $2 in
	'' | [-.]* | *[!A-Za-z0-9._${3-}-]*)
		echo "${0##*/}: $1: letters, digits, '.', '_' and '-' only" >&2
		exit 2
		;;
	esac
}
plain STEP "$step"

srun --output="shard-$step-%t.aceg" edge-step "$step" ||
    echo "slurm-gather.sh: a task failed" >&2
ace-aggregate --expect "$SLURM_NTASKS" -o "mean-$step.aceg" shard-"$step"-*.aceg
