/*
 * Measure the time to commit a residual of 25 million parameters and a pending shard of
 * 0.1 % of them: to write, sync and rename the file.  The peer is cp and sync of the same
 * bytes.
 *
 *   bench-commit DIR
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "bench.h"
#include "codec/codec.h"
#include "device/pending.h"
#include "device/residual.h"
#include "kern/kern.h"
#include "unit/model.h"

enum { PARAMS = 25000000, ROUNDS = 5 };

static struct err e = ERR_INIT;

static void
must(int r, const char *what)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "bench-commit: %s: %s\n", what, ERR_MSG(&e));
	exit(4);
}

static double
wall(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int
by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Commit a step: x as the residual of each group; `body', with its parameter, as the record of
 * each full group. Return the seconds.  Exit if `file' has another size than the first time. */
static double
commit(const struct statedir *s, const struct schema *sc, uint64_t step,
    const float *x, const struct buf *body, uint8_t param, const char *file)
{
	static off_t bytes;
	static int scratch = -1;
	struct stat st;
	struct residual_new *n;
	struct pending p = { .n = 0 };
	struct residual old;
	struct writer *w;
	struct kern_stat seen;
	struct schema_span span;
	struct shard sh;
	double start = wall();
	uint32_t g;

	shard_init(&sh);
	sh.step = step;
	must(shard_set_device(&sh, "edge1", &e), "device");
	must(residual_open(&old, s, &e), "residual");
	if (scratch < 0)
		must(temp_open(s->dir, &scratch, &e), "scratch");
	must(residual_begin(&n, s, scratch, &sh, NULL, sc, &e), "begin");
	for (g = 0; g < sc->ngroups; g++) {
		schema_span(sc, g, &span);
		kern_get(&e)->stat(x, span.n, &seen);
		if (span.n == SCHEMA_GROUP)
			must(writer_record(residual_writer(n), g, CODEC_TOPK, param,
			    body->p, body->n, x, span.n, &e), "record");
		must(residual_put(n, g, x, span.n, &seen, &e), "put");
	}
	must(residual_whole(n, &w, &e), "whole");
	must(pending_copy(&p, &old, w, UINT64_MAX, &e), "copy");
	must(residual_commit(n, IO_SYNC_FULL, &e), "commit");
	residual_free(n);
	residual_close(&old);
	shard_release(&sh);
	start = wall() - start;
	if (stat(file, &st) < 0 || (bytes != 0 && st.st_size != bytes)) {
		(void)fprintf(stderr, "bench-commit: step %d: not as much as "
		    "the first\n", (int)step);
		exit(1);
	}
	bytes = st.st_size;
	return start;
}

/* Copy a file and sync the copy. Return the seconds; set *bytes to the file's size. */
static double
copy(const char *from, const char *to, double *bytes)
{
	static char b[1 << 17];
	double start = wall();
	int in = open(from, O_RDONLY), out;
	ssize_t k;

	(void)unlink(to);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	*bytes = 0;
	while ((k = read(in, b, sizeof(b))) > 0) {
		if (write(out, b, (size_t)k) != k)
			exit(4);
		*bytes += (double)k;
	}
	if (k < 0 || fsync(out) < 0 || close(out) < 0 || close(in) < 0)
		exit(4);
	return wall() - start;
}

int
main(int argc, char **argv)
{
	static float x[SCHEMA_GROUP];
	struct codec_plan plan;
	struct codec_ctx ctx = { 0 };
	struct statedir s = STATE_INIT;
	struct buf body = BUF_INIT;
	struct schema sc;
	char path[512], from[512], to[512];
	double a[ROUNDS], b[ROUNDS], ratio[ROUNDS], bytes = 0;
	uint8_t param;
	uint64_t i;
	uint32_t r[4];

	if (argc != 2)
		return 2;
	for (i = 0; i < SCHEMA_GROUP; i++) {
		rng_block(1, 0, 0, (uint32_t)i, r);
		x[i] = rng_unit(r[0]) - 0.5f;
	}
	sc = model_of(PARAMS, 0, 0);
	(void)snprintf(path, sizeof(path), "%.400s/commit", argv[1]);
	(void)snprintf(from, sizeof(from), "%.450s/residual", path);
	(void)snprintf(to, sizeof(to), "%.450s/copy", path);
	must(statedir_open(&s, path, &e), path);
	must(statedir_lock(&s, STATE_LOCK, &e), path);
	must(codec_parse("topk:0.001", &plan, &e), "codec");
	ctx.cols = SCHEMA_GROUP;
	must(codec_encode(&plan, &ctx, x, SCHEMA_GROUP, &body, &param, &e),
	    "encode");
	(void)commit(&s, &sc, 0, x, &body, param, from);	/* a file to replace */
	for (i = 0; i < ROUNDS; i++) {
		a[i] = commit(&s, &sc, i + 1, x, &body, param, from);
		b[i] = copy(from, to, &bytes);
		ratio[i] = a[i] / b[i];
	}
	qsort(a, ROUNDS, sizeof(*a), by_size);
	qsort(b, ROUNDS, sizeof(*b), by_size);
	qsort(ratio, ROUNDS, sizeof(*ratio), by_size);
	(void)printf("commit of %d parameters, %.0f MB: %.0f ms; cp and sync "
	    "of the same bytes: %.0f ms\n", PARAMS, bytes / 1e6,
	    1e3 * a[ROUNDS / 2], 1e3 * b[ROUNDS / 2]);
	goal("  commit / cp and sync", ratio[ROUNDS / 2], 1, 2, "");
	buf_release(&body);
	schema_release(&sc);
	statedir_close(&s);
	return 0;
}
