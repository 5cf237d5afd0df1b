#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/err.h"
#include "files/dtype.h"
#include "files/format_impl.h"
#include "model/folder.h"
#include "model/model.h"

struct folder {
	struct model m;
	uint32_t *from;		/* [tensors] of the source: the model's number */
	size_t cap;
};

/* The metadata of the first file: all say the same. */
static int
folder_notes(struct format_source *s, struct err *e)
{
	const struct folder *f = s->own;
	const struct format_opts any = { .bits = 1 };
	struct format_source *one;
	int r = f->m.nfiles == 0 ? 0 : format_open(&one, FORMAT_SAFETENSORS,
	    f->m.file[0].path, &any, e);

	if (r == 0 && f->m.nfiles != 0) {
		r = text_add(&s->note, format_note(one), e);
		format_close(one);
	}
	return r;
}

static int
folder_begin(struct format_source *s, const struct format_opts *o, struct err *e)
{
	struct folder *f = alloc_get(1, sizeof(*f), e);
	const struct schema *sc;
	struct schema_tensor t;
	uint32_t i;
	int r;

	(void)o;
	if ((s->own = f) == NULL)
		return -ERR_SYS;
	f->m = (struct model)MODEL_INIT;
	r = model_open(&f->m, s->path, e);
	sc = &f->m.schema;
	for (i = 0; i < sc->n && r == 0; i++) {
		if (!format_wants(s, sc->t[i].name))
			continue;
		t = sc->t[i];
		if (schema_bits(t.dtype))
			return err_set(e, ERR_DATA, "unsupported: tensor '%s' in "
			    "'%s' has dtype '%s'", t.name, s->name,
			    schema_dtype_name(t.dtype));
		if ((r = format_add(s, &t, sc->t[i].name, e)) == 0 &&
		    (r = alloc_grow(&f->from, &f->cap, s->schema.n,
		    sizeof(*f->from), e)) == 0)
			f->from[s->schema.n - 1] = i;
	}
	return r < 0 ? r : folder_notes(s, e);
}

static int
folder_bytes(struct format_source *s, void *p, size_t n, struct err *e)
{
	const struct folder *f = s->own;
	const struct model_place *at = &f->m.place[f->from[s->cur]];
	const struct model_span span = { .file = at->file, .bytes = n,
	    .at = at->at + dtype_bytes(s->schema.t[s->cur].dtype, s->at) };

	return model_read(&f->m, &span, p, e);
}

static int
folder_same(struct format_source *s, struct err *e)
{
	return model_same(&((struct folder *)s->own)->m, e);
}

static void
folder_close(struct format_source *s)
{
	struct folder *f = s->own;

	if (f == NULL)
		return;
	model_close(&f->m);
	alloc_free(f->from);
	alloc_free(f);
}

int
folder_open(struct format_source **out, const char *path,
    const struct format_opts *o, struct err *e)
{
	static const struct backend_in in = {
		folder_begin, NULL, folder_bytes, NULL, folder_same, folder_close
	};
	struct stat st;
	int r;

	if (strcmp(path, "-") == 0 || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	r = format_open_by(out, &in, path, o, e);
	return r < 0 ? r : 1;
}
