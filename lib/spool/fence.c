#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "pipe/filter.h"
#include "spool/closing.h"
#include "spool/fence.h"
#include "spool/steps.h"

/* ---- what was accepted ---- */

struct fence {
	const struct inbox *s;
	const char *run;
	const struct shard *of;
	struct ledger *got, *gone;
};

static int
fence_ours(const struct fence *a, const struct receipt *r)
{
	return shard_is_of(a->of, r->run, r->device);
}

/* Lists what the manifest names of a step, as far as the files are still there; and
 * of steps that were passed over, what is not there any more. */
static int
fence_listed(struct fence *a, uint64_t step, const struct ledger *list,
    const struct ledger *have, struct err *e)
{
	const struct receipt *r;
	size_t i, j;
	int k = 0;

	for (i = 0; i < list->n && k == 0; i++) {
		r = &list->r[i];
		if (!fence_ours(a, r) || !receipt_is_accepted(r))
			continue;	/* or was set aside */
		if (r->step != step) {
			k = inbox_is_there(a->s, a->run, &r->step, e);
			k = k == 0 && r->verdict == RECEIPT_ACCEPTED ?
			    ledger_add(a->gone, r, "", e) : k < 0 ? k : 0;
			continue;
		}
		for (j = 0; j < have->n; j++)
			if (memcmp(have->r[j].digest, r->digest,
			    SHARD_DIGEST) == 0)
				break;
		k = j < have->n ?
		    ledger_add(a->got, r, have->name[j], e) :
		    ledger_add(a->gone, r, "", e);
	}
	return k;
}

static int
fence_step(struct fence *a, uint64_t step, struct err *e)
{
	struct ledger have, list;
	size_t i;
	int k;

	memset(&have, 0, sizeof(have));
	if ((k = closing_list(a->s, a->run, step, NULL, &have, NULL,
	    e)) == 0 &&
	    (k = steps_manifest(a->s, a->run, step, &list, e)) >= 0) {
		if (k > 0)
			k = fence_listed(a, step, &list, &have, e);
		else
			for (i = 0; i < have.n && k == 0; i++)
				if (fence_ours(a, &have.r[i]))
					k = ledger_add(a->got, &have.r[i],
					    have.name[i], e);
		ledger_release(&list);
	}
	ledger_release(&have);
	return k;
}

int
fence_accepted(const struct inbox *s, const struct shard *of,
    struct ledger *got, struct ledger *gone, struct err *e)
{
	struct fence a = { .s = s, .run = inbox_run_of(of), .of = of,
	    .got = got, .gone = gone };
	struct steps all = STEPS_INIT;	/* that have a directory, or had */
	size_t i;
	int k;

	if ((k = steps_list(&all, s, a.run, "", 0, e)) == 0)
		k = steps_list(&all, s, a.run, "old", 0, e);
	for (i = 0; i < all.n && k == 0; i++)
		k = fence_step(&a, all.step[i], e);
	steps_release(&all);
	return k;
}

/* ---- the answer ---- */

/* Copies the shard in a file, frame by frame. */
static int
fence_shard(const struct inbox *s, const char *run, const struct receipt *rc,
    const char *name, struct writer *w, struct err *e)
{
	struct reader_opts any = { .max_elements = SCHEMA_MAX_TOTAL };
	char *path = inbox_path(s, run, &rc->step, name, e);
	int k = path != NULL ? filter_copy_file(path, &any, w, e) : -ERR_SYS;

	alloc_free(path);
	return k;
}

/* What the device is told must be durable: the process that accepted the shard
 * may have died before it was. */
static int
fence_durable(const struct inbox *s, const char *run, const struct ledger *got,
    struct err *e)
{
	size_t i;
	int k = inbox_durable(s, run, NULL, e);

	for (i = 0; i < got->n && k == 0; i++)
		if (i == 0 || got->r[i].step != got->r[i - 1].step)
			k = inbox_durable(s, run, &got->r[i].step, e);
	return k;
}

static int
fence_answer(const struct inbox *s, const char *run, uint64_t step,
    const struct ledger *got, const struct ledger *gone, struct writer *w,
    struct err *e)
{
	size_t i;
	int k = 0;

	for (i = 0; i < gone->n && k == 0; i++)
		k = writer_receipt(w, &gone->r[i], e);
	for (i = 0; i < got->n && k == 0; i++)
		k = got->r[i].step <= step ?
		    writer_receipt(w, &got->r[i], e) :
		    fence_shard(s, run, &got->r[i], got->name[i], w, e);
	return k;
}

int
fence_send(const struct inbox *s, const char *run, const char *device,
    uint64_t step, struct writer *w, struct err *e)
{
	struct ledger got, gone;
	struct receipt r;
	struct shard of;
	int k;

	memset(&got, 0, sizeof(got));
	memset(&gone, 0, sizeof(gone));
	memset(&r, 0, sizeof(r));
	shard_init(&of);
	if ((k = shard_set_run(&of, run, e)) == 0 &&
	    (k = shard_set_device(&of, device, e)) == 0 &&
	    (k = inbox_sign(s, run, &r, e)) == 0) {
		memcpy(r.run, of.run, SHARD_ID);
		memcpy(r.device, of.device, SHARD_ID);
		r.step = step;
		r.verdict = RECEIPT_FENCED;
		/* nothing old may be accepted any more before one looks what
		 * was */
		k = inbox_raise(s, run, device, &r.version, e);
	}
	if (k == 0 && (k = fence_accepted(s, &of, &got, &gone, e)) == 0 &&
	    (k = fence_durable(s, run, &got, e)) == 0 &&
	    (k = writer_receipt(w, &r, e)) == 0)
		k = fence_answer(s, run, step, &got, &gone, w, e);
	ledger_release(&got);
	ledger_release(&gone);
	shard_release(&of);
	return k;
}

