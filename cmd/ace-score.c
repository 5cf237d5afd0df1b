/*
 * ace-score: the statistics and the importance of every group, as annotations
 * behind the data they speak of.  The values pass unchanged.
 */
#include "base/cli.h"
#include "base/err.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/stage_program.h"
#include "stage/stage_score.h"

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "keep the history of the groups in DIR" },
	STAGE_SCORE_OPTS,
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	struct stage_score_opts score;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r = stage_score_set(&o->score, key, val, e);

	if (r == 0)
		r = filter_set(&o->f, key, val, e);
	return r < 0 ? r : 0;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-score",
		.usage = "[-S DIR] [--alpha A] [--feedback FILE] [FILE]",
		.about = "Adds the statistics and the importance of every "
		    "group to a shard stream.",
		.examples = "ace-score edge1.aceg | ace-select -b 20k | "
		    "ace-compress >coded.aceg\n"
		    "ace-score -S state edge1.aceg >scored.aceg\n",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .score = STAGE_SCORE_INIT };
	struct stage *s = NULL;
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	o.score.cli = &c;
	o.score.in = &o.f.in;
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0 &&
	    (r = stage_score_new(&s, &o.score, &e)) == 0)
		r = stage_program(&o.f, s, STAGE_READS, path, &e);
	stage_free(s);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
