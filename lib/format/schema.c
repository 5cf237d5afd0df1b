#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "format/schema.h"
#include "format/text.h"

enum { SCHEMA_HEAD = 32, SCHEMA_ENTRY = 40 };

static const char *const dtype_names[] = {
	"f32", "f16", "bf16", "f64", "i32", "i64", "u8", "bool", "f8e4m3",
	"f8e5m2", "i8", "i16", "f8e8m0", "f4", "u16", "u32", "u64"
};
static const char *const kind_names[] = {
	"other", "weight", "bias", "norm", "embedding", "conv"
};

const char *
schema_dtype_name(unsigned dtype)
{
	return dtype < SCHEMA_NDTYPE ? dtype_names[dtype] : "?";
}

const char *
schema_kind_name(unsigned kind)
{
	return kind < SCHEMA_NKIND ? kind_names[kind] : "?";
}

static int
schema_numel(struct schema_tensor *t, uint64_t base, struct err *e)
{
	uint64_t n = 1;
	unsigned i;

	/* if one dimension is zero, the product is zero: look for a zero first, because
	 * the product of the others may overflow */
	for (i = 0; i < t->ndim; i++)
		if (t->dim[i] == 0)
			n = 0;
	for (i = 0; i < t->ndim && n != 0; i++) {
		if (t->dim[i] > SCHEMA_MAX_TOTAL / n)
			return err_set(e, ERR_DATA,
			    "limit: tensor '%s' has more than 2^40 elements", t->name);
		n *= t->dim[i];
	}
	if (n > SCHEMA_MAX_TOTAL - base)
		return err_set(e, ERR_DATA, "limit: tensor '%s' raises the total to more "
		    "than 2^40 elements", t->name);
	t->numel = n;
	t->base = base;
	return 0;
}

static int
schema_check(const struct schema_tensor *t, struct err *e)
{
	size_t len = strlen(t->name);

	if (len == 0 || len > SCHEMA_MAX_NAME || !text_clean(t->name, len))
		return err_set(e, ERR_DATA,
		    "unsupported: tensor name '%.64s%s': expected 1 to 255 bytes of "
		    "UTF-8 without control characters", t->name, len > 64 ? "..." : "");
	if (t->ndim > SCHEMA_MAX_DIM)
		return err_set(e, ERR_DATA,
		    "limit: tensor '%s' has %u dimensions, expected at most %d",
		    t->name, t->ndim, SCHEMA_MAX_DIM);
	if (t->dtype >= SCHEMA_NDTYPE)
		return err_set(e, ERR_DATA,
		    "unsupported: tensor '%s' has unknown dtype %u, expected 0 to %d: a "
		    "newer release of ace may know it", t->name, t->dtype,
		    SCHEMA_NDTYPE - 1);
	return 0;
}

int
schema_add(struct schema *s, const struct schema_tensor *t, struct err *e)
{
	struct schema_tensor *to;
	uint64_t groups;
	int r;

	if ((r = schema_check(t, e)) < 0)
		return r;
	if (s->n == SCHEMA_MAX_TENSORS)
		return err_set(e, ERR_DATA, "limit: the model has more than %d tensors",
		    SCHEMA_MAX_TENSORS);
	if (s->group_size == 0 || s->group_size > SCHEMA_MAX_GROUP)
		return err_set(e, ERR_DATA,
		    "limit: group size %lu, expected 1 to %d",
		    (unsigned long)s->group_size, SCHEMA_MAX_GROUP);
	if ((r = alloc_grow(&s->t, &s->cap, s->n + 1, sizeof(*s->t), e)) < 0)
		return r;
	to = &s->t[s->n];
	*to = *t;
	if ((r = schema_numel(to, s->total, e)) < 0)
		return r;
	groups = to->numel / s->group_size + (to->numel % s->group_size != 0);
	if (groups > UINT32_MAX - s->ngroups)
		return err_set(e, ERR_DATA,
		    "limit: tensor '%s' raises the number of groups to 2^32 or more: use "
		    "larger groups (ace-import --group)", t->name);
	to->group = s->ngroups;
	to->ngroups = (uint32_t)groups;
	if ((to->name = alloc_dup(t->name, e)) == NULL)
		return -ERR_SYS;
	s->ngroups += to->ngroups;
	s->total += to->numel;
	s->n++;
	return 0;
}

static int
schema_has(const char *name, const char *word)
{
	return strstr(name, word) != NULL;
}

void
schema_guess(struct schema_tensor *t)
{
	const char *n = t->name;
	unsigned i, wide = 0;

	for (i = 0; i < t->ndim; i++)
		wide += t->dim[i] > 1;
	if (schema_has(n, "norm") || schema_has(n, "ln_") ||
	    schema_has(n, ".ln") || schema_has(n, "bn"))
		t->kind = SCHEMA_NORM;
	else if (schema_has(n, "bias"))
		t->kind = SCHEMA_BIAS;
	else if (schema_has(n, "emb") || schema_has(n, "wte") || schema_has(n, "wpe"))
		t->kind = SCHEMA_EMBEDDING;
	else if (t->ndim == 4)
		t->kind = SCHEMA_CONV;
	else if (wide >= 2)
		t->kind = SCHEMA_WEIGHT;
	else
		t->kind = SCHEMA_OTHER;
	t->roles = t->kind == SCHEMA_NORM || t->kind == SCHEMA_BIAS ?
	    SCHEMA_ROLE_DENSE : 0;
}

static int
schema_by_name(const void *a, const void *b)
{
	const struct schema_tensor *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int
schema_unique(const struct schema *s, struct err *e)
{
	const struct schema_tensor **v;
	size_t i;
	int r = 0;

	if ((v = alloc_get(s->n, sizeof(*v), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < s->n; i++)
		v[i] = &s->t[i];
	if (s->n > 1)
		qsort(v, s->n, sizeof(*v), schema_by_name);
	for (i = 1; i < s->n && r == 0; i++)
		if (strcmp(v[i - 1]->name, v[i]->name) == 0)
			r = err_set(e, ERR_DATA,
			    "corrupt: two tensors are named '%s'", v[i]->name);
	alloc_free(v);
	return r;
}

int
schema_finish(struct schema *s, struct err *e)
{
	struct buf b = BUF_INIT;
	int r;

	if ((r = schema_unique(s, e)) == 0 && (r = schema_encode(s, &b, e)) == 0)
		hash_128(b.p, b.n, s->id);
	buf_release(&b);
	return r;
}

int
schema_copy(struct schema *to, const struct schema *from, struct err *e)
{
	struct schema s = SCHEMA_INIT;
	size_t i;
	int r = 0;

	s.group_size = from->group_size;
	for (i = 0; i < from->n && r == 0; i++)
		r = schema_add(&s, &from->t[i], e);
	if (r < 0) {
		schema_release(&s);
		return r;
	}
	memcpy(s.id, from->id, sizeof(s.id));
	schema_release(to);
	*to = s;
	return 0;
}

void
schema_release(struct schema *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		alloc_free(s->t[i].name);
	alloc_free(s->t);
	*s = (struct schema)SCHEMA_INIT;
}

void
schema_span(const struct schema *s, uint32_t g, struct schema_span *out)
{
	size_t lo = 0, hi = s->n, mid;
	const struct schema_tensor *t;
	uint64_t left;

	/* find the last tensor whose first group is <= g; empty tensors have the same
	 * first group as the next tensor and come before it */
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (s->t[mid].group <= g)
			lo = mid;
		else
			hi = mid;
	}
	t = &s->t[lo];
	out->tensor = (uint32_t)lo;
	out->offset = (uint64_t)(g - t->group) * s->group_size;
	out->first = t->base + out->offset;
	left = t->numel - out->offset;
	out->n = left < s->group_size ? (size_t)left : s->group_size;
	out->cols = 1;
	if (t->ndim != 0 && t->dim[t->ndim - 1] <= UINT32_MAX)
		out->cols = (uint32_t)t->dim[t->ndim - 1];
}

const char *
schema_name(const struct schema *s, uint32_t g)
{
	struct schema_span span;

	schema_span(s, g, &span);
	return s->t[span.tensor].name;
}

int
schema_exact_group(const struct schema *s, uint32_t g)
{
	struct schema_span span;

	schema_span(s, g, &span);
	return schema_exact(s->t[span.tensor].dtype);
}

int
schema_diff(const struct schema *a, const struct schema *b, char why[256])
{
	const struct schema_tensor *x, *y;
	size_t i;
	unsigned d;

	if (memcmp(a->id, b->id, sizeof(a->id)) == 0)
		return 0;
	why[0] = '\0';
	if (a->group_size != b->group_size) {
		(void)snprintf(why, 256, "the group sizes are %lu and %lu",
		    (unsigned long)a->group_size, (unsigned long)b->group_size);
		return 1;
	}
	for (i = 0; i < a->n && i < b->n; i++) {
		x = &a->t[i];
		y = &b->t[i];
		for (d = 0; d < x->ndim && d < y->ndim; d++)
			if (x->dim[d] != y->dim[d])
				break;
		if (strcmp(x->name, y->name) != 0)
			(void)snprintf(why, 256, "tensor %zu differs in name: '%.80s' and "
			    "'%.80s'", i, x->name, y->name);
		else if (x->ndim != y->ndim)
			(void)snprintf(why, 256, "tensor '%.160s' differs in shape: %u and %u "
			    "dimensions", x->name, x->ndim, y->ndim);
		else if (d < x->ndim)
			(void)snprintf(why, 256, "tensor '%.160s' differs in shape: %llu and "
			    "%llu in dimension %u", x->name, (unsigned long long)x->dim[d],
			    (unsigned long long)y->dim[d], d);
		else if (x->dtype != y->dtype)
			(void)snprintf(why, 256, "tensor '%.160s' differs in dtype: %s and %s",
			    x->name, schema_dtype_name(x->dtype), schema_dtype_name(y->dtype));
		else if (x->kind != y->kind)
			(void)snprintf(why, 256, "tensor '%.160s' differs in kind: "
			    "%s and %s", x->name, schema_kind_name(x->kind),
			    schema_kind_name(y->kind));
		else
			continue;
		return 1;
	}
	(void)snprintf(why, 256, "%zu and %zu tensors%s", a->n, b->n,
	    a->n == b->n ? " with different roles" : "");
	return 1;
}

int
schema_encode(const struct schema *s, struct buf *out, struct err *e)
{
	size_t i, names = 0, dims = 0, at_dim, at_name, size;
	unsigned char *p;
	unsigned d;
	int r;

	for (i = 0; i < s->n; i++) {
		names += strlen(s->t[i].name);
		dims += s->t[i].ndim;
	}
	at_dim = SCHEMA_HEAD + SCHEMA_ENTRY * s->n;
	at_name = at_dim + 8 * dims;
	size = at_name + names;
	if ((r = buf_room(out, size, e)) < 0)
		return r;
	p = out->p + out->n;
	memset(p, 0, size);
	bytes_set32(p, (uint32_t)s->n);
	bytes_set32(p + 4, s->group_size);
	bytes_set64(p + 8, s->total);
	bytes_set32(p + 16, (uint32_t)names);
	bytes_set32(p + 20, (uint32_t)dims);
	names = dims = 0;
	for (i = 0; i < s->n; i++) {
		const struct schema_tensor *t = &s->t[i];
		unsigned char *q = p + SCHEMA_HEAD + SCHEMA_ENTRY * i;
		size_t len = strlen(t->name);

		bytes_set64(q, t->numel);
		bytes_set64(q + 8, t->base);
		bytes_set32(q + 16, (uint32_t)names);
		bytes_set16(q + 20, (uint16_t)len);
		q[22] = t->ndim;
		q[23] = t->dtype;
		bytes_set32(q + 24, (uint32_t)dims);
		bytes_set32(q + 28, t->kind);
		bytes_set64(q + 32, t->roles);
		for (d = 0; d < t->ndim; d++)
			bytes_set64(p + at_dim + 8 * dims++, t->dim[d]);
		memcpy(p + at_name + names, t->name, len);
		names += len;
	}
	out->n += size;
	return 0;
}

/* The parts of an encoded schema. schema_head sets the numbers; schema_wire sets the pointers,
 * and checks that the parts fill the schema exactly. */
struct schema_wire {
	size_t ntensors, nnames, ndims;
	const unsigned char *entry, *dim, *name;
	size_t next_dim, next_name;	/* where the next shape and name must begin */
};

static int
schema_entry(struct schema *s, struct schema_wire *w, size_t i, struct err *e)
{
	const unsigned char *q = w->entry + SCHEMA_ENTRY * i;
	struct schema_tensor t;
	char name[SCHEMA_MAX_NAME + 1];
	size_t len = bytes_le16(q + 20);
	unsigned d;
	int r;

	memset(&t, 0, sizeof(t));
	t.ndim = q[22];
	t.dtype = q[23];
	t.kind = bytes_le32(q + 28);
	t.roles = bytes_le64(q + 32);
	if (bytes_le32(q + 16) != w->next_name || len > SCHEMA_MAX_NAME ||
	    len > w->nnames - w->next_name)
		return err_set(e, ERR_DATA, "corrupt: the name of tensor %zu is too "
		    "long, or not at its place in the schema", i);
	if (t.ndim > SCHEMA_MAX_DIM)
		return err_set(e, ERR_DATA, "limit: tensor %zu has %u "
		    "dimensions, expected at most %d", i, t.ndim, SCHEMA_MAX_DIM);
	if (bytes_le32(q + 24) != w->next_dim || t.ndim > w->ndims - w->next_dim)
		return err_set(e, ERR_DATA, "corrupt: tensor '%.*s' begins at dimension %lu of the "
		    "schema and has %u dimensions: expected to begin at %zu and have at most %zu",
		    (int)(len < 160 ? len : 160), (const char *)w->name + w->next_name,
		    (unsigned long)bytes_le32(q + 24), t.ndim, w->next_dim,
		    w->ndims - w->next_dim);
	memcpy(name, w->name + w->next_name, len);
	name[len] = '\0';
	if (strlen(name) != len)
		return err_set(e, ERR_DATA,
		    "corrupt: the name of tensor %zu in the schema has a zero byte", i);
	t.name = name;
	for (d = 0; d < t.ndim; d++)
		t.dim[d] = bytes_le64(w->dim + 8 * (w->next_dim + d));
	w->next_name += len;
	w->next_dim += t.ndim;
	if ((r = schema_add(s, &t, e)) < 0)
		return r;
	if (s->t[i].numel != bytes_le64(q) || s->t[i].base != bytes_le64(q + 8))
		return err_set(e, ERR_DATA,
		    "corrupt: the size of tensor '%s' does not match its shape", name);
	return 0;
}

/* Refuse a wrong group size, and too many elements, bytes or groups: a few hundred bytes can
 * claim 2^31 groups, and every program loops over all of them. */
static int
schema_bomb(const struct schema_wire *w, uint32_t group, uint64_t total,
    uint64_t max, size_t wire, struct err *e)
{
	uint64_t most = max / SCHEMA_GROUP, groups;

	if (group == 0 || group > SCHEMA_MAX_GROUP)
		return err_set(e, ERR_DATA,
		    "limit: group size %lu, expected 1 to %d", (unsigned long)group,
		    SCHEMA_MAX_GROUP);
	groups = total / group;
	if (most < 1 << 20)
		most = 1 << 20;
	most += wire;
	if (total > max)
		return err_set(e, ERR_DATA, "limit: the schema has %llu elements, expected at "
		    "most %llu: raise the programs' --max-elements", (unsigned long long)total,
		    (unsigned long long)max);
	/* at most one group of each tensor is not full */
	if (groups > most)
		return err_set(e, ERR_DATA, "limit: the schema has %llu groups of %lu value%s, "
		    "expected at most %llu: import the model with larger groups (ace-import "
		    "--group)", (unsigned long long)groups, (unsigned long)group,
		    group == 1 ? "" : "s", (unsigned long long)most);
	if (SCHEMA_HEAD + SCHEMA_ENTRY * w->ntensors + 8 * w->ndims +
	    w->nnames > SCHEMA_MAX_BYTES)
		return err_set(e, ERR_DATA, "limit: the schema is larger than %zu "
		    "bytes", SCHEMA_MAX_BYTES);
	return 0;
}

static int
schema_head(struct schema_wire *w, uint32_t *group, uint64_t *total,
    struct bytes *b, struct err *e)
{
	memset(w, 0, sizeof(*w));
	w->ntensors = bytes_next32(b);
	*group = bytes_next32(b);
	*total = bytes_next64(b);
	w->nnames = bytes_next32(b);
	w->ndims = bytes_next32(b);
	if (!bytes_zero(b, 8) || b->bad)
		return err_set(e, ERR_DATA, "corrupt: the schema's head is damaged");
	if (w->ntensors > SCHEMA_MAX_TENSORS)
		return err_set(e, ERR_DATA, "limit: the schema has %zu tensors, expected at most "
		    "%d", w->ntensors, SCHEMA_MAX_TENSORS);
	return 0;
}

int
schema_bytes(const unsigned char *p, size_t n, uint64_t max, size_t wire,
    size_t *size, struct err *e)
{
	struct bytes b = BYTES(p, n);
	struct schema_wire w;
	uint32_t group;
	uint64_t total;
	int r;

	if ((r = schema_head(&w, &group, &total, &b, e)) < 0)
		return r;
	*size = SCHEMA_HEAD + SCHEMA_ENTRY * w.ntensors + 8 * w.ndims + w.nnames;
	if (n > *size)
		return err_set(e, ERR_DATA, "corrupt: the schema's sizes do not add up");
	return schema_bomb(&w, group, total, max, wire, e);
}

static int
schema_wire(struct schema_wire *w, uint32_t *group, uint64_t *total,
    const unsigned char *p, size_t n, struct err *e)
{
	struct bytes b = BYTES(p, n);
	int r;

	if ((r = schema_head(w, group, total, &b, e)) < 0)
		return r;
	w->entry = bytes_take(&b, SCHEMA_ENTRY * w->ntensors);
	w->dim = bytes_take(&b, 8 * w->ndims);
	w->name = bytes_take(&b, w->nnames);
	if (b.bad || b.at != n)
		return err_set(e, ERR_DATA, "corrupt: the schema's sizes do not add up");
	return 0;
}

int
schema_decode(struct schema *s, const unsigned char *p, size_t n, struct err *e)
{
	struct schema_wire w;
	uint64_t total;
	size_t i;
	int r;

	schema_release(s);
	if ((r = schema_wire(&w, &s->group_size, &total, p, n, e)) < 0)
		return r;
	for (i = 0; i < w.ntensors && r == 0; i++)
		r = schema_entry(s, &w, i, e);
	if (r == 0 && (s->total != total || w.next_dim != w.ndims ||
	    w.next_name != w.nnames))
		r = err_set(e, ERR_DATA, "corrupt: the schema's totals do not match "
		    "its tensors");
	if (r == 0)
		r = schema_unique(s, e);
	if (r == 0)
		hash_128(p, n, s->id);
	else
		schema_release(s);
	return r;
}
