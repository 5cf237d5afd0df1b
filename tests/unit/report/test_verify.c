/* A shard whose end record has other sums than its values, with valid checksums: verify
 * fails and names the sum. */
#include "base/err.h"
#include "base/io.h"
#include "kern/kern.h"
#include "report/report.h"
#include "report/verify.h"
#include "format/writer.h"

#include "../test.h"
#include "../model.h"
#include "../../memory.h"

static struct err e;

/* Verify a shard of 1, -2, 0, 4 with these sums (NULL: the right ones) in its end record.
 * *text becomes the report, which the caller frees. Return verify_file's result. */
static int
verify(const struct shard_sums *sums, char **text)
{
	static const float x[] = { 1, -2, 0, 4 };
	struct writer_opts o = { "test", NULL, 0, 0 };
	struct schema sc = model_of(4, 0, 0);
	const unsigned char *p;
	struct writer *w;
	struct report rep;
	struct shard s;
	struct io *io, *in = NULL;
	struct reader *r = NULL;
	size_t n, size;
	FILE *f;
	int k;

	shard_init(&s);
	err_clear(&e);
	(void)memory_create(&io, &e);
	(void)writer_open(&w, io, &o, &e);
	(void)writer_shard(w, &s, &sc, &e);
	(void)writer_values(w, 0, x, 4, &e);
	(void)writer_send(w, sums, &e);
	(void)writer_finish(w, &e);
	p = learned_of(io, &n);
	f = open_memstream(text, &size);
	report_init(&rep, f, kern_list()[0]);
	(void)memory_open(&in, p, n, &e);
	k = reader_open(&r, in, NULL, &e);
	rep.io = in;
	if (k == 0)
		k = verify_file(&rep, r, &e);
	reader_free(r);
	(void)fclose(f);
	writer_free(w);
	schema_release(&sc);
	return k;
}

static void
no(const struct shard_sums *s, const char *what)
{
	char *text;

	ok(verify(s, &text) == -ERR_NO && strstr(ERR_MSG(&e), what) != NULL &&
	    strstr(ERR_MSG(&e), "shard 1 ") != NULL && text[0] == '\0', "%s", ERR_MSG(&e));
	free(text);
}

TEST(test_verify)
{
	struct shard_sums good = { 3, 0, 3, 21, 4 }, s;
	char *text;

	ok(verify(NULL, &text) == 0 && strstr(text, ": ok, 1 shards, ") != NULL,
	    "as the writer sums: %s", ERR_MSG(&e));
	free(text);
	ok(verify(&good, &text) == 0, "3 values, sum 3, 21, 4: %s", ERR_MSG(&e));
	free(text);
	s = good;
	s.sum = 3 + 1e-14;
	ok(verify(&s, &text) == 0, "summed in another order: %s", ERR_MSG(&e));
	free(text);
	s = good;
	s.nonzero = 4;
	ok(verify(&s, &text) == -ERR_DATA && strstr(ERR_MSG(&e), "nonzero") != NULL,
	    "%s", ERR_MSG(&e));	/* decoders refuse it as well */
	free(text);
	s = good;
	s.sum = 3 + 1e-9;
	no(&s, "the sum of the values is");
	s = good;
	s.sumsq = 21.00001;
	no(&s, "squares");
	s = good;
	s.max_abs = 4.5f;
	no(&s, "largest");
	s = good;
	s.sum = (double)__builtin_nanf("");
	no(&s, "the sum of the values is");
}
