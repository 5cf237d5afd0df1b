/* The rounds of a training run: alone, or as one device of several. */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "train_data.h"
#include "train_link.h"
#include "train_optim.h"
#include "train_sense.h"

struct run_options {
	struct shape shape;
	size_t batch;
	size_t local;		/* H: AdamW steps per round; 0: send gradients */
	int replay;		/* those are looked ahead, and their gradient is sent */
	size_t delay;		/* rounds before an average is applied */
	size_t steps;		/* batches of this process, per device; the schedule
				 * of the rates is that of rule.steps */
	uint64_t seed;
	struct data_share share;
	struct optim_rule rule;
	double valid;		/* share of the text */
	size_t windows;		/* of the validation text */
	size_t every;		/* rounds between evaluations; 0: only at the end */
	int alone;		/* all devices in this process, no streams */
	double foretell;	/* of the average before, so much is not sent */
	int moments, control;	/* alone: train_drift.h */
	double realign;		/* share of |m| O in Muon's momenta after a round */
	double prox;		/* FedProx: mu, what ties steps to the round's start */
	int gossip;		/* models are said and averaged, not differences */
	double ema;		/* evaluated is a mean of models; 0: the last */
	int eval;		/* evaluate and log */
	int obey;		/* the policy's interval and delay */
	int flip;		/* every label is wrong: an attacker */
	int clock;		/* say how long the computation took */
	uint32_t group;
	const char *cuts;	/* gradients leave while more are computed */
	const char *profile;	/* how long each took, for those cuts */
	const char *device, *run, *apply, *log, *save, *load;
	const char *progress;	/* file that says how far it is */
	const char *moment[SENSE_FILES];	/* for what the loss minds */
	struct sense_favour favour;	/* in there */
	const char *record;	/* directory for a copy of each shard */
	const char *still;	/* how the names of tensors begin that are not
				 * trained; NULL: all are */
	const char *catch_up;	/* what the others did before we came */
	const char *resume;	/* file that each round leaves, to go on from */
};

/* Train. Returns 0, or -2, -3, -4 with the message in e. */
int run_train(const struct run_options *o, char *const *file, size_t nfiles,
    struct ace_error *e);

/* Check the gradients. Returns 0 when they are right, 1 when wrong, < 0 on an error. */
int run_check(const struct run_options *o, char *const *file, size_t nfiles,
    struct ace_error *e);

#endif
