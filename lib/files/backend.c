#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "files/backend.h"

int
backend_take(struct format_source *s, void *p, size_t n, struct err *e)
{
	size_t got;
	int r = io_read(s->io, p, n, &got, e);

	if (r < 0 || got == n)
		return r;
	return err_data(e, io_bytes(s->io), "truncated: '%s' ends inside "
	    "tensor '%s'", s->name, s->schema.t[s->cur].name);
}

int
backend_last(struct format_source *s, struct err *e)
{
	unsigned char c;
	size_t got;
	int r;

	if (s->many)
		return 0;
	r = io_read(s->io, &c, 1, &got, e);
	if (r < 0 || got == 0)
		return r;
	return err_data(e, io_bytes(s->io) - 1, "corrupt: '%s' goes on after "
	    "its last value", s->name);
}

int
backend_put(struct format_sink *s, const void *p, size_t n, struct err *e)
{
	return io_write(s->io, p, n, e);
}

int
backend_add(struct format_source *s, struct schema_tensor *t, const char *name,
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
