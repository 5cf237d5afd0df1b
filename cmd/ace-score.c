/*
 * ace-score: the statistics and the importance of every group, as annotations
 * behind the data they speak of.  The values pass unchanged.
 */
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "device/memory.h"
#include "format/note.h"
#include "format/values.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "sync/score.h"

#define FILE_NAME "score"		/* in the state directory */
#define KEY_MODEL "model"		/* the schema its rows belong to */
#define KEY_FORM "form"
#define ROW_ALL "weights"
#define LEARN_RATE 4

enum { OPT_ALPHA = CLI_LONG, OPT_DECAY, OPT_FEEDBACK, OPT_FORM, NOTE_MOST = 65536 };

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "keep the history of the groups in DIR" },
	{ OPT_ALPHA, "alpha", "A",
	    "share of the temporal branch (default 0.5)" },
	{ OPT_DECAY, "decay", "R",
	    "of the moving averages (default 0.3, paper 0.2)" },
	{ OPT_FORM, "form", "NAME", "level (default) or paper" },
	{ OPT_FEEDBACK, "feedback", "FILE",
	    "learn from the aggregates in FILE first" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

static const char *const forms[] = { "level", "paper", NULL };

struct opts {
	struct filter f;
	const char *dir, *feedback;
	double alpha, decay;		/* decay < 0: as the form has it */
	enum score_form form;
	const struct cli *cli;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r, form;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case OPT_ALPHA:
		return num_f64(&o->alpha, val, 0, 1, "--alpha", e);
	case OPT_DECAY:
		return num_f64(&o->decay, val, 0, 1, "--decay", e);
	case OPT_FORM:
		if ((r = num_choice(&form, val, forms, "--form", e)) == 0)
			o->form = (enum score_form)form;
		return r;
	case OPT_FEEDBACK:
		o->feedback = val;
		return 0;
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

struct run {
	struct opts *o;
	struct reader *in;
	struct writer *out;
	struct state state;
	struct score *score;
	unsigned char model[16];	/* schema id score was made for */
	float *x;			/* one group */
	size_t cap;
	struct stat_group *stat;	/* of one DATA frame's groups */
	size_t stat_cap;
	struct buf note;
	int scale;			/* scores come with the data */
};

/* ---- the history ---- */

static int
load(struct run *x, struct err *e)
{
	struct memory h = MEMORY_INIT;
	char id[33];
	const char *model, *form;
	const float *row;
	unsigned c;
	int r;

	if ((r = memory_load(&h, &x->state, FILE_NAME, e)) <= 0)
		return r;
	form = text_get(&h.kv, KEY_FORM);
	shard_hex(x->model, id);
	model = text_get(&h.kv, KEY_MODEL);
	if (model == NULL || strcmp(model, id) != 0) {
		r = err_set(e, ERR_DATA, "mismatch: the score history in '%s' "
		    "is of another model", x->o->dir);
		goto out;
	}
	if (form == NULL || strcmp(form, forms[x->o->form]) != 0) {
		r = err_set(e, ERR_DATA, "mismatch: the score history in '%s' "
		    "is of another form", x->o->dir);
		goto out;
	}
	for (c = 0; c < SCORE_COLUMNS && r >= 0; c++) {
		row = memory_row(&h, score_columns[c], x->score->n);
		if (row != NULL)
			r = score_put_column(x->score, c, row, e);
	}
	row = memory_row(&h, ROW_ALL, SCORE_ALL);
	if (r >= 0 && row != NULL)
		r = score_put_all(x->score, row, e);
out:
	memory_release(&h);
	return r;
}

static int
save(struct run *x, struct err *e)
{
	struct memory h = MEMORY_INIT;
	float all[SCORE_ALL];
	char id[33];
	float *row;
	unsigned c;
	int r;

	if (x->o->dir == NULL || x->score->n == 0)
		return 0;
	if ((row = alloc_get(x->score->n, sizeof(*row), e)) == NULL)
		return -ERR_SYS;
	shard_hex(x->model, id);
	if ((r = text_set(&h.kv, KEY_MODEL, id, e)) == 0)
		r = text_set(&h.kv, KEY_FORM, forms[x->o->form], e);
	for (c = 0; c < SCORE_COLUMNS && r >= 0; c++) {
		score_get_column(x->score, c, row);
		r = memory_put(&h, score_columns[c], row, x->score->n, e);
	}
	score_get_all(x->score, all);
	if (r >= 0 && (r = memory_put(&h, ROW_ALL, all, SCORE_ALL, e)) >= 0)
		r = memory_save(&h, &x->state, FILE_NAME,
		    reader_shard(x->in), x->o->f.tool, e);
	alloc_free(row);
	memory_release(&h);
	return r;
}

/* ---- feedback ---- */

/* One aggregate: the energy per value of each group. */
static int
lesson(struct run *x, struct reader *r, struct err *e)
{
	struct values v = VALUES_INIT;
	struct stat_group s;
	float *benefit = alloc_get(x->score->n, sizeof(*benefit), e);
	char why[256];
	int k = -ERR_SYS;

	if (benefit == NULL)
		goto out;
	if (schema_diff(reader_schema(x->in), reader_schema(r), why) != 0) {
		k = err_set(e, ERR_DATA, "mismatch: feedback '%s': %s",
		    x->o->feedback, why);
		goto out;
	}
	if ((k = values_begin(&v, r, e)) < 0)
		goto out;
	while ((k = values_next(&v, e)) > 0) {
		if (stat_group_of(v.x, v.n, &s) != 0) {
			k = err_set(e, ERR_REFUSED, "feedback '%s': a value of "
			    "group %lu is not finite", x->o->feedback,
			    (unsigned long)v.group);
			goto out;
		}
		benefit[v.group] = v.n > 0 ? s.sumsq / (float)v.n : 0;
	}
	if (k == 0)
		k = score_learn(x->score, benefit, LEARN_RATE, e);
out:
	values_release(&v);
	alloc_free(benefit);
	return k;
}

static int
learn(struct run *x, struct err *e)
{
	struct reader *r = NULL;
	int k;

	if (x->score->all.shards < 1) {
		cli_say(x->o->cli, 0, "no history yet: nothing to learn from "
		    "'%s'", x->o->feedback);
		return 0;
	}
	if ((k = filter_in(&x->o->f, &r, x->o->feedback, e)) < 0)
		return k;
	while ((k = reader_next(r, e)) > 0)
		if (k == READER_SHARD && (k = lesson(x, r, e)) < 0)
			break;
	reader_free(r);
	return k;
}

/* ---- a model ---- */

static void
places(const struct schema *sc, struct score_place *p)
{
	const struct schema_tensor *t;
	double field;
	uint32_t g;
	size_t i;
	unsigned d;

	for (i = 0; i < sc->n; i++) {
		t = &sc->t[i];
		for (field = 1, d = 1; d < t->ndim; d++)
			field *= (double)t->dim[d];
		for (g = t->group; g < t->group + t->ngroups; g++) {
			p[g].depth = sc->n > 1 ?
			    (double)i / (double)(sc->n - 1) : 0.5;
			p[g].params = (double)t->numel;
			p[g].field = field;
		}
	}
}

/* The first shard of a model: its groups' places, history, feedback. */
static int
begin_model(struct run *x, struct err *e)
{
	const struct schema *sc = reader_schema(x->in);
	struct score_place *p;
	int r;

	if (x->score != NULL && memcmp(x->model, sc->id, 16) == 0)
		return 0;
	score_free(x->score);
	x->score = NULL;
	memcpy(x->model, sc->id, 16);
	if ((p = alloc_get(sc->ngroups, sizeof(*p), e)) == NULL)
		return -ERR_SYS;
	places(sc, p);
	r = score_new(&x->score, x->o->form, p, sc->ngroups, e);
	alloc_free(p);
	if (r < 0 || (r = alloc_grow(&x->x, &x->cap, sc->group_size,
	    sizeof(*x->x), e)) < 0)
		return r;
	x->score->alpha = x->o->alpha;
	if (x->o->decay >= 0)
		x->score->decay = x->o->decay;
	if (x->o->dir != NULL && (r = load(x, e)) < 0)
		return r;
	return x->o->feedback != NULL ? learn(x, e) : 0;
}

/* ---- a shard ---- */

static int
put_scores(struct run *x, uint32_t first, uint32_t n, struct err *e)
{
	float *s = alloc_get(n, sizeof(*s), e);
	uint32_t i;
	int r;

	if (s == NULL)
		return -ERR_SYS;
	for (i = 0; i < n; i++)
		s[i] = score_of(x->score, first + i);
	x->note.n = 0;
	if ((r = note_put_scores(&x->note, first, s, n, e)) == 0)
		r = writer_note(x->out, FRAME_SCOR, x->note.p, x->note.n, e);
	alloc_free(s);
	return r;
}

/* Groups first to first + n - 1, all of them in the frame that just passed. */
static int
put_run(struct run *x, uint32_t first, uint32_t n, struct err *e)
{
	int r;

	x->note.n = 0;
	if ((r = note_put_stats(&x->note, first, x->stat, n, e)) < 0 ||
	    (r = writer_note(x->out, FRAME_STAT, x->note.p, x->note.n, e)) < 0)
		return r;
	return x->scale ? put_scores(x, first, n, e) : 0;
}

static int
observe(struct run *x, const struct record *rec, struct stat_group *s,
    struct err *e)
{
	size_t n, bad;
	int r;

	if ((r = values_decode(x->in, rec, x->x, x->cap, &n, e)) < 0)
		return r;
	if ((bad = stat_group_of(x->x, n, s)) != 0)
		return values_refuse(x->in, rec->group, bad - 1, e);
	score_observe(x->score, rec->group, s);
	return 0;
}

static int
on_data(struct run *x, struct err *e)
{
	const struct record *rec;
	size_t n, i, from = 0;
	int r;

	if ((r = writer_pass(x->out, x->in, e)) < 0)
		return r;
	rec = reader_records(x->in, &n);
	if ((r = alloc_grow(&x->stat, &x->stat_cap, n, sizeof(*x->stat),
	    e)) < 0)
		return r;
	for (i = 0; i < n; i++) {
		if ((r = observe(x, &rec[i], &x->stat[i - from], e)) < 0)
			return r;
		if (i + 1 < n && rec[i + 1].group == rec[i].group + 1 &&
		    i + 1 - from < NOTE_MOST)
			continue;
		if ((r = put_run(x, rec[from].group, (uint32_t)(i + 1 - from),
		    e)) < 0)
			return r;
		from = i + 1;
	}
	return 0;
}

static int
on_send(struct run *x, struct err *e)
{
	const struct shard_sums *sums = &reader_end_of_shard(x->in)->sums;
	uint32_t g, n, all = reader_schema(x->in)->ngroups;
	int r;

	score_scale(x->score);
	for (g = 0; !x->scale && g < all; g += n) {
		n = all - g < NOTE_MOST ? all - g : NOTE_MOST;
		if ((r = put_scores(x, g, n, e)) < 0)
			return r;
	}
	if ((r = save(x, e)) < 0)
		return r;
	return writer_send(x->out, sums, e);
}

/* Ours replace what an earlier ace-score said. */
static int
on_note(struct run *x, struct err *e)
{
	uint32_t type = reader_frame(x->in)->type;

	if (type == FRAME_STAT || type == FRAME_SCOR)
		return 0;
	return filter_pass(x->in, x->out, 0, e);
}

static int
on_event(struct run *x, int event, struct err *e)
{
	int r;

	switch (event) {
	case READER_SHARD:
		if ((r = begin_model(x, e)) < 0)
			return r;
		x->scale = x->score->all.shards >= 1;
		return filter_shard(x->in, x->out, NULL, e);
	case READER_DATA:
		return on_data(x, e);
	case READER_SEND:
		return on_send(x, e);
	case READER_NOTE:
		return reader_shard(x->in) != NULL ? on_note(x, e) : 0;
	default:
		return 0;
	}
}

static int
run(struct opts *o, const char *path, struct err *e)
{
	struct run x = { .o = o, .state = STATE_INIT };
	int r;

	if ((o->dir != NULL && (r = state_open(&x.state, o->dir, e)) < 0) ||
	    (r = filter_in(&o->f, &x.in, path, e)) < 0 ||
	    (r = filter_out(&o->f, &x.out, e)) < 0)
		goto out;
	filter_loose(x.in, x.out, 0);
	while ((r = reader_next(x.in, e)) > 0)
		if ((r = on_event(&x, r, e)) < 0)
			break;
	r = filter_end(x.out, r, e);
out:
	score_free(x.score);
	alloc_free(x.x);
	alloc_free(x.stat);
	buf_release(&x.note);
	writer_free(x.out);
	reader_free(x.in);
	state_close(&x.state);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-score",
		.usage = "[-S DIR] [--alpha A] [--feedback FILE] [FILE]",
		.about = "Adds the statistics and the importance of every "
		    "group to a shard stream.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .alpha = 0.5, .decay = -1, .cli = &c };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0 && (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, path, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
