/*
 * train: train a small language model with several devices, through pipes.
 *
 *   train --local text                              all devices in one process
 *   train --index 1 --of 4 --apply down1 text >up1  one of four devices
 *
 * A device writes its shards to standard output, and reads the average of each round from
 * the file of --apply.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train_run.h"

/* Functions of OpenBLAS, absent in other libraries.  Products use one thread, since more
 * threads would round sums differently. */
extern void openblas_set_num_threads(int n) __attribute__((weak));
extern char *openblas_get_config(void) __attribute__((weak));

struct opts {
	struct run_options run;
	int check, help, blas;
	int warmup_set;
};

enum {
	OPT_APPLY = 256, OPT_AVERAGE, OPT_BATCH, OPT_BETA2, OPT_BLAS, OPT_CATCH,
	OPT_CHECK, OPT_CLIP, OPT_CLOCK, OPT_CONTEXT, OPT_CUTS,
	OPT_DCT, OPT_DECAY, OPT_DELAY, OPT_DEVICE, OPT_EVAL, OPT_EVERY,
	OPT_FACTORED, OPT_FLIP, OPT_GOSSIP, OPT_GRADIENT,
	OPT_GROUP, OPT_HEADS, OPT_INDEX, OPT_INTERLEAVED, OPT_LAYERS, OPT_LOAD,
	OPT_LOCAL, OPT_LOG, OPT_MOMENTUM, OPT_MUON, OPT_ONE_BIT,
	OPT_OF, OPT_OUTER_MOMENTUM, OPT_OUTER_RATE, OPT_POLICY,
	OPT_PROFILE, OPT_PROGRESS, OPT_PROX, OPT_RATE, OPT_REALIGN, OPT_RECORD,
	OPT_REPLAY, OPT_RESUME, OPT_RUN, OPT_SAVE, OPT_SEED, OPT_SENSE, OPT_STEPS, OPT_STILL,
	OPT_UNTIL, OPT_VALID, OPT_WARMUP,
	OPT_WIDTH, OPT_WINDOWS
};

static const struct option options[] = {
	{ "apply", required_argument, NULL, OPT_APPLY },
	{ "average-moments", no_argument, NULL, OPT_AVERAGE },
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "beta2", required_argument, NULL, OPT_BETA2 },
	{ "blas", no_argument, NULL, OPT_BLAS },
	{ "catch-up", required_argument, NULL, OPT_CATCH },
	{ "check-gradient", no_argument, NULL, OPT_CHECK },
	{ "clip", required_argument, NULL, OPT_CLIP },
	{ "clock", no_argument, NULL, OPT_CLOCK },
	{ "context", required_argument, NULL, OPT_CONTEXT },
	{ "cuts", required_argument, NULL, OPT_CUTS },
	{ "dct", no_argument, NULL, OPT_DCT },
	{ "decay", required_argument, NULL, OPT_DECAY },
	{ "delay", required_argument, NULL, OPT_DELAY },
	{ "device", required_argument, NULL, OPT_DEVICE },
	{ "eval", no_argument, NULL, OPT_EVAL },
	{ "every", required_argument, NULL, OPT_EVERY },
	{ "factored", no_argument, NULL, OPT_FACTORED },
	{ "flip-labels", no_argument, NULL, OPT_FLIP },
	{ "realign", required_argument, NULL, OPT_REALIGN },
	{ "gradient", no_argument, NULL, OPT_GRADIENT },
	{ "gossip", no_argument, NULL, OPT_GOSSIP },
	{ "group", required_argument, NULL, OPT_GROUP },
	{ "heads", required_argument, NULL, OPT_HEADS },
	{ "help", no_argument, NULL, 'h' },
	{ "index", required_argument, NULL, OPT_INDEX },
	{ "interleaved", no_argument, NULL, OPT_INTERLEAVED },
	{ "interval", required_argument, NULL, 'H' },
	{ "layers", required_argument, NULL, OPT_LAYERS },
	{ "load", required_argument, NULL, OPT_LOAD },
	{ "local", no_argument, NULL, OPT_LOCAL },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "momentum", required_argument, NULL, OPT_MOMENTUM },
	{ "muon", required_argument, NULL, OPT_MUON },
	{ "of", required_argument, NULL, OPT_OF },
	{ "one-bit", required_argument, NULL, OPT_ONE_BIT },
	{ "outer-momentum", required_argument, NULL, OPT_OUTER_MOMENTUM },
	{ "outer-rate", required_argument, NULL, OPT_OUTER_RATE },
	{ "policy", no_argument, NULL, OPT_POLICY },
	{ "profile", required_argument, NULL, OPT_PROFILE },
	{ "progress", required_argument, NULL, OPT_PROGRESS },
	{ "prox", required_argument, NULL, OPT_PROX },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "record", required_argument, NULL, OPT_RECORD },
	{ "replay", no_argument, NULL, OPT_REPLAY },
	{ "resume", required_argument, NULL, OPT_RESUME },
	{ "run", required_argument, NULL, OPT_RUN },
	{ "save", required_argument, NULL, OPT_SAVE },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "moment", required_argument, NULL, OPT_SENSE },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "still", required_argument, NULL, OPT_STILL },
	{ "until", required_argument, NULL, OPT_UNTIL },
	{ "valid", required_argument, NULL, OPT_VALID },
	{ "warmup", required_argument, NULL, OPT_WARMUP },
	{ "width", required_argument, NULL, OPT_WIDTH },
	{ "windows", required_argument, NULL, OPT_WINDOWS },
	{ NULL, 0, NULL, 0 }
};

static const char usage[] =
"usage: train [options] TEXT...\n"
"  one of several devices: shards to standard output\n"
"      --index K --of N    this device, counted from 1, of N (1 of 1)\n"
"      --device NAME       name of this device in the shards (edgeK)\n"
"      --run NAME          name of the run in the shards (train)\n"
"      --apply FILE        read the average of each round from this stream;\n"
"                          without it the device applies its own update\n"
"      --catch-up FILE     join late: apply the averages in this file, as\n"
"                          ace-recv answers them, before training; a file that\n"
"                          another device wrote by --resume may come first; not\n"
"                          used if --resume finds a file\n"
"      --local             train all N devices in this process, without streams\n"
"      --average-moments   with --local and --interval: also average the moments\n"
"                          of the devices' optimisers at each round, to measure\n"
"                          what separate moments cost\n"
"      --interleaved       give devices alternating stripes of the text, not one\n"
"                          contiguous part each\n"
"      --moment FILE       write the root mean square of each value's gradient,\n"
"                          for the file moment of ace-score; may be given twice\n"
"      --record DIR        also write each shard to the file DIR/ROUND.aceg\n"
"      --cuts all|none|K,L,...     with --gradient: send the gradients computed\n"
"                          so far, last layer first, at these rows of the profile\n"
"      --profile FILE      with --cuts: write a table for ace-advise dynacomm\n"
"      --clock             write into each shard how long its computation took,\n"
"                          and with --cuts the time of each tensor of the shard\n"
"                          before\n"
"      --flip-labels       be an attacker: learn 255 - B where byte B comes next\n"
"      --group N           values per group of the stream\n"
"  what a round is\n"
"  -H, --interval STEPS    send the difference after so many AdamW steps\n"
"      --gradient          send each gradient, and apply AdamW to the average\n"
"                          (the default)\n"
"      --dct               with --gradient: send the cosine transform of blocks\n"
"                          of 64 x 64, and step by the sign of the average (DeMo)\n"
"      --one-bit N         with --gradient: from step N on keep the second\n"
"                          moments, and send the momentum (1-bit Adam)\n"
"      --delay T           apply the average of a round T rounds later (0)\n"
"      --policy            use the interval, the delay and, with --cuts, the cuts\n"
"                          that come with the average\n"
"      --gossip            with --interval: send the model, and replace it by the\n"
"                          mean with the neighbours' that comes back (D-PSGD)\n"
"      --replay            with --interval: undo the steps, send their mean\n"
"                          gradient, and take as many steps with the average, so\n"
"                          that all devices have the same moments\n"
"      --realign X         with --muon and --interval: after each round, turn\n"
"                          each momentum by the share X towards the average (0)\n"
"      --factored          with --interval: code rows and columns of matrices more\n"
"                          finely where gradients are larger\n"
"      --prox X            pull local steps towards the first model of the round\n"
"                          with this strength (FedProx; 0)\n"
"      --outer-rate X      rate of the step with the averaged differences (1)\n"
"      --outer-momentum X  Nesterov momentum of that step (0)\n"
"  training\n"
"      --steps N           batches per device (1000)\n"
"      --batch N           sequences per batch (16)\n"
"      --rate X            highest rate of AdamW (0.01)\n"
"      --warmup N          steps until the highest rate (a tenth of all); then\n"
"                          the rate falls as a cosine\n"
"      --muon X            use Muon for the matrices inside the layers, at rate X\n"
"      --momentum X        momentum of Muon (0.95)\n"
"      --decay X           weight decay (0.1)\n"
"      --beta2 X           decay of the second moments (0.95)\n"
"      --clip NORM         largest norm of a gradient; 0: any (1)\n"
"      --seed N            seed of the random numbers; the same seed gives the\n"
"                          same bits (1)\n"
"  the model\n"
"      --layers N --width N --heads N --context N\n"
"                          sizes of the transformer (2, 96, 3, 64)\n"
"      --load FILE --save FILE\n"
"                          read or write the model, a shard stream of kind model\n"
"      --still NAME        do not train tensors whose names begin so, as for\n"
"                          fine-tuning (not with --cuts)\n"
"      --resume FILE       continue from this checkpoint if it exists, and write\n"
"                          it after each round (not with --delay)\n"
"      --until N           end after N of --steps; --resume does the rest\n"
"  evaluation\n"
"      --eval              measure loss, perplexity and top-1 accuracy on the\n"
"                          text that --valid keeps\n"
"      --log FILE          write the table of measurements here (standard error)\n"
"      --progress FILE     keep the present step and smoothed loss here\n"
"      --every N           rounds between measurements (only at start and end)\n"
"      --valid X           share of the text that is kept for measurements (0.1)\n"
"      --windows N         places of that text that are measured (256)\n"
"      --check-gradient    compare the gradient with finite differences; status 1\n"
"                          if it is wrong\n"
"      --blas              print which library multiplies the matrices\n";

static char expected[96];	/* for the message about a bad value: what its option takes */

static int
size_arg(size_t *x, const char *s, size_t least, size_t most)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(s, &end, 10);
	if (end == s || *end != '\0' || *s == '-' || errno != 0 || v < least || v > most) {
		(void)snprintf(expected, sizeof(expected), "an integer from %zu to %zu", least,
		    most);
		return -1;
	}
	*x = (size_t)v;
	return 0;
}

static int
real_arg(double *x, const char *s, double least, double most)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end != '\0' || !(v >= least && v <= most)) {
		(void)snprintf(expected, sizeof(expected), "a number from %g to %.6g", least, most);
		return -1;
	}
	*x = v;
	return 0;
}

static int
sense_name(struct run_options *o, const char *s)
{
	size_t i = 0;

	while (i < SENSE_FILES && o->moment[i] != NULL)
		i++;
	if (i == SENSE_FILES) {
		(void)snprintf(expected, sizeof(expected), "the option at most %d times",
		    SENSE_FILES);
		return -1;
	}
	o->moment[i] = s;
	return 0;
}

static int
set_name(struct run_options *o, int key, const char *s)
{
	switch (key) {
	case OPT_APPLY: o->apply = s; return 0;
	case OPT_CATCH: o->catch_up = s; return 0;
	case OPT_CUTS: o->cuts = s; return 0;
	case OPT_DEVICE: o->device = s; return 0;
	case OPT_LOAD: o->load = s; return 0;
	case OPT_LOG: o->log = s; return 0;
	case OPT_RECORD: o->record = s; return 0;
	case OPT_RESUME: o->resume = s; return 0;
	case OPT_PROFILE: o->profile = s; return 0;
	case OPT_PROGRESS: o->progress = s; return 0;
	case OPT_SENSE: return sense_name(o, s);
	case OPT_RUN: o->run = s; return 0;
	case OPT_SAVE: o->save = s; return 0;
	case OPT_STILL: o->still = s; return 0;
	default: return 1;
	}
}

static int
set_flag(struct opts *o, int key)
{
	switch (key) {
	case OPT_BLAS: o->blas = 1; return 0;
	case OPT_CHECK: o->check = 1; return 0;
	case OPT_CLOCK: o->run.clock = 1; return 0;
	case OPT_DCT: o->run.rule.sign = 1; return 0;
	case OPT_EVAL: o->run.eval = 1; return 0;
	case OPT_FACTORED: o->run.shape.factored = 1; return 0;
	case OPT_FLIP: o->run.flip = 1; return 0;
	case OPT_GOSSIP: o->run.gossip = 1; return 0;
	case OPT_GRADIENT: o->run.local = 0; return 0;
	case OPT_INTERLEAVED: o->run.share.interleaved = 1; return 0;
	case OPT_AVERAGE: o->run.moments = 1; return 0;
	case OPT_LOCAL: o->run.alone = 1; return 0;
	case OPT_REPLAY: o->run.replay = 1; return 0;
	case OPT_POLICY: o->run.obey = 1; return 0;
	case 'h': o->help = 1; return 0;
	default: return 1;
	}
}

static int
set_real(struct run_options *o, int key, const char *s)
{
	struct optim_rule *r = &o->rule;

	switch (key) {
	case OPT_BETA2: return real_arg(&r->beta2, s, 0, 0.999999);
	case OPT_CLIP: return real_arg(&r->clip, s, 0, 1e9);
	case OPT_DECAY: return real_arg(&r->decay, s, 0, 10);
	case OPT_PROX: return real_arg(&o->prox, s, 0, 1e6);
	case OPT_REALIGN: return real_arg(&o->realign, s, 0, 1);
	case OPT_MOMENTUM: return real_arg(&r->momentum, s, 0, 0.999999);
	case OPT_MUON: return real_arg(&r->muon, s, 0, 10);
	case OPT_OUTER_MOMENTUM:
		return real_arg(&r->outer_momentum, s, 0, 0.999999);
	case OPT_OUTER_RATE: return real_arg(&r->outer_rate, s, 0, 100);
	case OPT_RATE: return real_arg(&r->rate, s, 0, 10);
	case OPT_VALID: return real_arg(&o->valid, s, 0, 0.9);
	default: return 1;
	}
}

static int
set_size(struct opts *p, int key, const char *s)
{
	struct run_options *o = &p->run;
	size_t v = 0;
	int r;

	switch (key) {
	case OPT_BATCH: return size_arg(&o->batch, s, 1, 4096);
	case OPT_CONTEXT: return size_arg(&o->shape.context, s, 1, 4096);
	case OPT_DELAY: return size_arg(&o->delay, s, 0, 1000);
	case OPT_EVERY: return size_arg(&o->every, s, 0, SIZE_MAX);
	case OPT_HEADS: return size_arg(&o->shape.heads, s, 1, 256);
	case OPT_INDEX: return size_arg(&o->share.index, s, 1, 65536);
	case 'H': return size_arg(&o->local, s, 1, 1000000);
	case OPT_LAYERS: return size_arg(&o->shape.layers, s, 1, 64);
	case OPT_OF: return size_arg(&o->share.of, s, 1, 65536);
	case OPT_ONE_BIT: return size_arg(&o->rule.frozen, s, 1, 1000000000);
	case OPT_UNTIL: return size_arg(&o->steps, s, 1, 1000000000);
	case OPT_STEPS: return size_arg(&o->rule.steps, s, 0, 1000000000);
	case OPT_WARMUP:
		p->warmup_set = 1;
		return size_arg(&o->rule.warmup, s, 0, 1000000000);
	case OPT_WIDTH: return size_arg(&o->shape.width, s, 1, 4096);
	case OPT_WINDOWS: return size_arg(&o->windows, s, 1, 1000000);
	case OPT_GROUP:
		r = size_arg(&v, s, 1, 1 << 24);
		o->group = (uint32_t)v;
		return r;
	case OPT_SEED:
		r = size_arg(&v, s, 0, SIZE_MAX);
		o->seed = v;
		return r;
	default: return 1;
	}
}

static const char *
option_name(int key)
{
	const struct option *o = options;

	while (o->name != NULL && o->val != key)
		o++;
	return o->name != NULL ? o->name : "";
}

static int
parse(struct opts *o, int argc, char **argv)
{
	int key, r;

	while ((key = getopt_long(argc, argv, "+H:h", options, NULL)) != -1) {
		r = set_flag(o, key);
		if (r > 0)
			r = set_name(&o->run, key, optarg);
		if (r > 0)
			r = set_real(&o->run, key, optarg);
		if (r > 0)
			r = set_size(o, key, optarg);
		if (r < 0)
			(void)fprintf(stderr, "train: --%s '%s' is not valid: expected %s\n",
			    option_name(key), optarg, expected);
		if (r != 0)
			return -1;
	}
	return 0;
}

/* Check options that depend on each other, and set those that are not given; device[room] keeps
 * the device's default name.  Count share.index from 0.  *why is NULL before; return 0, or -1
 * with *why set if one is bad. */
static int
settle(struct opts *o, char *device, size_t room, const char **why)
{
	static char text[96];
	struct run_options *r = &o->run;

	if (r->share.index > r->share.of) {
		(void)snprintf(text, sizeof(text), "--index %zu is larger than --of %zu, the "
		    "number of devices", r->share.index, r->share.of);
		*why = text;
	} else if (r->moments && (!r->alone || r->local == 0))
		*why = "--average-moments needs --local and --interval";
	else if (r->realign > 0 && (r->local == 0 || !(r->rule.muon > 0) ||
	    r->replay || r->gossip || r->delay > 0 || r->obey))
		*why = "--realign needs --muon and --interval, and excludes --replay, "
		    "--gossip, --delay and --policy";
	else if (r->shape.factored && (r->local == 0 || r->alone || r->replay || r->gossip ||
	    r->delay > 0 || r->obey))
		*why = "--factored needs --interval, and excludes --local, --replay, --gossip, "
		    "--delay and --policy";
	else if (r->prox > 0 && r->local == 0)
		*why = "--prox needs --interval";
	else if (r->gossip && (r->local == 0 || r->alone || r->delay > 0))
		*why = "--gossip needs --interval, and excludes --local and --delay";
	else if (r->replay && (r->local == 0 || r->delay > 0 || r->obey ||
	    r->prox > 0 || r->gossip || r->moments))
		*why = "--replay needs --interval, and excludes --delay, "
		    "--policy, --prox, --gossip and --average-moments";
	else if (r->still != NULL && r->cuts != NULL)
		*why = "--cuts and --still exclude each other: give one";
	else if (r->cuts != NULL && (r->local > 0 || r->alone))
		*why = "--cuts excludes --interval and --local";
	else if (r->rule.sign && (r->local > 0 || r->cuts != NULL ||
	    r->rule.muon > 0))
		*why = "--dct excludes --interval, --cuts and --muon";
	else if (r->rule.frozen > 0 && (r->local > 0 || r->cuts != NULL ||
	    r->rule.muon > 0 || r->rule.sign))
		*why = "--one-bit excludes --interval, --cuts, --muon and --dct";
	else if (r->shape.width % r->shape.heads != 0) {
		(void)snprintf(text, sizeof(text), "--width %zu is not a multiple of --heads %zu",
		    r->shape.width, r->shape.heads);
		*why = text;
	} else if ((r->resume != NULL || r->catch_up != NULL) &&
	    (r->alone || r->delay > 0))
		*why = "--resume and --catch-up exclude --local and --delay";
	else if (!o->check && !r->alone && isatty(STDOUT_FILENO))
		*why = "standard output is a terminal, but shards are binary: use a file or pipe";
	if (*why != NULL)
		return -1;
	(void)snprintf(device, room, "edge%zu", r->share.index);
	if (r->device == NULL)
		r->device = device;
	r->share.index--;
	if (r->steps == 0 || r->steps > r->rule.steps)
		r->steps = r->rule.steps;
	if (!o->warmup_set)
		r->rule.warmup = r->rule.steps / 10;
	if (r->rule.warmup > r->rule.steps)
		r->rule.warmup = r->rule.steps;
	return 0;
}

/* Print which library multiplies matrices: the reference BLAS takes several times as long
 * as OpenBLAS, and no other output would show which one is used. */
static int
blas(void)
{
	(void)printf("%s\n", openblas_get_config != NULL ?
	    openblas_get_config() : "a library other than OpenBLAS, probably slow");
	return fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct opts o = { .run = {
	    .shape = { 2, 96, 3, 64, 0 }, .batch = 16, .seed = 1,
	    .share = { 1, 1, 0 }, .valid = 0.1, .windows = 256, .run = "train",
	    .rule = { .rate = 0.01, .beta1 = 0.9, .beta2 = 0.95, .decay = 0.1,
	    .clip = 1, .last = 0.05, .steps = 1000, .outer_rate = 1,
	    .momentum = 0.95 } } };
	struct ace_error e = { 0, "" };
	const char *why = NULL;
	char device[32];
	int r;

	if (openblas_set_num_threads != NULL)
		openblas_set_num_threads(1);
	if (parse(&o, argc, argv) < 0)
		return 2;
	if (o.blas)
		return blas() < 0 ? 4 : 0;
	if (o.help)
		return fputs(usage, stdout) < 0 || fflush(stdout) != 0 ? 4 : 0;
	if (optind == argc)
		why = "the text is missing: name one or more files, see train --help";
	if (why != NULL || settle(&o, device, sizeof device, &why) < 0) {
		(void)fprintf(stderr, "train: %s\n", why);
		return 2;
	}
	r = (o.check ? run_check : run_train)(&o.run, argv + optind,
	    (size_t)(argc - optind), &e);
	if (r < 0)
		(void)fprintf(stderr, "train: %s\n", e.message);
	return r < 0 ? -r : r;
}
