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

# Slurm runs a copy of this script, which has no plain.sh beside it
case $step in
'' | *[!0-9]*)
	echo "slurm-gather.sh: STEP: a number" >&2
	exit 2
	;;
esac

srun --output="shard-$step-%t.aceg" edge-step "$step" ||
    echo "slurm-gather.sh: a task failed" >&2
ace-aggregate --expect "$SLURM_NTASKS" -o "mean-$step.aceg" shard-"$step"-*.aceg
