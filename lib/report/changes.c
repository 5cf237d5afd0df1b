#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "files/dtype.h"
#include "pipe/pick.h"
#include "report/changes.h"
#include "report/report.h"

/* A line for one tensor, for all tensors of one type, or for all tensors. */
struct row {
	const char *name, *dtype;
	uint64_t changed, values, bytes;
	double percent, bits;	/* changed values in % of all; coded bits per value */
};

enum { LINE = 1, OBJECT = 2, COUNTED = 1 };	/* COUNTED: the changed values are counted */
#define FIELD(field, what, member, where, ...) { .name = (field), \
	.type = RENDER_##what, .at = offsetof(struct row, member), .in = (where), __VA_ARGS__ }
static const struct render_field changes_fields[] = {
	FIELD("name", NAME, name, LINE | OBJECT, .head = "changed", .width = -RENDER_WIDE),
	FIELD("dtype", NAME, dtype, LINE | OBJECT, .width = -6),
	FIELD("changed", U64, changed, LINE | OBJECT, .head = "values", .width = 12,
	    .need = COUNTED),
	FIELD("%", F64, percent, LINE, .width = 9, .text = "%.4f", .need = COUNTED),
	FIELD("values", U64, values, LINE | OBJECT, .head = "of", .width = 12),
	FIELD("bytes", U64, bytes, OBJECT, .width = 0),
	FIELD("bits_per_value", F64, bits, LINE | OBJECT, .head = "bits/value", .width = 10,
	    .text = "%.4f"),
	{ .name = NULL }
};

int
changes_begin(struct changes *c, const struct reader *r, struct err *e)
{
	const size_t n = reader_schema(r)->n;

	if (reader_shard(r)->kind != SHARD_MODEL)
		return 0;
	c->sent = alloc_get(n, sizeof(*c->sent), e);
	c->changed = c->sent != NULL ? alloc_get(n, sizeof(*c->changed), e) : NULL;
	return c->changed != NULL ? 0 : -ERR_SYS;
}

void
changes_release(struct changes *c)
{
	alloc_free(c->sent);
	alloc_free(c->changed);
	model_note_release(&c->note);
	*c = (struct changes)CHANGES_INIT;
}

/* Return the number of values, where two values of 4 bits count as one. */
static uint64_t
changes_values(const struct schema_tensor *t)
{
	return dtype_size(t->dtype) != 0 ? t->numel : t->numel / 2;
}

int
changes_note(struct changes *c, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	const struct schema *sc = reader_schema(r);
	struct bytes b;
	uint64_t values, n;
	size_t i;
	uint32_t k;
	int bad;

	if ((bad = model_note_decode(&c->note, f->raw, f->raw_len, e)) < 0)
		return reader_place(r, bad, e);
	b = (struct bytes)BYTES(c->note.changed.p, c->note.changed.n);
	bad = c->known || c->sent == NULL ||
	    (b.n > 0 && !shard_is_patch(reader_shard(r)));
	c->known = 1;
	for (i = 0; i < sc->n && b.n > 0 && !bad; i++) {
		values = changes_values(&sc->t[i]);
		for (k = 0; k < c->sent[i].groups; k++) {
			n = bytes_varint(&b);
			if (n > values - c->changed[i])
				return reader_place(r, err_set(e, ERR_DATA, "corrupt: frame mODL "
				    "counts more changes than the %llu values of tensor '%.160s'",
				    (unsigned long long)values, sc->t[i].name), e);
			c->changed[i] += n;
		}
	}
	return !bad && !b.bad && b.at == b.n ? 0 : reader_place(r, err_set(e,
	    ERR_DATA, "corrupt: frame mODL, which names a patch's models, comes "
	    "twice, has wrong counts, or is in a shard that is not a patch"), e);
}

static double
changes_share(uint64_t k, uint64_t n)
{
	return n > 0 ? (double)k / (double)n : 0;
}

/* Print a row as a line or, in JSON, as an object; members 1: only the object's members.
 * counted 1: the changed values are known. */
static void
changes_line(struct report *p, struct row *x, int counted, int members)
{
	x->percent = 100 * changes_share(x->changed, x->values);
	x->bits = 8 * changes_share(x->bytes, x->values);
	if (members && p->s.form == RENDER_JSON)
		render_row(&p->s, changes_fields, x, counted ? COUNTED : 0);
	else
		render_item(&p->s, changes_fields, x, counted ? COUNTED : 0);
}

static void
changes_add(struct row *to, const struct row *x)
{
	to->changed += x->changed;
	to->values += x->values;
	to->bytes += x->bytes;
}

static struct row
changes_row(const struct changes *c, const struct schema *sc, size_t i)
{
	return (struct row){ sc->t[i].name, schema_dtype_name(sc->t[i].dtype),
	    c->changed[i], changes_values(&sc->t[i]), c->sent[i].bytes, 0, 0 };
}

static void
changes_models(const struct changes *c, struct report *p)
{
	char before[MODEL_HEX] = "nothing", after[MODEL_HEX];
	unsigned char none[MODEL_HASH] = { 0 };
	const int given = memcmp(c->note.before, none, MODEL_HASH) != 0;

	if (given)
		shard_hex(c->note.before, before);
	shard_hex(c->note.after, after);
	if (p->s.form != RENDER_JSON) {
		(void)fprintf(p->s.f, "%-13s from %s to %s\n", "models", before,
		    after);
		return;
	}
	json_out_open(&p->s.json, "patch", '{');
	if (given)
		json_out_string(&p->s.json, "before", before);
	json_out_string(&p->s.json, "after", after);
}

static void
changes_tensors(const struct changes *c, struct report *p, const struct schema *sc,
    int counted)
{
	struct row x;
	size_t i;

	render_open(&p->s, "tensors", '[');
	render_head(&p->s, changes_fields);
	for (i = 0; i < sc->n; i++) {
		if (!pick_tensor(p->glob, sc->t[i].name) || c->sent[i].groups == 0)
			continue;
		x = changes_row(c, sc, i);
		changes_line(p, &x, counted, 0);
	}
	render_close(&p->s);
}

/* Print a line per type, and one for all types. */
static void
changes_types(const struct changes *c, struct report *p, const struct schema *sc,
    int counted)
{
	const int json = p->s.form == RENDER_JSON;
	struct row type[SCHEMA_NDTYPE], x;
	struct row all = { .name = json ? NULL : "all", .dtype = json ? NULL : "" };
	size_t i;

	memset(type, 0, sizeof(type));
	for (i = 0; i < sc->n; i++) {
		if (!pick_tensor(p->glob, sc->t[i].name))
			continue;
		x = changes_row(c, sc, i);
		type[sc->t[i].dtype].name = all.name;
		type[sc->t[i].dtype].dtype = x.dtype;
		changes_add(&type[sc->t[i].dtype], &x);
		changes_add(&all, &x);
	}
	render_open(&p->s, "dtypes", '[');
	for (i = 0; i < SCHEMA_NDTYPE; i++)
		if (type[i].dtype != NULL)
			changes_line(p, &type[i], counted, 0);
	render_close(&p->s);
	changes_line(p, &all, counted, 1);
}

void
changes_put(const struct changes *c, struct report *p, const struct schema *sc)
{
	const int counted = c->note.n == 0 || c->note.changed.n != 0;
	int wide = (int)sizeof("changed") - 1, n;
	size_t i;

	if (!c->known)
		return;
	for (i = 0; i < sc->n; i++)
		if (pick_tensor(p->glob, sc->t[i].name) && c->sent[i].groups != 0 &&
		    (n = render_chars(sc->t[i].name)) > wide)
			wide = n;
	p->s.wide[0] = wide;
	p->s.in = p->s.form == RENDER_JSON ? OBJECT : LINE;
	changes_models(c, p);
	changes_tensors(c, p, sc, counted);
	changes_types(c, p, sc, counted);
	render_close(&p->s);
}
