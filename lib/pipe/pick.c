#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "format/reader.h"
#include "format/shard.h"
#include "pipe/pick.h"

/* "7", "3-9", "3-", "-9" */
static int
pick_steps(struct pick *p, const char *val, struct err *e)
{
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
		return err_set(e, ERR_USAGE, "--step '%s': A, A-B, A- or -B",
		    val);
	if (dash != val)
		r = num_u64(&p->lo, first, 0, UINT64_MAX, "--step", e);
	if (r == 0 && dash[1] != '\0')
		r = num_u64(&p->hi, dash + 1, 0, UINT64_MAX, "--step", e);
	if (r == 0 && p->lo > p->hi)
		r = err_set(e, ERR_USAGE, "--step '%s': the first is larger",
		    val);
	return r;
}

static int
pick_kind(struct pick *p, const char *val, struct err *e)
{
	for (p->kind = 0; p->kind < SHARD_NKIND; p->kind++)
		if (strcmp(val, shard_kind_name((unsigned)p->kind)) == 0)
			return 0;
	return err_set(e, ERR_USAGE, "--kind '%s': gradient, delta, sum, mean, "
	    "residual, model or history", val);
}

int
pick_set(struct pick *p, int key, const char *val, struct err *e)
{
	int r = 0;

	switch (key) {
	case PICK_STEP:
		r = pick_steps(p, val, e);
		break;
	case PICK_DEVICE:
		p->device = val;
		break;
	case PICK_KIND:
		r = pick_kind(p, val, e);
		break;
	default:
		return 0;
	}
	p->given = 1;
	return r < 0 ? r : 1;
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
pick_pass(struct reader *r, struct err *e)
{
	int k;

	const int was = reader_skim(r, 1);

	while ((k = reader_next(r, e)) > 0 && k != READER_SEND)
		continue;
	(void)reader_skim(r, was);
	return k < 0 ? k : 0;
}
