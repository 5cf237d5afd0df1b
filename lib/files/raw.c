/*
 * Bare f32 values, little-endian, without a head: the shape comes from the
 * command line or from the length of the file.
 */
#include <string.h>

#include "base/err.h"
#include "base/magic.h"
#include "files/format_impl.h"

/* Refuse a file that begins as another format. Call it if only the name suggested raw. */
static int
raw_guessed(struct format_source *s, struct err *e)
{
	unsigned char p[MAGIC_SIZE];
	size_t got;
	int r = io_peek(s->io, p, sizeof(p), &got, e);

	if (r < 0 || magic_name(p, got) == NULL)
		return r;
	r = format_strange(s, "the raw f32 that its name says", p, got, e);
	return err_after(e, r, "; to read its bytes as values, give -f raw");
}

static int
raw_open(struct format_source *s, const struct format_opts *o, struct err *e)
{
	const char *name = o->name != NULL ? o->name : "data";
	struct schema_tensor t;
	uint64_t size;
	int r;

	memset(&t, 0, sizeof(t));
	t.dtype = SCHEMA_F32;
	t.ndim = (uint8_t)(o->ndim <= SCHEMA_MAX_DIM ? o->ndim : UINT8_MAX);
	memcpy(t.dim, o->dim, sizeof(t.dim));
	if ((r = o->ndim != 0 ? io_open(&s->io, s->path, e) :
	    format_seekable(s, &size, e)) < 0 ||
	    (o->guessed && (r = raw_guessed(s, e)) < 0))
		return r;
	if (o->ndim == 0) {
		if (size == 0)
			return err_set(e, ERR_DATA, "truncated: '%s' is empty", s->name);
		if (size % 4 != 0)
			return err_set(e, ERR_DATA, "truncated: '%s' has %llu B, "
			    "not a multiple of 4 (f32)", s->name, (unsigned long long)size);
		t.ndim = 1;
		t.dim[0] = size / 4;
	}
	return format_add(s, &t, name, e);
}

const struct backend_in raw_in = {
	raw_open, NULL, format_take, NULL, format_last, NULL
};

static int
raw_create(struct format_sink *s, struct err *e)
{
	memset(s->dtype, SCHEMA_F32, s->schema->n);
	return 0;
}

const struct backend_out raw_out = {
	raw_create, NULL, format_write_raw, NULL, NULL, NULL
};
