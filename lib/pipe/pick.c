#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "format/reader.h"
#include "format/shard.h"
#include "pipe/filter.h"
#include "pipe/pick.h"
#include "pipe/source.h"

/* Parse a range of steps: "7", "3-9", "3-" or "-9". */
static int
pick_steps(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct pick *p = arg;
	const char *dash = strchr(val, '-');
	char first[32];
	int r = 0;

	p->lo = 0;
	p->hi = UINT64_MAX;
	if (dash == NULL) {
		r = num_u64(&p->lo, val, 0, UINT64_MAX, "--step", e);
		p->hi = p->lo;
		return r;
	}
	(void)snprintf(first, sizeof(first), "%.*s", (int)(dash - val), val);
	if (dash[1] == '\0' && dash == val)
		return err_set(e, ERR_USAGE, "--step '%s': expected A, A-B, A- or -B", val);
	if (dash != val)
		r = num_u64(&p->lo, first, 0, UINT64_MAX, "--step", e);
	if (r == 0 && dash[1] != '\0')
		r = num_u64(&p->hi, dash + 1, 0, UINT64_MAX, "--step", e);
	if (r == 0 && p->lo > p->hi)
		r = err_set(e, ERR_USAGE, "--step '%s': expected the smaller step first", val);
	return r;
}

const struct opt pick_opts[] = {
	{ 0, "step", "A-B", "only shards of step A, or of the steps A-B, A- or "
	    "-B", OPT_CALL(pick_steps) },
	{ 0, "device", "GLOB", "only shards of devices whose name matches",
	    OPT_TEXT(struct pick, device) },
	{ 0, "kind", "KIND",
	    "only gradient, delta, sum, mean, residual, model or history",
	    OPT_WORD(struct pick, kind, shard_kinds) },
	OPT_END
};

int
pick_given(const struct pick *p)
{
	return p->lo != 0 || p->hi != UINT64_MAX || p->device != NULL || p->kind >= 0;
}

int
pick_wants(const struct pick *p, const struct shard *s)
{
	return s->step >= p->lo && s->step <= p->hi &&
	    (p->kind < 0 || s->kind == (uint32_t)p->kind) &&
	    (p->device == NULL || fnmatch(p->device, shard_device(s), 0) == 0);
}

int
pick_tensor(const char *glob, const char *name)
{
	return glob == NULL || fnmatch(glob, name, 0) == 0;
}

int
pick_none(const struct pick *p, const char *glob, struct err *e)
{
	return glob != NULL ? err_set(e, ERR_NO, "no tensor of the %s matches '%s': "
	    "'ace-inspect list' shows the tensors", pick_given(p) ? "chosen shards" :
	    "input", glob) : err_set(e, ERR_NO, pick_given(p) ?
	    "the input has no such shard (--step, --device, --kind): 'ace-inspect brief' lists "
	    "its shards" :
	    "the input has no shard");
}

int
pick_pass(struct reader *r, struct err *e)
{
	const int was = reader_skip_bodies(r, 1);
	int k;

	while ((k = reader_next(r, e)) > 0 && k != READER_SEND)
		continue;
	(void)reader_skip_bodies(r, was);
	return k < 0 ? k : 0;
}

static int
pick_stream(const struct pick *p, struct reader *r, const char *from,
    pick_fn *fn, void *arg, struct err *e)
{
	int k;

	while ((k = reader_to_shard(r, e)) > 0)
		if ((k = pick_wants(p, reader_shard(r)) ?
		    fn(arg, r, from, e) : pick_pass(r, e)) < 0)
			break;
	return k < 0 && k != -ERR_SYS ? err_file(e, k, from) : k;
}

int
pick_each(const struct pick *p, const struct filter *f, const char *path,
    pick_fn *fn, void *arg, struct err *e)
{
	struct source *s;
	struct reader *r;
	struct io *io;
	int k = source_open(&s, path, e);

	if (k < 0)
		return k;
	while ((k = source_next(s, &io, e)) > 0) {
		io_watch(io, filter_piped(f));
		if ((k = reader_open(&r, io, &f->in, e)) == 0)
			k = pick_stream(p, r, source_name(s), fn, arg, e);
		reader_free(r);
		if (k < 0)
			break;
	}
	source_free(s);
	return k;
}
