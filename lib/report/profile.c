#include <math.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/keys.h"
#include "format/reader.h"
#include "report/profile.h"

struct profile {
	struct schema sc;		/* of the first shard */
	uint64_t shards, timed;
	double *bytes, *seconds;	/* sums, by row: the first layer first */
	double *v;			/* of this shard, if they were heard */
	unsigned heard;
};

static int
profile_shard(struct profile *x, const struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	char why[256];
	size_t i;

	if (x->shards++ == 0) {
		x->bytes = alloc_get(sc->n, sizeof(*x->bytes), e);
		x->seconds = alloc_get(sc->n, sizeof(*x->seconds), e);
		x->v = alloc_get(sc->n, sizeof(*x->v), e);
		if (x->bytes == NULL || x->seconds == NULL || x->v == NULL ||
		    schema_copy(&x->sc, sc, e) < 0)
			return -ERR_SYS;
		for (i = 0; i < sc->n; i++)
			x->bytes[i] = x->seconds[i] = 0;
	} else if (schema_diff(&x->sc, sc, why) != 0) {
		return reader_place(r, err_set(e, ERR_DATA, "mismatch: %s",
		    why), e);
	}
	x->heard = 0;
	return 0;
}

static void
profile_send(struct profile *x)
{
	size_t i;

	x->timed += x->heard;
	for (i = 0; i < x->sc.n && x->heard; i++)
		x->seconds[i] += x->v[i];
}

static void
profile_data(struct profile *x, const struct reader *r)
{
	struct schema_span span;
	const struct record *rec;
	size_t i, n;

	rec = reader_records(r, &n);
	for (i = 0; i < n; i++) {
		schema_span(&x->sc, rec[i].group, &span);
		x->bytes[x->sc.n - 1 - span.tensor] += (double)rec[i].len;
	}
}

/* A name is one cell. */
static void
profile_name(FILE *f, const char *s)
{
	for (; *s != '\0'; s++)
		(void)fputc((unsigned char)*s <= ' ' || *s == 127 || *s == '#' ?
		    '?' : *s, f);
}

int
profile_print(FILE *f, struct reader *r, struct err *e)
{
	struct profile x = { .sc = SCHEMA_INIT };
	size_t i;
	int k;

	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_SHARD && (k = profile_shard(&x, r, e)) < 0)
			break;
		if (k == READER_DATA)
			profile_data(&x, r);
		if (k == READER_SEND)
			profile_send(&x);
		if (k != READER_NOTE || reader_frame(r)->type != FRAME_TIME)
			continue;
		if ((k = keys_times(reader_frame(r)->raw,
		    reader_frame(r)->raw_len, x.sc.n, x.v, e)) < 0) {
			k = reader_place(r, k, e);
			break;
		}
		x.heard = 1;
	}
	if (k == 0 && x.timed == 0)
		k = err_set(e, ERR_DATA, "unsupported: no shard of '%s' says "
		    "what its tensors took",
		    reader_name(r));
	if (k == 0)
		(void)fputs("layer\tbytes\tbc\n", f);
	for (i = 0; k == 0 && i < x.sc.n; i++) {
		profile_name(f, x.sc.t[x.sc.n - 1 - i].name);
		(void)fprintf(f, "\t%.0f\t%.9f\n", x.bytes[i] /
		    (double)x.shards, fmax(x.seconds[i] / (double)x.timed,
		    1e-9));
	}
	schema_release(&x.sc);
	alloc_free(x.bytes);
	alloc_free(x.seconds);
	alloc_free(x.v);
	return k;
}
