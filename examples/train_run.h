/* Train for some rounds, with all devices in this process or as one device of several. */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "train_data.h"
#include "train_link.h"
#include "train_optim.h"
#include "train_sense.h"

struct run_options {
	struct shape shape;
	size_t batch;
	size_t local;		/* H: optimizer steps per round; 0: send gradients */
	int replay;		/* 1: undo the local steps, and send the mean of their gradients */
	size_t delay;		/* rounds before an average is applied */
	size_t steps;		/* steps after which to end, with those before a resume; rates
				 * depend on rule.steps instead */
	uint64_t seed;
	struct data_share share;
	struct optim_rule rule;
	double valid;		/* share of the text kept for validation */
	size_t windows;		/* windows of the validation text to evaluate */
	size_t every;		/* rounds between evaluations; 0: only at start and end */
	int alone;		/* 1: all devices are in this process, without streams */
	int moments;		/* 1: average the moments each round; only if alone */
	double realign;		/* share of optim_realign after each round; 0: do not call it */
	double prox;		/* FedProx: mu, the pull to the round's first model */
	int gossip;		/* 1: send and average models, not differences */
	int eval;		/* 1: evaluate and log */
	int obey;		/* 1: use the policy's interval, delay and cuts */
	int flip;		/* 1: an attacker: all labels are wrong */
	int clock;		/* 1: send the time that the computation took */
	uint32_t group;
	const char *cuts;	/* of emit_init; NULL: send the gradient after the pass */
	const char *profile;	/* file that emit_profile writes at the end; NULL: none */
	const char *device, *run, *apply, *log, *save, *load;
	const char *progress;	/* file for the progress line; NULL: none */
	const char *moment[SENSE_FILES];	/* files that sense_tell writes */
	const char *record;	/* directory for a copy of each shard; NULL: none */
	const char *still;	/* tensors whose names begin with this are not
				 * trained; NULL: all are */
	const char *catch_up;	/* file of the averages before this device joined */
	const char *resume;	/* file that each round writes, to resume from */
};

/* Train. Return 0, or -2 to -5 (aceg.h) with the message in e. */
int run_train(const struct run_options *o, char *const *file, size_t nfiles,
    struct ace_error *e);

/* Check the gradients, and print a table. Return 0 if they are right, 1 if one is wrong, < 0 on
 * an error. */
int run_check(const struct run_options *o, char *const *file, size_t nfiles,
    struct ace_error *e);

#endif
