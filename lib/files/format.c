#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/magic.h"
#include "files/dtype.h"
#include "files/format.h"
#include "files/format_impl.h"

const char *const format_names[] = {
	"safetensors", "npz", "npy", "raw", NULL
};

static const struct backend_in *const format_in[] = {
	&safetensors_in, &npz_in, &npy_in, &raw_in
};
static const struct backend_out *const format_out[] = {
	&safetensors_out, &npz_out, &npy_out, &raw_out
};

int
format_guess(const char *path)
{
	static const struct {
		const char *end;
		int id;
	} known[] = {
		{ ".safetensors", FORMAT_SAFETENSORS }, { ".npz", FORMAT_NPZ },
		{ ".npy", FORMAT_NPY }, { ".raw", FORMAT_RAW },
		{ ".f32", FORMAT_RAW }, { ".bin", FORMAT_RAW }
	};
	size_t n = path != NULL ? strlen(path) : 0, i, k;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		k = strlen(known[i].end);
		if (n > k && strcmp(path + n - k, known[i].end) == 0)
			return known[i].id;
	}
	return -1;
}

int
format_seen(const unsigned char *p, size_t n)
{
	if (n >= 6 && memcmp(p, "\x93NUMPY", 6) == 0)
		return FORMAT_NPY;
	if (n >= 4 && (memcmp(p, "PK\3\4", 4) == 0 ||
	    memcmp(p, "PK\5\6", 4) == 0) && magic_packed(p, n))
		return FORMAT_NPZ;
	return magic_safetensors(p, n) ? FORMAT_SAFETENSORS : -1;
}

/* ---- source ---- */

int
format_open(struct format_source **out, enum format_id f, const char *path,
    const struct format_opts *o, struct err *e)
{
	struct format_source *s = alloc_get(1, sizeof(*s), e);
	int r = 0;

	*out = NULL;
	if (s == NULL)
		return -ERR_SYS;
	s->in = format_in[f];
	s->schema = (struct schema)SCHEMA_INIT;
	if (o->group_size != 0)
		s->schema.group_size = o->group_size;
	s->round = o->round;
	s->only = o->only;
	s->io = o->many;
	s->many = o->many != NULL;
	s->name = "<stdin>";
	if (path != NULL && strcmp(path, "-") != 0)
		s->name = s->path = alloc_dup(path, e);
	if (s->name == NULL || (s->raw = alloc_get(BACKEND_CHUNK, 1, e)) == NULL)
		r = -ERR_SYS;
	if (r == 0)
		r = s->in->open(s, o, e);
	if (r == 0 && (r = schema_finish(&s->schema, e)) < 0)
		r = err_file(e, r, s->name);
	if (r < 0 || s->none)
		format_close(s);
	else
		*out = s;
	return r;
}

const struct schema *
format_schema(const struct format_source *s)
{
	return &s->schema;
}

uint64_t
format_where(const struct format_source *s)
{
	return s->where;
}

const struct text_kv *
format_note(const struct format_source *s)
{
	return &s->note;
}

uint64_t
format_unnoted(const struct format_source *s)
{
	return s->unnoted;
}

uint64_t
format_rounded(const struct format_source *s)
{
	return s->rounded;
}

/* format_some for f32 in the byte order of memory: read into x, without conversion or copy. */
static int
format_straight(struct format_source *s, float *x, size_t n, size_t *done,
    struct err *e)
{
	const uint64_t left = s->schema.t[s->cur].numel - s->at;
	int r;

	if (n > left)
		n = (size_t)left;
	if ((r = s->in->bytes(s, x, n * sizeof(*x), e)) < 0)
		return r;
	s->at += n;
	*done = n;
	return 0;
}

/* Read 1 to n values of the open tensor; set *done to their number. */
static int
format_some(struct format_source *s, float *x, size_t n, size_t *done, struct err *e)
{
	const struct schema_tensor *t = &s->schema.t[s->cur];
	size_t size = dtype_size(t->dtype), k;
	const char *why;
	char text[32];
	uint64_t one = 0;
	int r;

	if (BYTES_LITTLE && t->dtype == SCHEMA_F32 &&
	    (s->swap == NULL || !s->swap[s->cur]))
		return format_straight(s, x, n, done, e);
	if (n > BACKEND_CHUNK / size)
		n = BACKEND_CHUNK / size;
	if (n > t->numel - s->at)
		n = (size_t)(t->numel - s->at);
	if ((r = s->in->bytes(s, s->raw, n * size, e)) < 0)
		return r;
	if (s->swap != NULL && s->swap[s->cur])
		dtype_swap(t->dtype, s->raw, n);
	k = dtype_to_f32(t->dtype, s->round && !schema_exact(t->dtype), s->raw, x,
	    n, &s->rounded);
	if (k < n) {
		dtype_text(t->dtype, s->raw + k * size, text);
		why = dtype_to_f32(t->dtype, 1, s->raw + k * size, x, 1, &one) ==
		    1 ? schema_exact(t->dtype) ? "not exact in f32 (--tensor "
		    "can select other tensors)" : "not exact in f32 (--f32 rounds it)" :
		    t->dtype == SCHEMA_BOOL ? "neither 0 nor 1" :
		    "beyond the range of f32, 3.4e38";
		return err_set(e, ERR_DATA, "unsupported: tensor '%s' at index %llu "
		    "in '%s': %s %s is %s", t->name, (unsigned long long)(s->at + k),
		    s->name, schema_dtype_name(t->dtype), text, why);
	}
	s->at += n;
	*done = n;
	return 0;
}

/* End tensors that are complete or empty, and begin the next one. */
static int
format_advance(struct format_source *s, struct err *e)
{
	int r;

	while (s->cur < s->schema.n) {
		if (!s->open && s->in->begin != NULL && (r = s->in->begin(s, e)) < 0)
			return r;
		s->open = 1;
		if (s->at < s->schema.t[s->cur].numel)
			return 0;
		if (s->in->end != NULL && (r = s->in->end(s, e)) < 0)
			return r;
		s->open = 0;
		s->at = 0;
		s->cur++;
	}
	return 0;
}

int
format_read(struct format_source *s, float *x, size_t n, struct err *e)
{
	size_t k = 0;
	int r;

	while (n != 0) {
		if ((r = format_advance(s, e)) < 0)
			return r;
		if (s->cur == s->schema.n)
			return err_set(e, ERR_DATA,
			    "truncated: '%s' has fewer values than its shapes need",
			    s->name);
		if ((r = format_some(s, x, n, &k, e)) < 0)
			return r;
		x += k;
		n -= k;
	}
	return 0;
}

int
format_end(struct format_source *s, struct err *e)
{
	int r = format_advance(s, e);

	if (r < 0)
		return r;
	return s->in->finish != NULL ? s->in->finish(s, e) : 0;
}

void
format_close(struct format_source *s)
{
	if (s == NULL)
		return;
	if (s->in->close != NULL)
		s->in->close(s);
	if (!s->many)
		io_free(s->io);
	schema_release(&s->schema);
	text_release(&s->note);
	alloc_free(s->swap);
	alloc_free(s->gap);
	alloc_free(s->raw);
	alloc_free(s->path);
	alloc_free(s);
}

/* ---- sink ---- */

int
format_create(struct format_sink **out, enum format_id f, struct io *io,
    const struct schema *schema, const struct format_sink_opts *o, struct err *e)
{
	static const struct format_sink_opts none;
	struct format_sink *s;
	size_t i;
	int r = 0;

	*out = NULL;
	if ((s = alloc_get(1, sizeof(*s), e)) == NULL)
		return -ERR_SYS;
	s->out = format_out[f];
	s->io = io;
	s->schema = schema;
	s->opts = o != NULL ? o : &none;
	if ((s->raw = alloc_get(BACKEND_CHUNK, 1, e)) == NULL ||
	    (s->dtype = alloc_get(schema->n, 1, e)) == NULL)
		r = -ERR_SYS;
	for (i = 0; r == 0 && i < schema->n; i++) {
		s->dtype[i] = s->opts->f32 ? SCHEMA_F32 : schema->t[i].dtype;
		if (schema_bits(s->dtype[i]))
			r = err_set(e, ERR_DATA, "unsupported: tensor '%s' is %s: "
			    "only ace-patch writes that type", schema->t[i].name,
			    schema_dtype_name(s->dtype[i]));
	}
	if (r == 0 && s->out->create != NULL)
		r = s->out->create(s, e);
	s->opts = NULL;
	if (r < 0)
		format_free(s);
	else
		*out = s;
	return r;
}

static int
format_fill(struct format_sink *s, struct err *e)
{
	int r;

	while (s->cur < s->schema->n) {
		if (!s->open && s->out->begin != NULL && (r = s->out->begin(s, e)) < 0)
			return r;
		s->open = 1;
		if (s->at < s->schema->t[s->cur].numel)
			return 0;
		if (s->out->end != NULL && (r = s->out->end(s, e)) < 0)
			return r;
		s->open = 0;
		s->at = 0;
		s->cur++;
	}
	return 0;
}

static int
format_put(struct format_sink *s, const float *x, size_t n, struct err *e)
{
	unsigned dtype = s->dtype[s->cur];
	size_t k = dtype_from_f32(dtype, x, s->raw, n);

	if (k < n)
		return err_set(e, ERR_DATA, "unsupported: tensor '%s' at index %llu: "
		    "%.9g does not fit %s: write f32 with --f32",
		    s->schema->t[s->cur].name, (unsigned long long)(s->at + k),
		    (double)x[k], schema_dtype_name(dtype));
	return s->out->bytes(s, s->raw, n * dtype_size(dtype), e);
}

int
format_write(struct format_sink *s, const float *x, size_t n, struct err *e)
{
	const struct schema_tensor *t;
	size_t k;
	int r;

	while (n != 0) {
		if ((r = format_fill(s, e)) < 0)
			return r;
		if (s->cur == s->schema->n)
			return err_set(e, ERR_DATA,
			    "mismatch: the shard has more values than its schema");
		t = &s->schema->t[s->cur];
		k = BACKEND_CHUNK / dtype_size(s->dtype[s->cur]);
		if (k > n)
			k = n;
		if (k > t->numel - s->at)
			k = (size_t)(t->numel - s->at);
		if ((r = format_put(s, x, k, e)) < 0)
			return r;
		s->at += k;
		x += k;
		n -= k;
	}
	return 0;
}

int
format_finish(struct format_sink *s, struct err *e)
{
	int r = format_fill(s, e);

	if (r < 0)
		return r;
	if (s->cur < s->schema->n)
		return err_set(e, ERR_DATA,
		    "mismatch: the shard has fewer values than its schema");
	return s->out->finish != NULL ? s->out->finish(s, e) : 0;
}

void
format_free(struct format_sink *s)
{
	if (s == NULL)
		return;
	if (s->out->close != NULL)
		s->out->close(s);
	alloc_free(s->dtype);
	alloc_free(s->raw);
	alloc_free(s);
}

/* ---- for the backends ---- */

int
format_seekable(struct format_source *s, uint64_t *size, struct err *e)
{
	struct io *in;
	int r = io_open(&s->io, s->path, e);

	if (r < 0)
		return r;
	if (!io_can_seek(s->io) ||
	    (s->path == NULL && lseek(STDIN_FILENO, 0, SEEK_CUR) != 0)) {
		in = s->io;
		s->io = NULL;
		r = io_to_temp(&s->io, in, e);
		io_free(in);
	}
	*size = r == 0 ? io_size(s->io) : 0;
	return r;
}

int
format_strange(const struct format_source *s, const char *is,
    const unsigned char *p, size_t n, struct err *e)
{
	char words[MAGIC_WORDS];

	return err_set(e, ERR_DATA, "corrupt: '%s' is not %s%s", s->name, is,
	    magic_say(p, n, "", words));
}

int
format_take(struct format_source *s, void *p, size_t n, struct err *e)
{
	size_t got;
	int r = io_read(s->io, p, n, &got, e);

	if (r < 0 || got == n)
		return r;
	return err_data(e, io_bytes(s->io), "truncated: '%s' ends inside tensor '%s'%s", s->name,
	    s->schema.t[s->cur].name, s->in == &raw_in ? ": check --shape" : "");
}

int
format_last(struct format_source *s, struct err *e)
{
	unsigned char c;
	size_t got;
	int r;

	if (s->many)
		return 0;
	r = io_read(s->io, &c, 1, &got, e);
	if (r < 0 || got == 0)
		return r;
	return err_data(e, io_bytes(s->io) - 1, "corrupt: '%s' has bytes after the last value "
	    "of its tensors: %s", s->name, s->in == &raw_in ? "check --shape" : s->in == &npy_in ?
	    "an npy file has one array" : "several safetensors files in one need --many");
}

int
format_write_raw(struct format_sink *s, const void *p, size_t n, struct err *e)
{
	return io_write(s->io, p, n, e);
}

int
format_wants(const struct format_source *s, const char *name)
{
	return s->only == NULL || fnmatch(s->only, name, 0) == 0;
}

int
format_add(struct format_source *s, struct schema_tensor *t, const char *name,
    struct err *e)
{
	struct schema *sc = &s->schema;
	int r;

	if (sc->n == FORMAT_MAX_TENSORS)
		return err_set(e, ERR_DATA, "limit: '%s' has more than %d "
		    "tensors", s->name, FORMAT_MAX_TENSORS);
	if ((t->name = alloc_dup(name, e)) == NULL)
		return -ERR_SYS;
	schema_guess(t);
	if ((r = schema_add(sc, t, e)) < 0)
		r = err_file(e, r, s->name);
	alloc_free(t->name);
	t->name = NULL;
	return r;
}
