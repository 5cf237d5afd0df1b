#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "format/reader.h"
#include "format/writer.h"
#include "pipe/filter.h"
#include "spool/decide.h"
#include "spool/join.h"
#include "spool/ledger.h"
#include "spool/progress.h"
#include "spool/steps.h"

#define JOIN_MODEL "model.aceg"

int
join_known(const struct inbox *s, const char *run, const char *device,
    uint64_t step, struct err *e)
{
	char *path = inbox_of(s, run, NULL, device, INBOX_KNOWN, e);
	uint64_t before = 0;
	int k = path == NULL ? -ERR_SYS : inbox_begin(s, run, NULL, e);

	if (k == 0)
		k = ledger_number(path, &before, e);
	if (k == 0 || (k > 0 && step < before))
		k = ledger_set_number(path, step, s->sync, e);
	alloc_free(path);
	return k < 0 ? k : 0;
}

/* ---- what is sent ---- */

/* Copies the model, and *next becomes the first step whose aggregate is not in
 * it. */
static int
join_copy_model(const struct inbox *s, const char *run, uint64_t *next,
    struct writer *w, struct err *e)
{
	char *path = inbox_path(s, run, NULL, JOIN_MODEL, e);
	struct reader *r = NULL;
	struct io *io;
	int k, first = 1;

	*next = 0;
	if (path == NULL)
		return -ERR_SYS;
	if ((k = io_open_kept(&io, path, e)) > 0 &&
	    (k = reader_open(&r, io, NULL, e)) == 0)
		while ((k = reader_next(r, e)) > 0) {
			if (k != READER_SHARD)
				continue;
			if (first)
				*next = reader_shard(r)->step;
			first = 0;
			if ((k = filter_copy(r, w, e)) < 0)
				break;
		}
	reader_free(r);
	alloc_free(path);
	return k;
}

/* ---- a device asks ---- */

/* Says that what was told is not all that the others know. */
static void
join_missing(const struct inbox *s, const char *run, const struct steps *l,
    size_t first, size_t n)
{
	if (s->wait != NULL)
		progress_say(s->wait, "run '%s': the averages of %zu closed "
		    "steps, the first of them %llu, are not in the spool "
		    "(ace-recv --publish); a device that joins does not get "
		    "them", run, n,
		    (unsigned long long)l->step[first]);
}

/* Fail where a step from `from' on was removed (ace-aggregate --keep), which the model
 * does not have, or the device that asks.  The first ones are removed first. */
static int
join_gone(const struct inbox *s, const char *run, uint64_t from, const char *how,
    struct err *e)
{
	struct steps done = STEPS_INIT;
	int k = steps_list(&done, s, run, STEPS_DONE, from, e);

	if (k == 0 && done.n != 0 &&
	    (k = inbox_has(s, run, &done.step[0], "", e)) == 0)
		k = err_set(e, ERR_REFUSED, "the aggregate of step %llu of run "
		    "'%.80s' was removed (ace-aggregate --keep): %s",
		    (unsigned long long)done.step[0], run, how);
	steps_release(&done);
	return k < 0 ? k : 0;
}

int
join_send(const struct inbox *s, const char *run, const char *device,
    struct writer *w, struct err *e)
{
	const struct reader_opts any = { .max_elements = SCHEMA_MAX_TOTAL };
	struct steps now = STEPS_INIT;
	uint64_t next, open = 0;
	size_t i, first = 0, n = 0;
	char *path;
	int k = join_copy_model(s, run, &next, w, e);

	if (k == 0 && (k = join_gone(s, run, next, "put a newer model into "
	    "the spool first (ace-recv --publish)", e)) == 0)
		k = steps_list(&now, s, run, "", next, e);
	if (k >= 0)
		k = decide_next(s, run, &open, e);
	for (i = 0; i < now.n && k >= 0; i++) {
		k = decide_aggregate(s, run, now.step[i], &path, e);
		if (k == DECIDE_HERE)
			k = filter_copy_file(path, &any, w, e);
		else if (k == DECIDE_COMING && now.step[i] < open && n++ == 0)
			first = i;
		alloc_free(path);
	}
	if (k >= 0 && n != 0)
		join_missing(s, run, &now, first, n);
	if (k >= 0)		/* whoever it was that let it in */
		k = join_known(s, run, device, 0, e);
	steps_release(&now);
	return k < 0 ? k : 0;
}

/* Return 1 if the device has a shard in this step that it may send again: it may not
 * where the step was closed and all of it set aside. */
static int
join_took_part(const struct inbox *s, const struct join_asked *q, uint64_t step,
    struct err *e)
{
	char *path = inbox_of(s, q->run, &step, q->device, "aceg", e);
	int k = path != NULL ? faccessat(AT(path), F_OK, 0) == 0 : -ERR_SYS;

	alloc_free(path);
	if (k <= 0 || (k = decide_aggregate(s, q->run, step, &path, e)) < 0)
		return k;
	alloc_free(path);
	return k != DECIDE_NEVER;
}

int
join_next(const struct inbox *s, const struct join_asked *q, uint64_t *next,
    struct err *e)
{
	struct steps l = STEPS_INIT;
	int k = decide_next(s, q->run, next, e);

	if (k == 0 && *next > q->step &&
	    (k = steps_list(&l, s, q->run, "", q->step, e)) == 0)
		k = join_gone(s, q->run, q->step, "a device that lacks it "
		    "has to be let in (ace-recv --join)", e);
	if (k == 0 && l.n != 0 && l.step[0] < *next) {
		*next = l.step[0];
		k = join_took_part(s, q, *next, e);
		k = k < 0 ? k : !k;
	}
	steps_release(&l);
	return k;
}

int
join_tell(const struct join_asked *q, struct writer *w, struct err *e)
{
	struct schema none = SCHEMA_INIT;
	struct shard sh;
	int k;

	shard_init(&sh);
	sh.kind = SHARD_MODEL;
	sh.step = q->step;
	if ((k = schema_finish(&none, e)) == 0 &&
	    (k = shard_set_run(&sh, q->run, e)) == 0 &&
	    (q->device[0] == '\0' ||
	    (k = shard_set_device(&sh, q->device, e)) == 0) &&
	    (k = writer_shard(w, &sh, &none, e)) == 0)
		k = writer_send(w, NULL, e);
	shard_release(&sh);
	schema_release(&none);
	return k;
}

/* ---- a model comes ---- */

/* A shard of what is to be the model: of its run, and no difference, which would be
 * of no use to who joins. */
static int
join_put(const char *run, struct reader *in, struct writer *w, struct err *e)
{
	const struct shard *sh = reader_shard(in);
	const char *own = text_get(&sh->kv, SHARD_KEY_RUN);

	if (own != NULL && !inbox_fits(run, own))
		return reader_place(in, err_set(e, ERR_DATA, "mismatch: a model of "
		    "run '%.80s', not '%.80s'", own, run), e);
	if ((sh->flags & SHARD_PREDICTED) != 0)
		return reader_place(in, err_set(e, ERR_DATA, "mismatch: a "
		    "difference, %s; a device that joins needs a whole model",
		    shard_is_patch(sh) ? "a patch of ace-diff" : "to a history"),
		    e);
	return filter_copy(in, w, e);
}

/* All of them, into the place of the model that was. */
static int
join_place(const struct inbox *s, const char *run, struct reader *in,
    struct err *e)
{
	char *path = inbox_path(s, run, NULL, JOIN_MODEL, e);
	struct writer *w = NULL;
	int k = path == NULL ? -ERR_SYS : inbox_begin(s, run, NULL, e);

	if (k == 0 && (k = writer_file(&w, path, "ace-recv", e)) == 0 &&
	    (k = join_put(run, in, w, e)) == 0)
		while ((k = reader_to_shard(in, e)) > 0)
			if ((k = join_put(run, in, w, e)) < 0)
				break;
	if (k == 0)
		k = writer_end(w, s->sync, e);
	writer_free(w);
	alloc_free(path);
	return k;
}

int
join_model(const struct inbox *s, const char *run, struct reader *in,
    struct err *e)
{
	const char *own = text_get(&reader_shard(in)->kv, SHARD_KEY_RUN);
	char *copy;
	int k;

	if (own != NULL && run != NULL && !inbox_fits(run, own))
		return err_set(e, ERR_DATA, "mismatch: a model of run '%.80s', "
		    "not '%.80s'", own, run);
	if (own != NULL)
		run = own;
	if (run == NULL || strchr(run, '*') != NULL)
		return err_set(e, ERR_USAGE, "the run of the model is missing: "
		    "--run NAME");
	/* the next shard takes the place of the one that says it */
	if ((copy = alloc_dup(run, e)) == NULL)
		return -ERR_SYS;
	k = join_place(s, copy, in, e);
	alloc_free(copy);
	return k;
}
