/* Code by plans with a budget: complete or in parts, before or after the values, or wrong. */
#include "../test.h"
#include "../model.h"
#include "../../memory.h"
#include "base/err.h"
#include "base/rng.h"
#include "format/annotation.h"
#include "format/frame.h"
#include "format/reader.h"
#include "format/writer.h"
#include "stage/stage_compress.h"
#include "stage/stage_expand.h"

enum { N = 6, SIZE = 2048, BUDGET = 4000 };

static struct schema schema = SCHEMA_INIT;
static float x[N][SIZE];
static unsigned char out[1 << 17];

static void
model(void)
{
	uint32_t r[4], g, i;

	schema = model_of(N * SIZE, 0, SIZE);
	for (g = 0; g < N; g++)
		for (i = 0; i < SIZE; i++) {
			rng_block(3, 0, g, i, r);
			x[g][i] = (float)((double)r[0] + r[1] - 0x1p32) *
			    (float)(g + 1) * 0x1p-33f;
		}
}

/* Open a reader of a stream with an empty shard, and read up to the shard. */
static void
stand(struct reader **r)
{
	struct writer_opts o = { "test", NULL, 0, 0 };
	static unsigned char copy[4096];
	const unsigned char *p;
	struct shard shard;
	struct writer *w;
	struct io *io, *in;
	size_t n;

	shard_init(&shard);
	(void)memory_create(&io, NULL);
	(void)writer_open(&w, io, &o, NULL);
	(void)writer_shard(w, &shard, &schema, NULL);
	(void)writer_send(w, NULL, NULL);
	(void)writer_finish(w, NULL);
	p = learned_of(io, &n);
	memcpy(copy, p, n < sizeof(copy) ? n : 0);
	writer_free(w);
	shard_release(&shard);
	(void)memory_open(&in, copy, n, NULL);
	(void)reader_open(r, in, NULL, NULL);
	while (reader_next(*r, NULL) > 0 && reader_shard(*r) == NULL)
		continue;
}

/* Plan every second group as q8, 2 KiB each, with a budget in which two of these three fit. */
static void
plan_fixed(struct codec_plan *plan, struct note_terms *terms)
{
	int g;

	for (g = 0; g < N; g += 2)
		plan[g] = (struct codec_plan){ CODEC_Q8, 0, 0 };
	terms->budget = BUDGET + 1000;
}

/* Return the groups in the output, as digits. */
static const char *
sent(size_t len)
{
	static char word[N + 1];
	const struct record *rec;
	struct reader *r = NULL;
	struct io *in;
	size_t n, i, k = 0;
	int event;

	(void)memory_open(&in, out, len, NULL);
	(void)reader_open(&r, in, NULL, NULL);
	while ((event = reader_next(r, NULL)) > 0)
		if (event == READER_DATA)
			for (rec = reader_records(r, &n), i = 0; i < n &&
			    k < N; i++)
				word[k++] = (char)('0' + rec[i].group);
	word[k] = '\0';
	reader_free(r);
	return word;
}

static int
group(struct stage *s, uint32_t g, struct err *e)
{
	struct kern_stat seen;

	kern_list()[0]->stat(x[g], SIZE, &seen);
	return stage_values(s, g, x[g], SIZE, &seen, 1, e);
}

/* Feed a shard's events in order: "0" to "5" a group's values; "p" the plan, "q" and "r" its
 * halves, "Q" the first with another budget, "R" the second with none; "P" a plan with one
 * group too many; "f" a plan with q8, which has no rate, for every second group. Return the
 * error; out[*len] is the output. */
static int
run(const char *what, size_t *len, struct err *e)
{
	struct writer_opts wo = { "test", NULL, 0, 0 };
	struct stage_compress_opts o = STAGE_COMPRESS_INIT;
	const struct cli c = { .prog = "test" };
	struct filter f;
	struct note_terms terms = { BUDGET, 1 };
	const struct shard_sums sums = { 0, 0, 0, 0, 0 };
	struct codec_plan plan[N + 1];
	struct stage_shard sh = { 0 };
	struct buf note = BUF_INIT;
	struct stage *s = NULL;
	struct shard shard;
	struct reader *in = NULL;
	struct writer *w = NULL;
	struct io *io;
	const unsigned char *p;
	uint32_t g, from, n;
	int r;

	*e = (struct err)ERR_INIT;
	shard_init(&shard);
	(void)memory_create(&io, NULL);
	(void)writer_open(&w, io, &wo, NULL);
	for (g = 0; g <= N; g++)
		plan[g] = (struct codec_plan){ CODEC_ECQ, 0, 0.1f };
	sh.shard = &shard;
	sh.schema = &schema;
	sh.provenance = "";
	stand(&in);
	sh.in = in;
	filter_init(&f, &c, NULL);
	if ((r = stage_new(&s, &stage_compress, &o, &f, e)) < 0)
		return r;
	stage_compress_to(s, w);
	r = stage_begin(s, &sh, e);
	for (; *what != '\0' && r == 0; what++) {
		if (*what >= '0' && *what < '0' + N) {
			r = group(s, (uint32_t)(*what - '0'), e);
			continue;
		}
		note.n = 0;
		from = strchr("rR", *what) != NULL ? N / 2 : 0;
		n = *what == 'P' ? N + 1 : strchr("pf", *what) != NULL ? N :
		    N / 2;
		terms.budget = *what == 'Q' ? BUDGET + 64 :
		    *what == 'R' ? 0 : BUDGET;
		if (*what == 'f')
			plan_fixed(plan, &terms);
		(void)note_put_plan(&note, from, plan, n, &terms, NULL);
		r = stage_make(s, FRAME_PLAN, note.p, note.n, e);
	}
	if (r == 0 && (r = stage_end(s, &sums, e)) == 0)
		r = stage_finish(s, e);
	p = learned_of(io, len);
	memcpy(out, p, *len < sizeof(out) ? *len : 0);
	stage_free(s);
	reader_free(in);
	buf_release(&note);
	shard_release(&shard);
	return r;
}

/* Return what a run with these events prints on standard error. */
static const char *
told(const char *what)
{
	static char said[256];
	const int was = dup(STDERR_FILENO);
	FILE *f = tmpfile();
	struct err e;
	size_t len, n;

	if (f == NULL || dup2(fileno(f), STDERR_FILENO) < 0)
		return "no file";
	(void)run(what, &len, &e);
	(void)dup2(was, STDERR_FILENO);
	(void)close(was);
	rewind(f);
	n = fread(said, 1, sizeof(said) - 1, f);
	said[n] = '\0';
	(void)fclose(f);
	return said;
}

/* The defaults are those of ace-compress(1) and ace-expand(1). */
static void
defaults(void)
{
	struct stage_compress_opts c = STAGE_COMPRESS_INIT;
	struct stage_expand_opts y = { 0 };

	ok(opt_defaults(stage_compress_rows, &c, NULL) == 0 &&
	    opt_defaults(stage_expand_rows, &y, NULL) == 0, "defaults");
	ok(c.fb.wait == 60 && y.wait == 60, "60 seconds for a receipt, and for "
	    "the step before");
	ok(c.fb.gamma == 1 && c.fb.decay == 0.9 && y.gamma == 1, "factors of error feedback");
}

static void
refused(const char *what, int status, const char *why)
{
	struct err e;
	size_t len;
	int r = run(what, &len, &e);

	ok(r == -status && strstr(ERR_MSG(&e), why) != NULL, "%s: %s", what,
	    ERR_MSG(&e));
}

TEST(test_plans)
{
	static const char *const same[] = { "p012345", "012p345", "012345qr",
	    "q0123r45", "012345rq" };
	static unsigned char first[sizeof(out)];
	struct note_wait wait = NOTE_WAIT_INIT;
	struct buf note = BUF_INIT;
	struct err e;
	size_t len, was, i;
	int r;

	model();
	r = run("012345p", &was, &e);
	memcpy(first, out, sizeof(out));
	/* 600: room for HEAD, schema and tail */
	ok(r == 0 && was > BUDGET && was < BUDGET + 600, "the budget is met: "
	    "%zu bytes %s", was, ERR_MSG(&e));
	for (i = 0; i < sizeof(same) / sizeof(*same); i++) {
		r = run(same[i], &len, &e);
		ok(r == 0 && len == was && memcmp(out, first, len) == 0,
		    "%s: the same bytes %s", same[i], ERR_MSG(&e));
	}
	/* if the shard cannot fit, groups with the least energy per byte are left out first */
	r = run("012345f", &len, &e);
	ok(r == 0 && strcmp(sent(len), "24") == 0, "of three without a rate "
	    "two are sent: %s %s", sent(len), ERR_MSG(&e));
	for (i = 0; i < SIZE; i++)
		x[4][i] *= 0x1p-20f;
	r = run("012345f", &len, &e);
	ok(r == 0 && strcmp(sent(len), "02") == 0, "two others: %s %s",
	    sent(len), ERR_MSG(&e));
	for (i = 0; i < SIZE; i++)
		x[4][i] *= 0x1p20f;
	ok(strcmp(told("012345f"), "test: shard '(none)/0': a budget of 5000 bytes is too small: "
	    "groups of the plan that are not sent: 1, and without -S they are lost\n") == 0,
	    "and it is said");
	ok(told("012345p")[0] == '\0', "no message if all groups fit");
	defaults();
	refused("012345qR", ERR_DATA, "two budgets, ");
	refused("012345Qr", ERR_DATA, "two budgets, ");
	refused("012345R", ERR_DATA, "no plan for group 0");
	refused("012345q", ERR_DATA, "no plan for group 3");
	refused("012345", ERR_USAGE, "has no plan: put");
	refused("01245p", ERR_DATA, "no values despite a plan for group 3");
	refused("P", ERR_DATA, "first group 0 plus number of groups 7 in the plan exceeds 6, ");
	r = note_put_plan(&note, 0, NULL, 0, NULL, &e);
	ok(r == 0 && note_wait_add(&wait, note.p, note.n, N, &e) == 0 && wait.any &&
	    wait.n == 0, "an empty plan leaves nothing to search");
	buf_release(&note);
	schema_release(&schema);
}
