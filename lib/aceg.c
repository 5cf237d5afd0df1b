/*
 * The installed interface: a thin layer over format/, for other programs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "aceg.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/version.h"
#include "format/array.h"
#include "format/keys.h"
#include "format/reader.h"
#include "format/values.h"
#include "format/writer.h"

struct ace_reader {
	struct reader *r;
	struct values v;
	struct text_kv policy;
	struct ace_tensor *t;
	size_t nt;
	unsigned char schema_id[16];
	int in_shard;		/* 1: the last ace_read_shard returned 1 */
	struct ace_writer *to;	/* gets the annotations; it points back to this reader */
};

struct ace_writer {
	struct writer *w;
	struct schema schema;
	int have_schema, in_shard;
	struct schema_span span;
	uint32_t group;		/* index of the group that is being filled */
	float *x;		/* [group size of the schema] its values */
	size_t n;		/* number of values in x */
	struct text_kv kv;	/* keys of the next shard */
	struct ace_reader *from;
};

const char *
ace_version(void)
{
	return ACE_VERSION;
}

static int
ace_fail(struct ace_error *out, int r, const struct err *e)
{
	if (out != NULL && r < 0) {
		out->code = -r;
		(void)snprintf(out->message, sizeof(out->message), "%s",
		    e->code != ERR_OK ? ERR_MSG(e) :
		    "no shard is being read: call ace_read_shard first");
	}
	return r;
}

/* ---- reading ---- */

static void
ace_unlink(struct ace_reader *from, struct ace_writer *to)
{
	if (from != NULL)
		from->to = NULL;
	if (to != NULL)
		to->from = NULL;
}

static int
ace_note(void *arg, const struct reader *r, struct err *e)
{
	struct ace_reader *a = arg;
	int k;

	if (a->to != NULL && frame_safe_to_copy(reader_frame(r)->type) &&
	    (k = writer_pass(a->to->w, r, e)) < 0)
		return k;
	return keys_add(&a->policy, r, e);
}

struct ace_reader *
ace_reader_new(int fd, struct ace_error *out)
{
	struct err e = ERR_INIT;
	struct ace_reader *a = alloc_get(1, sizeof(*a), &e);
	struct io *io;
	int r = -ERR_SYS;

	if (a == NULL || (r = io_open_fd(&io, fd, "<input>", &e)) < 0 ||
	    (r = reader_open(&a->r, io, NULL, &e)) < 0) {
		alloc_free(a);
		(void)ace_fail(out, r, &e);
		return NULL;
	}
	a->v = (struct values)VALUES_INIT;
	a->v.note = ace_note;
	a->v.arg = a;
	return a;
}

static int
ace_load_tensors(struct ace_reader *a, struct err *e)
{
	const struct schema *s = reader_schema(a->r);
	size_t i;

	if (a->t != NULL && memcmp(a->schema_id, s->id, 16) == 0)
		return 0;
	alloc_free(a->t);
	if ((a->t = alloc_get(s->n, sizeof(*a->t), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < s->n; i++) {
		a->t[i].name = s->t[i].name;
		a->t[i].dtype = (enum ace_dtype)s->t[i].dtype;
		a->t[i].ndim = s->t[i].ndim;
		memcpy(a->t[i].dim, s->t[i].dim, sizeof(a->t[i].dim));
		a->t[i].numel = s->t[i].numel;
	}
	a->nt = s->n;
	memcpy(a->schema_id, s->id, 16);
	return 0;
}

static void
ace_name(char out[64], const struct shard *from, const char *key)
{
	const char *name = text_get(&from->kv, key);
	int n = snprintf(out, 64, "%s", name != NULL ? name : "");

	/* do not cut within a character */
	for (n = n < 64 ? n : 63; !text_clean(out, (size_t)n);)
		out[--n] = '\0';
}

static void
ace_describe(struct ace_shard *s, const struct shard *from)
{
	memset(s, 0, sizeof(*s));
	ace_name(s->run, from, SHARD_KEY_RUN);
	ace_name(s->device, from, SHARD_KEY_DEVICE);
	s->step = from->step;
	s->base_version = from->base_version;
	s->weight = from->weight;
	s->samples = from->samples;
	s->kind = (enum ace_kind)from->kind;
	s->contributors = from->contributors;
}

int
ace_read_shard(struct ace_reader *a, struct ace_shard *s, struct ace_error *out)
{
	struct err e = ERR_INIT;
	int k;

	a->in_shard = 0;
	ace_unlink(a, a->to);	/* a later shard's annotations are not for its shard */
	while ((k = reader_next(a->r, &e)) > 0 && k != READER_SHARD)
		if (k == READER_HEAD) {
			alloc_free(a->t);	/* the names in it belong to the schema */
			a->t = NULL;
			a->nt = 0;
		}
	if (k <= 0)
		return ace_fail(out, k, &e);
	text_release(&a->policy);
	if ((k = ace_load_tensors(a, &e)) < 0 ||
	    (k = values_begin(&a->v, a->r, &e)) < 0)
		return ace_fail(out, k, &e);
	ace_describe(s, reader_shard(a->r));
	a->in_shard = 1;
	return 1;
}

const struct ace_tensor *
ace_tensors(const struct ace_reader *a, size_t *n)
{
	*n = a->nt;
	return a->t;
}

int
ace_read_group(struct ace_reader *a, struct ace_group *g, struct ace_error *out)
{
	struct err e = ERR_INIT;
	struct schema_span span;
	int k = a->in_shard ? values_next(&a->v, &e) : -ERR_USAGE;

	if (k <= 0)
		return ace_fail(out, k, &e);
	schema_span(reader_schema(a->r), a->v.group, &span);
	g->index = a->v.group;
	g->tensor = span.tensor;
	g->offset = span.offset;
	g->n = a->v.n;
	g->value = a->v.x;
	g->sent = a->v.sent;
	return 1;
}

const char *
ace_policy(const struct ace_reader *a, const char *key)
{
	return text_get(&a->policy, key);
}

const char *
ace_key(const struct ace_reader *a, const char *key)
{
	const struct shard *s = reader_shard(a->r);

	return s != NULL ? text_get(&s->kv, key) : NULL;
}

void
ace_reader_free(struct ace_reader *a)
{
	if (a == NULL)
		return;
	ace_unlink(a, a->to);
	reader_free(a->r);
	values_release(&a->v);
	text_release(&a->policy);
	alloc_free(a->t);
	alloc_free(a);
}

/* ---- writing ---- */

struct ace_writer *
ace_writer_new(int fd, const char *program, struct ace_error *out)
{
	/* this name must not change: the stream's id depends on it, and the same input
	 * must give the same bytes */
	struct writer_opts o = { "libace", program, 0, 0 };
	struct err e = ERR_INIT;
	struct ace_writer *a = alloc_get(1, sizeof(*a), &e);
	struct io *io;
	int r = -ERR_SYS;

	if (isatty(fd))
		r = err_set(&e, ERR_USAGE, "the output is a terminal, but a "
		    "shard stream is binary");
	else if (program != NULL && (strlen(program) > 1024 ||
	    !text_clean(program, strlen(program))))
		r = err_set(&e, ERR_USAGE, "provenance line '%.80s': expected at most "
		    "1024 bytes of UTF-8 without control characters", program);
	else if (a != NULL && (r = io_create_fd(&io, fd, "<output>", &e)) == 0)
		r = writer_open(&a->w, io, &o, &e);
	if (r < 0) {
		alloc_free(a);
		(void)ace_fail(out, r, &e);
		return NULL;
	}
	a->schema = (struct schema)SCHEMA_INIT;
	return a;
}

static int
ace_adopt(struct ace_writer *a, struct schema *s, struct err *e)
{
	alloc_free(a->x);
	a->have_schema = 0;
	if ((a->x = alloc_get(s->group_size, sizeof(*a->x), e)) == NULL) {
		schema_release(s);
		return -ERR_SYS;
	}
	schema_release(&a->schema);
	a->schema = *s;
	a->have_schema = 1;
	return 0;
}

int
ace_write_tensors(struct ace_writer *a, const struct ace_tensor *t, size_t n,
    uint32_t group, struct ace_error *out)
{
	struct schema s = SCHEMA_INIT;
	struct schema_tensor st;
	struct err e = ERR_INIT;
	size_t i;
	int r = a->in_shard ? err_set(&e, ERR_USAGE,
	    "tensors cannot be added inside a shard: end it first") : 0;

	if (r == 0 && group > SCHEMA_MAX_GROUP)
		r = err_set(&e, ERR_USAGE, "group size %lu, expected at most %d",
		    (unsigned long)group, SCHEMA_MAX_GROUP);
	else if (group != 0)
		s.group_size = group;
	for (i = 0; i < n && r == 0; i++) {
		memset(&st, 0, sizeof(st));
		st.name = (char *)(uintptr_t)t[i].name;	/* only read */
		st.dtype = (uint8_t)t[i].dtype;
		st.ndim = (uint8_t)(t[i].ndim <= 255 ? t[i].ndim : 255);
		memcpy(st.dim, t[i].dim, sizeof(st.dim));
		schema_guess(&st);
		r = schema_add(&s, &st, &e);
	}
	if (r == 0)
		r = schema_finish(&s, &e);
	if (r == -ERR_DATA)	/* the call is wrong, not data */
		r = -ERR_USAGE;
	if (r < 0) {
		schema_release(&s);
		return ace_fail(out, r, &e);
	}
	return ace_fail(out, ace_adopt(a, &s, &e), &e);
}

int
ace_write_tensors_of(struct ace_writer *a, const struct ace_reader *from,
    struct ace_error *out)
{
	struct schema s = SCHEMA_INIT;
	struct err e = ERR_INIT;
	int r;

	if (!from->in_shard)
		return ace_fail(out, -ERR_USAGE, &e);
	if (a->have_schema && memcmp(a->schema.id,
	    reader_schema(from->r)->id, 16) == 0)
		return 0;
	if (a->in_shard)
		return ace_fail(out, err_set(&e, ERR_USAGE,
		    "tensors cannot be added inside a shard: end it first"), &e);
	if ((r = schema_copy(&s, reader_schema(from->r), &e)) < 0 ||
	    (r = ace_adopt(a, &s, &e)) < 0 ||
	    (r = writer_history(a->w, reader_provenance(from->r), &e)) < 0)
		return ace_fail(out, r, &e);
	return 0;
}

int
ace_write_key(struct ace_writer *a, const char *key, const char *value,
    struct ace_error *out)
{
	struct err e = ERR_INIT;
	int r = strcmp(key, SHARD_KEY_RUN) == 0 || strcmp(key, SHARD_KEY_DEVICE) == 0 ?
	    err_set(&e, ERR_USAGE, "key '%s' is set by its member of struct ace_shard", key) :
	    text_set(&a->kv, key, value, &e);

	if (r == -ERR_DATA)	/* the call is wrong, not data: nothing was read */
		r = -ERR_USAGE;
	return ace_fail(out, r, &e);
}

/* Begin a shard. The caller has set the names in s, and the members that struct ace_shard lacks;
 * the others are set from `from'. */
static int
ace_start(struct ace_writer *a, struct shard *s, const struct ace_shard *from,
    struct err *e)
{
	int r;

	if (!a->have_schema || a->in_shard)
		return err_set(e, ERR_USAGE, a->in_shard ? "a shard cannot begin before "
		    "the previous one has ended: call ace_write_end" : "a shard cannot "
		    "begin before the tensors are given: call ace_write_tensors");
	if (!isfinite(from->weight) || from->weight <= 0 ||
	    (unsigned)from->kind >= SHARD_NKIND || from->contributors == 0)
		return err_set(e, ERR_USAGE, "weight %g, kind %u, contributors %u: expected a "
		    "finite weight above 0, a kind below %d and at least 1 contributor",
		    from->weight, (unsigned)from->kind, from->contributors, SHARD_NKIND);
	s->step = from->step;
	s->base_version = from->base_version;
	s->weight = from->weight;
	s->samples = from->samples;
	s->kind = (uint32_t)from->kind;
	s->contributors = from->contributors;
	if ((r = text_add(&s->kv, &a->kv, e)) < 0 ||
	    (r = writer_shard(a->w, s, &a->schema, e)) < 0)
		return r;
	text_release(&a->kv);
	a->in_shard = 1;
	a->group = 0;
	a->n = 0;
	if (a->schema.ngroups != 0)
		schema_span(&a->schema, 0, &a->span);
	return 0;
}

int
ace_write_shard(struct ace_writer *a, const struct ace_shard *from,
    struct ace_error *out)
{
	struct err e = ERR_INIT;
	struct shard s;
	int r;

	shard_init(&s);
	if ((r = shard_set_run(&s, from->run, &e)) == 0 &&
	    (r = shard_set_device(&s, from->device, &e)) == 0)
		r = ace_start(a, &s, from, &e);
	shard_release(&s);
	return ace_fail(out, r, &e);
}

int
ace_write_shard_of(struct ace_writer *a, struct ace_reader *of,
    const struct ace_shard *from, struct ace_error *out)
{
	struct ace_shard was;
	struct err e = ERR_INIT;
	struct shard s;
	int r = ace_write_tensors_of(a, of, out);

	if (r < 0)
		return r;
	shard_init(&s);
	ace_describe(&was, reader_shard(of->r));
	/* keep names that are longer than struct ace_shard can hold */
	if ((r = shard_copy(&s, reader_shard(of->r), &e)) == 0 &&
	    strcmp(was.run, from->run) != 0)
		r = shard_set_run(&s, from->run, &e);
	if (r == 0 && strcmp(was.device, from->device) != 0)
		r = shard_set_device(&s, from->device, &e);
	if (r == 0 && (r = ace_start(a, &s, from, &e)) == 0) {
		ace_unlink(of, of->to);
		ace_unlink(a->from, a);
		of->to = a;
		a->from = of;
	}
	shard_release(&s);
	return ace_fail(out, r, &e);
}

/* Refuse a call without a shard, or n more values if they do not match the tensors. */
static int
ace_miscounted(const struct ace_writer *a, uint64_t n, struct ace_error *out)
{
	struct err e = ERR_INIT;

	if (!a->in_shard)
		return ace_fail(out, err_set(&e, ERR_USAGE,
		    "no shard was begun: call ace_write_shard"), &e);
	n += a->group == a->schema.ngroups ? a->schema.total :
	    a->schema.t[a->span.tensor].base + a->span.offset + a->n;
	return ace_fail(out, err_set(&e, ERR_USAGE, "the shard has %llu values, but "
	    "its tensors have %llu", (unsigned long long)n,
	    (unsigned long long)a->schema.total), &e);
}

int
ace_write_values(struct ace_writer *a, const float *x, size_t n,
    struct ace_error *out)
{
	struct err e = ERR_INIT;
	size_t k;
	int r;

	while (n != 0) {
		if (!a->in_shard || a->group == a->schema.ngroups)
			return ace_miscounted(a, n, out);
		k = a->span.n - a->n < n ? a->span.n - a->n : n;
		memcpy(a->x + a->n, x, k * sizeof(*x));
		a->n += k;
		x += k;
		n -= k;
		if (a->n < a->span.n)
			break;
		if ((r = writer_values(a->w, a->group, a->x, a->n, &e)) < 0)
			return ace_fail(out, r, &e);
		a->n = 0;
		if (++a->group < a->schema.ngroups)
			schema_span(&a->schema, a->group, &a->span);
	}
	return 0;
}

int
ace_write_times(struct ace_writer *a, const double *seconds, size_t n,
    struct ace_error *out)
{
	struct err e = ERR_INIT;
	struct buf b = BUF_INIT;
	size_t i;
	int r = 0;

	if (!a->in_shard)
		return ace_miscounted(a, 0, out);
	if (a->group != 0 || a->n != 0 || n != a->schema.n)
		r = err_set(&e, ERR_USAGE, "found %zu tensor times%s: expected %zu, one for each "
		    "tensor, before the first value", n, a->group != 0 || a->n != 0 ?
		    " after values" : "", a->schema.n);
	for (i = 0; i < n && r == 0; i++)
		if (!(seconds[i] >= 0 && seconds[i] <= ARRAY_LONGEST))
			r = err_set(&e, ERR_USAGE, "tensor %zu has the time %g s, expected "
			    "0 to %g s", i, seconds[i], ARRAY_LONGEST);
	if (r == 0 && (r = array_put_times(seconds, n, &b, &e)) == 0)
		r = writer_note(a->w, FRAME_TIME, b.p, b.n, &e);
	buf_release(&b);
	return ace_fail(out, r, &e);
}

int
ace_write_flush(struct ace_writer *a, struct ace_error *out)
{
	struct err e = ERR_INIT;

	return ace_fail(out, writer_flush(a->w, &e), &e);
}

int
ace_write_end(struct ace_writer *a, struct ace_error *out)
{
	struct err e = ERR_INIT;
	int r;

	if (!a->in_shard || a->group != a->schema.ngroups)
		return ace_miscounted(a, 0, out);
	ace_unlink(a->from, a);
	r = writer_send(a->w, NULL, &e);
	a->in_shard = r < 0;
	return ace_fail(out, r, &e);
}

int
ace_writer_close(struct ace_writer *a, struct ace_error *out)
{
	struct err e = ERR_INIT;

	if (a->in_shard)
		return ace_fail(out, err_set(&e, ERR_USAGE,
		    "the last shard has not ended: call ace_write_end"), &e);
	return ace_fail(out, writer_finish(a->w, &e), &e);
}

void
ace_writer_free(struct ace_writer *a)
{
	if (a == NULL)
		return;
	ace_unlink(a->from, a);
	writer_free(a->w);
	schema_release(&a->schema);
	text_release(&a->kv);
	alloc_free(a->x);
	alloc_free(a);
}
