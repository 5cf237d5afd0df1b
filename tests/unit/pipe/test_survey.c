
#include "../tap.h"
#include "../model.h"
#include "base/err.h"
#include "format/note.h"
#include "pipe/survey.h"
#include "format/writer.h"

enum { N = 64 };

static float x[2][N];

/* Survey a shard of two groups with one annotation. */
static int
survey(struct survey *s, uint32_t type, const void *p, size_t n, struct err *e)
{
	struct writer_opts o = { "test", NULL, 0 };
	struct schema sc = model_of(2 * N, 0, N);
	struct writer *w = NULL;
	struct reader *r = NULL;
	struct io *out = NULL, *in = NULL;
	const unsigned char *bytes;
	struct shard sh;
	size_t len;
	int k;

	shard_init(&sh);
	if ((k = io_create_mem(&out, e)) < 0 ||
	    (k = writer_open(&w, out, &o, e)) < 0 ||
	    (k = writer_shard(w, &sh, &sc, e)) < 0 ||
	    (k = writer_values(w, 0, x[0], N, e)) < 0 ||
	    (k = writer_values(w, 1, x[1], N, e)) < 0 ||
	    (k = writer_note(w, type, p, n, e)) < 0 ||
	    (k = writer_send(w, NULL, e)) < 0 ||
	    (k = writer_finish(w, e)) < 0)
		goto out;
	bytes = io_mem(out, &len);
	if ((k = io_open_mem(&in, bytes, len, e)) < 0 ||
	    (k = reader_open(&r, in, NULL, e)) < 0 ||
	    (k = survey_begin(s, &sc, r, e)) < 0)
		goto out;
	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_DATA) {
			survey_sent(s, 0);
			survey_sent(s, 1);
		}
		if (k == READER_NOTE && (k = survey_note(s,
		    reader_frame(r)->type, reader_frame(r)->raw,
		    reader_frame(r)->raw_len, reader_frame(r)->wire_len,
		    e)) < 0)
			break;
	}
out:
	reader_free(r);
	writer_free(w);
	schema_release(&sc);
	shard_release(&sh);
	return k;
}

static int
lacks(const struct survey *s)
{
	return survey_lacks(s, 0) || survey_lacks(s, 1);
}

static int
stats(struct survey *s, const struct stat_group *g, uint32_t n, struct err *e)
{
	struct buf b = BUF_INIT;
	int k;

	*e = (struct err)ERR_INIT;
	if ((k = note_put_stats(&b, 0, g, n, e)) == 0)
		k = survey(s, FRAME_STAT, b.p, b.n, e);
	buf_release(&b);
	return k;
}

/* Valid statistics with one wrong field at a time. */
static void
lies(struct survey *s, const struct stat_group good[2])
{
	static const char *const what[] = { "n", "nonzero", "hist", "sumsq nan",
	    "sumsq negative", "max_abs inf", "sumabs negative", "sum nan",
	    "max_abs zero", "top bin empty" };
	struct stat_group g[2];
	struct err e;
	size_t i;
	int k;

	for (i = 0; i < sizeof(what) / sizeof(*what); i++) {
		memcpy(g, good, sizeof(g));
		switch (i) {
		case 0: g[1].n = 63; break;
		case 1: g[1].nonzero++; break;
		case 2: g[1].hist[7] += 1000; break;
		case 3: g[1].sumsq = NAN; break;
		case 4: g[1].sumsq = -1; break;
		case 5: g[1].max_abs = INFINITY; break;
		case 6: g[1].sumabs = -1; break;
		case 7: g[1].sum = NAN; break;
		case 8: g[1].max_abs = 0; break;
		default:
			g[1].hist[9] += g[1].hist[0];
			g[1].hist[0] = 0;
		}
		k = stats(s, g, 2, &e);
		ok(k == -ERR_DATA && strncmp(ERR_MSG(&e), "corrupt: the statistics of "
		    "group 1 are not valid", 41) == 0, "%s: %s", what[i], ERR_MSG(&e));
	}
}

static void
scores(struct survey *s)
{
	static const float bad[][2] = { { 0.5f, 1.5f }, { -0.1f, 0 },
	    { NAN, 0 } };
	float good[2] = { 0.25f, 0.75f };
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	size_t i;
	int k;

	(void)note_put_scores(&b, 0, good, 2, &e);
	k = survey(s, FRAME_SCOR, b.p, b.n, &e);
	ok(k == 0 && s->score[1] == 0.75f && lacks(s),
	    "scores; the statistics are still lacking");
	for (i = 0; i < 3; i++) {
		b.n = 0;
		(void)note_put_scores(&b, 0, bad[i], 2, &e);
		e = (struct err)ERR_INIT;
		ok(survey(s, FRAME_SCOR, b.p, b.n, &e) == -ERR_DATA,
		    "%s", ERR_MSG(&e));
	}
	buf_release(&b);
}

int
main(void)
{
	static const char lines[] = "budget_bytes=100\nratio=7\n";
	struct survey s = SURVEY_INIT;
	struct stat_group good[2];
	struct err e = ERR_INIT;
	size_t i;

	for (i = 0; i < N; i++) {
		x[0][i] = 0;
		x[1][i] = (float)i - 20;
	}
	(void)stat_group_of(x[0], N, &good[0]);
	(void)stat_group_of(x[1], N, &good[1]);
	ok(stats(&s, good, 2, &e) == 0 && !lacks(&s) &&
	    s.stat[1].nonzero == 63 && s.score[1] == 1, "statistics %s", ERR_MSG(&e));
	ok(stats(&s, good, 1, &e) == 0 && lacks(&s),
	    "of one group only: one lacks");
	ok(survey_values(&s, 1, x[1], N) == 0 && !lacks(&s),
	    "made from its values");
	lies(&s, good);
	scores(&s);
	ok(survey(&s, FRAME_POLI, lines, strlen(lines), &e) == 0 &&
	    strcmp(text_get(&s.policy, "ratio"), "7") == 0 &&
	    s.notes == 64 + 32, "policy; its frame stays");
	survey_release(&s);
	return done_testing();
}
