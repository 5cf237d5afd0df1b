#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "device/learned.h"
#include "device/residual.h"
#include "format/annotation.h"
#include "format/values.h"
#include "stage/stage_score.h"

#define STAGE_SCORE_FILE "score"	/* name of the history's file in the state (learned.h) */
#define STAGE_SCORE_TOLD "moment"	/* file in the state, written by the trainer */
#define STAGE_SCORE_ROW "weights"
#define STAGE_SCORE_LESSON "lesson"	/* key: RUN/STEP of the last average learnt from */
#define STAGE_SCORE_RATE 4		/* learning rate */

enum { STAGE_SCORE_MOST = 65536 };	/* most groups per annotation */

static const char *const stage_score_forms[] = { "moment", "paper", NULL };

/* Read "moment", "moment:POWER", "paper" or "paper:ALPHA". */
static int
stage_score_form(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct stage_score_opts *o = arg;
	const char *number = strchr(val, ':');
	char word[32];
	int form, r;

	(void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(val, ":"), val);
	if ((r = num_choice(&form, word, stage_score_forms, "--form", e)) < 0)
		return r;
	o->form = (enum score_form)form;
	o->number = form == SCORE_PAPER ? 0.5 : 0.25;
	return number == NULL ? 0 : num_f64(&o->number, number + 1, 0, 1, "--form", e);
}

const struct opt stage_score_rows[] = {
	{ 'S', "state", "DIR", "keep the history of the groups in DIR",
	    OPT_PATH(struct stage_score_opts, dir, OPT_DIR) },
	{ 0, "form", "NAME", "moment[:POWER] or paper[:ALPHA]",
	    OPT_CALL(stage_score_form), .words = stage_score_forms, .def = "moment" },
	OPT_END
};

struct stage_score {
	struct stage s;
	const struct stage_score_opts *o;
	struct stage_shard sh;		/* the current shard */
	struct statedir state;
	struct score *score;
	unsigned char model[16];	/* id of the schema to which score belongs */
	char lesson[56];		/* value of STAGE_SCORE_LESSON; "": none */
	float *x;			/* values of one group */
	size_t cap;
	struct stat read;		/* the trainer's file read last; all 0: none */
	struct stat_group *stat;	/* statistics of consecutive groups of a DATA frame */
	size_t stat_cap;
	struct buf note;
	int scale;			/* 1: the scores precede the data */
	int again;			/* 1: the shard was coded before */
};

/* ---- the history ---- */

/* Check that h, whose file has `what', belongs to the shard's model. */
static int
stage_score_same(const struct stage_score *x, const struct learned *h, const char *what,
    struct err *e)
{
	const char *model = text_get(&h->kv, LEARNED_MODEL);
	char id[33];

	shard_hex(x->model, id);
	return model != NULL && strcmp(model, id) == 0 ? 0 : err_set(e, ERR_DATA,
	    "mismatch: the %s in '%s' is of another model: schema %.32s, but the shard "
	    "has %s (give a new model a new state directory)", what, x->o->dir,
	    model != NULL ? model : "unknown", id);
}

/* If r is -ERR_DATA, add h's file and what to do to the message.  Return r. */
static int
stage_score_damaged(const struct stage_score *x, const struct learned *h, int r, struct err *e)
{
	return r != -ERR_DATA ? r : err_after(e, r, ", in '%s/%s': remove that file", x->o->dir,
	    h->file);
}

static int
stage_score_load(struct stage_score *x, struct err *e)
{
	struct learned h = LEARNED_INIT;
	const char *lesson;
	const float *row;
	unsigned c;
	int r;

	r = x->o->alone && !x->again ? learned_before(&h, &x->state, STAGE_SCORE_FILE,
	    x->sh.shard->step, e) : learned_load(&h, &x->state, STAGE_SCORE_FILE, e);
	if (r <= 0)
		return r;
	r = stage_score_same(x, &h, "score history", e);
	for (c = 0; c < SCORE_COLUMNS && r >= 0; c++)
		if ((r = learned_need(&h, score_columns[c], x->score->n, &row,
		    e)) == 0)
			r = stage_score_damaged(x, &h, score_put_column(x->score, c, row, e), e);
	if ((lesson = text_get(&h.kv, STAGE_SCORE_LESSON)) != NULL)
		(void)snprintf(x->lesson, sizeof(x->lesson), "%s", lesson);
	if (r >= 0 && (r = learned_need(&h, STAGE_SCORE_ROW, SCORE_ALL, &row,
	    e)) == 0)
		r = stage_score_damaged(x, &h, score_put_all(x->score, row, e), e);
	learned_release(&h);
	return r;
}

/* Set x->again if the residual already includes the shard. Then its values were coded before,
 * and the values here may differ from those. */
static int
stage_score_again(struct stage_score *x, struct err *e)
{
	struct residual q;
	int r = residual_open(&q, &x->state, e);

	x->again = r == 0 && q.d.r != NULL && q.step >= x->sh.shard->step;
	residual_close(&q);
	return r;
}

/* Save the history, if there is one.  The history before this step is kept until the next
 * step, because a process that is killed before the shard is coded or sent gets the shard
 * again. */
static int
stage_score_save(struct stage_score *x, struct err *e)
{
	struct learned h = LEARNED_INIT;
	float all[SCORE_ALL];
	char id[33];
	float *row;
	unsigned c;
	int r;

	if (x->o->dir == NULL || x->o->form != SCORE_PAPER || x->score->n == 0)
		return 0;
	if (x->again) {		/* the saved history is up to date */
		score_free(x->score);
		x->score = NULL;
		return 0;
	}
	if ((row = alloc_get(x->score->n, sizeof(*row), e)) == NULL)
		return -ERR_SYS;
	shard_hex(x->model, id);
	if ((r = text_set(&h.kv, LEARNED_MODEL, id, e)) == 0 && x->lesson[0] != '\0')
		r = text_set(&h.kv, STAGE_SCORE_LESSON, x->lesson, e);
	for (c = 0; c < SCORE_COLUMNS && r >= 0; c++) {
		score_get_column(x->score, c, row);
		r = learned_put(&h, score_columns[c], row, x->score->n, e);
	}
	score_get_all(x->score, all);
	if (r >= 0 && (r = learned_put(&h, STAGE_SCORE_ROW, all, SCORE_ALL, e)) >= 0)
		r = learned_save_again(&h, &x->state, STAGE_SCORE_FILE,
		    x->sh.shard, e);
	alloc_free(row);
	learned_release(&h);
	return r;
}

/* Set name to RUN/STEP of h's average, which identifies a lesson. */
static void
stage_score_name(const struct learned *h, char name[56])
{
	shard_hex(h->run, name);
	(void)sprintf(name + strlen(name), "/%llu", (unsigned long long)h->step);
}

/* Return 1 if h is from a later step than the last lesson, or from another run. A device
 * that reconnects gets old averages again. */
static int
stage_score_news(const struct stage_score *x, const struct learned *h)
{
	char name[56];
	size_t n;

	stage_score_name(h, name);
	n = (size_t)(strchr(name, '/') - name);
	return strncmp(x->lesson, name, n + 1) != 0 ||
	    strtoull(x->lesson + n + 1, NULL, 10) < h->step;
}

/* Learn from the feedback about the last average that ace-expand left in the state, unless
 * no shard was scored yet or the last lesson was from this or a later average of the run. */
static int
stage_score_learn(struct stage_score *x, struct err *e)
{
	const size_t n = x->score->n;
	struct learned h = LEARNED_INIT;
	const float *energy;
	int r;

	if (x->o->dir == NULL || x->o->form != SCORE_PAPER ||
	    (r = learned_load(&h, &x->state, LEARNED_FEEDBACK, e)) == 0)
		return 0;
	if (r < 0)
		return r;
	energy = learned_row(&h, LEARNED_ENERGY, n);
	if ((r = stage_score_same(x, &h, "feedback", e)) == 0 && energy == NULL)
		r = err_set(e, ERR_DATA, "corrupt: file 'feedback' in '%s' has no row of "
		    "%zu values, one per group: remove that file", x->o->dir, n);
	else if (r == 0 && x->score->all.shards > 0 && stage_score_news(x, &h) &&
	    (r = stage_score_damaged(x, &h, score_learn(x->score, energy, STAGE_SCORE_RATE,
	    e), e)) == 0)
		stage_score_name(&h, x->lesson);
	learned_release(&h);
	return r;
}

/* ---- what the trainer measured ---- */

/* Set energy to the mean square of each group of r's shard. */
static int
stage_score_energy(struct stage_score *x, struct reader *r, float *energy,
    struct err *e)
{
	struct values v = VALUES_INIT;
	struct stat_group s;
	char why[256];
	size_t i;
	int k;

	if (schema_diff(x->sh.schema, reader_schema(r), why) != 0)
		return err_set(e, ERR_DATA, "mismatch: the shard and the trainer's file have "
		    "different tensors: %s", why);
	if ((k = values_begin(&v, r, e)) < 0)
		goto out;
	while ((k = values_next(&v, e)) > 0) {
		if ((i = stat_group_of(v.x, v.n, &s)) != 0) {
			k = values_refuse(r, v.group, i - 1, e);
			goto out;
		}
		energy[v.group] = v.n > 0 ? s.sumsq / (float)v.n : 0;
	}
out:
	values_release(&v);
	return k;
}

/* Return 1 if a and b describe the same, unchanged file.  A trainer renames new files over it. */
static int
stage_score_known(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	    a->st_size == b->st_size && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	    a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Take the scores from the last shard of the trainer's file. */
static int
stage_score_take(struct stage_score *x, const char *name, struct err *e)
{
	float *energy;
	struct reader *r;
	int k, tells = 0;

	if ((k = reader_file(&r, name, &x->o->f->in, e)) < 0)
		return k;
	energy = alloc_get(x->score->n, sizeof(*energy), e);
	k = energy == NULL ? -ERR_SYS : 0;
	while (k == 0 && (k = reader_to_shard(r, e)) > 0) {
		tells++;
		memset(energy, 0, x->score->n * sizeof(*energy));
		if ((k = stage_score_energy(x, r, energy, e)) == 0)
			k = score_tell(x->score, energy, e);
	}
	if (k == 0 && tells == 0)
		k = err_set(e, ERR_DATA, "mismatch: the trainer's file has no shard");
	alloc_free(energy);
	reader_free(r);
	return k < 0 ? err_file(e, k, name) : 0;
}

/* Before a shard: read the newest file of the trainer, if there is one yet. */
static int
stage_score_reload(struct stage_score *x, struct err *e)
{
	struct stat st;
	char name[STATE_PATH];
	int r = 0;

	if (x->o->dir == NULL || x->o->form != SCORE_MOMENT)
		return 0;
	statedir_path(&x->state, STAGE_SCORE_TOLD, name);
	if (fstatat(AT(name), &st, 0) < 0) {
		if (errno == ENOENT)
			cli_say(x->o->f->cli, 1, "'%s' is absent: all groups have "
			    "the same weight", name);
		else
			r = err_set(e, ERR_SYS, "cannot read '%s': %s", name,
			    strerror(errno));
	} else if (!S_ISREG(st.st_mode))
		r = err_set(e, ERR_DATA, "unsupported: '%s' is not a regular file", name);
	else if (!stage_score_known(&st, &x->read)) {
		/* a new file may reuse the inode, but then has a later time */
		(void)clock_settle(st.st_ctim);
		if ((r = stage_score_take(x, name, e)) == 0)
			x->read = st;
	}
	return r;
}

static void
stage_score_places(const struct schema *sc, struct score_place *p)
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

/* At the first shard of a model, set up its groups and their history. */
static int
stage_score_begin_model(struct stage_score *x, struct err *e)
{
	const struct schema *sc = x->sh.schema;
	struct score_place *p;
	int r;

	if (x->score != NULL && memcmp(x->model, sc->id, 16) == 0)
		return 0;
	score_free(x->score);
	x->score = NULL;
	memset(&x->read, 0, sizeof(x->read));
	x->lesson[0] = '\0';
	memcpy(x->model, sc->id, 16);
	if ((p = alloc_get(sc->ngroups, sizeof(*p), e)) == NULL)
		return -ERR_SYS;
	stage_score_places(sc, p);
	r = score_new(&x->score, x->o->form, p, sc->ngroups, e);
	alloc_free(p);
	if (r < 0 || (r = alloc_grow(&x->x, &x->cap, sc->group_size,
	    sizeof(*x->x), e)) < 0)
		return r;
	x->score->alpha = x->score->power = x->o->number;
	if (x->o->dir == NULL || x->o->form != SCORE_PAPER)
		return 0;
	if (x->o->alone && (r = stage_score_again(x, e)) < 0)
		return r;
	return stage_score_load(x, e);
}

static int
stage_score_put(struct stage_score *x, uint32_t first, uint32_t n, struct err *e)
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
		r = stage_make(x->s.next, FRAME_SCOR, x->note.p, x->note.n, e);
	alloc_free(s);
	return r;
}

/* Write the annotations of the groups from `first' to first + n - 1, before their data. */
static int
stage_score_run(struct stage_score *x, uint32_t first, uint32_t n, struct err *e)
{
	int r;

	x->note.n = 0;
	if ((r = note_put_stats(&x->note, first, x->stat, n, e)) < 0 ||
	    (r = stage_make(x->s.next, FRAME_STAT, x->note.p, x->note.n,
	    e)) < 0)
		return r;
	return x->scale ? stage_score_put(x, first, n, e) : 0;
}

static int
stage_score_observe(struct stage_score *x, const struct stage_data *d, size_t i,
    struct stat_group *s, struct err *e)
{
	struct stage_seen v;
	const int r = stage_finite(d, i, x->sh.in, x->x, x->cap, &v, e);

	if (r < 0)
		return r;
	stat_group_from(v.x, v.n, &v.stat, s);
	score_observe(x->score, d->rec[i].group, s);
	return 0;
}

static int
stage_score_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	struct stage_score *x = (struct stage_score *)s;
	const struct record *rec = d->rec;
	size_t i, from = 0;
	int r;

	if ((r = alloc_grow(&x->stat, &x->stat_cap, d->n, sizeof(*x->stat),
	    e)) < 0)
		return r;
	for (i = 0; i < d->n; i++) {
		if ((r = stage_score_observe(x, d, i, &x->stat[i - from],
		    e)) < 0)
			return r;
		if (i + 1 < d->n && rec[i + 1].group == rec[i].group + 1 &&
		    i + 1 - from < STAGE_SCORE_MOST)
			continue;
		if ((r = stage_score_run(x, rec[from].group,
		    (uint32_t)(i + 1 - from), e)) < 0)
			return r;
		from = i + 1;
	}
	return stage_data(s->next, d, e);
}

static int
stage_score_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	struct stage_score *x = (struct stage_score *)s;
	uint32_t g, n, all = x->sh.schema->ngroups;
	int r;

	score_scale(x->score);
	for (g = 0; !x->scale && g < all; g += n) {
		n = all - g < STAGE_SCORE_MOST ? all - g : STAGE_SCORE_MOST;
		if ((r = stage_score_put(x, g, n, e)) < 0)
			return r;
	}
	r = stage_score_save(x, e);
	return r < 0 ? r : stage_end(s->next, sums, e);
}

/* Drop signatures and an earlier ace-score's annotations, which ours replace. Pass on the
 * others. */
static int
stage_score_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	/* drop the signature: it does not cover our annotations */
	if (n->type == FRAME_STAT || n->type == FRAME_SCOR || n->type == FRAME_SIGN)
		return 0;
	return stage_note(s->next, n, e);
}

static int
stage_score_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	struct stage_score *x = (struct stage_score *)s;
	int r;

	x->sh = *sh;
	if ((r = stage_score_begin_model(x, e)) < 0 ||
	    (r = stage_score_reload(x, e)) < 0 || (r = stage_score_learn(x, e)) < 0)
		return r;
	x->scale = x->score->all.shards >= 1 || x->o->form != SCORE_PAPER;
	return stage_begin(s->next, sh, e);
}

static void
stage_score_free(struct stage *s)
{
	struct stage_score *x = (struct stage_score *)s;

	score_free(x->score);
	alloc_free(x->x);
	alloc_free(x->stat);
	buf_release(&x->note);
	statedir_close(&x->state);
}

static int
stage_score_make(struct stage *s, void *opts, const struct filter *f, struct err *e)
{
	struct stage_score *x = (struct stage_score *)s;
	struct stage_score_opts *o = opts;

	x->state = (struct statedir)STATE_INIT;
	o->f = f;
	x->o = o;
	return o->dir != NULL ? statedir_open(&x->state, o->dir, e) : 0;
}

const struct stage_kind stage_score = {
	.size = sizeof(struct stage_score),
	.values = STAGE_READS,
	.make = stage_score_make,
	.begin = stage_score_begin,
	.data = stage_score_data,
	.note = stage_score_note,
	.end = stage_score_end,
	.free = stage_score_free
};
