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
#include "spool/join.h"
#include "spool/ledger.h"
#include "spool/progress.h"
#include "spool/steps.h"

#define JOIN_MODEL "model.aceg"
#define JOIN_TOLD "told"

/* So many removed steps are looked at for a shard of a device, newest first: each
 * takes the reading of a file. */
enum { JOIN_LOOKS = 1000 };

int
join_told(const struct inbox *s, const char *run, const char *device,
    uint64_t step, struct err *e)
{
	char *dir = inbox_path(s, run, NULL, "", e);
	char *path = inbox_of(s, run, NULL, device, JOIN_TOLD, e);
	uint64_t before = 0;
	int k = dir == NULL || path == NULL ? -ERR_SYS : 0;

	if (k == 0 && mkdirat(AT(dir), 0700) < 0 && errno != EEXIST)
		k = err_sys(e, "'%s'", dir);
	if (k == 0)
		k = ledger_number(path, &before, e);
	if (k == 0 || (k > 0 && step < before))
		k = ledger_set_number(path, step, s->sync, e);
	alloc_free(dir);
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

/* The first step that is not closed. */
static int
join_open(const struct inbox *s, const char *run, uint64_t *next, struct err *e)
{
	struct ledger l;
	int k = inbox_floor(s, run, next, e);

	if (k == 0)
		*next = 0;
	if (k <= 0)
		return k;
	if ((k = steps_manifest(s, run, *next, &l, e)) > 0) {
		ledger_release(&l);
		++*next;
	}
	return k < 0 ? k : 0;
}

/* The aggregate of a step: 1 when there is none. */
static int
join_copy_step(const struct inbox *s, const char *run, uint64_t step,
    struct writer *w, struct err *e)
{
	struct reader_opts any = { .max_elements = SCHEMA_MAX_TOTAL };
	char *path = inbox_path(s, run, &step, "aggregate.aceg", e);
	int k;

	if (path == NULL)
		return -ERR_SYS;
	if (faccessat(AT(path), F_OK, 0) < 0)
		k = errno == ENOENT ? 1 : err_sys(e, "'%s'", path);
	else if ((k = inbox_durable(s, run, &step, e)) == 0)
		k = filter_copy_file(path, &any, w, e);
	alloc_free(path);
	return k;
}

/* Says that what was told is not all that the others know. */
static void
join_missing(const struct inbox *s, const char *run, const struct steps *l,
    size_t first, size_t n)
{
	if (s->wait != NULL)
		progress_say(s->wait, "run '%s': the aggregates of %zu closed "
		    "steps, the first of them %llu, are not in the spool "
		    "(ace-recv --publish); who joins is not told them", run, n,
		    (unsigned long long)l->step[first]);
}

/* A step was removed (ace-aggregate --keep) that the model does not have, or whoever
 * asks. */
static int
join_gone(const struct steps *old, const char *run, const char *how,
    struct err *e)
{
	return err_set(e, ERR_REFUSED, "the aggregate of step %llu of run "
	    "'%.80s' was removed (ace-aggregate --keep): %s",
	    (unsigned long long)old->step[0], run, how);
}

int
join_send(const struct inbox *s, const char *run, const char *device,
    struct writer *w, struct err *e)
{
	struct steps now = STEPS_INIT, old = STEPS_INIT;
	uint64_t next, open = 0;
	size_t i, first = 0, n = 0;
	char *path;
	int k = join_copy_model(s, run, &next, w, e);

	if (k == 0 && (k = steps_list(&old, s, run, "old", next, e)) == 0)
		k = old.n != 0 ? join_gone(&old, run, "put a newer model into "
		    "the spool first (ace-recv --publish)", e) :
		    steps_list(&now, s, run, "", next, e);
	if (k >= 0)
		k = join_open(s, run, &open, e);
	for (i = 0; i < now.n && k >= 0; i++)
		if ((k = join_copy_step(s, run, now.step[i], w, e)) > 0 &&
		    now.step[i] < open && (k = inbox_aggregate(s, run,
		    now.step[i], &path, e)) == INBOX_COMING && n++ == 0)
			first = i;
	if (k >= 0 && n != 0)
		join_missing(s, run, &now, first, n);
	if (k >= 0)		/* whoever it was that let it in */
		k = join_told(s, run, device, 0, e);
	steps_release(&now);
	steps_release(&old);
	return k < 0 ? k : 0;
}

/* Return 1 if the device has a shard in this step that it may send again: it may not
 * where the step was closed and all of it set aside. */
static int
join_took_part(const struct inbox *s, const struct join_asked *q, uint64_t step,
    struct err *e)
{
	char *path = inbox_of(s, q->run, &step, q->device, "aceg", e);
	struct ledger l;
	int k = path != NULL ? faccessat(AT(path), F_OK, 0) == 0 : -ERR_SYS;

	alloc_free(path);
	if (k <= 0 || (k = steps_manifest(s, q->run, step, &l, e)) < 0)
		return k;
	ledger_release(&l);
	if (k == 0 || (k = inbox_aggregate(s, q->run, step, &path, e)) < 0)
		return k < 0 ? k : 1;
	alloc_free(path);
	return k != INBOX_NEVER;
}

int
join_next(const struct inbox *s, const struct join_asked *q, uint64_t *next,
    struct err *e)
{
	struct steps l = STEPS_INIT, old = STEPS_INIT;
	int k = join_open(s, q->run, next, e);

	if (k == 0 && *next > q->step &&
	    (k = steps_list(&l, s, q->run, "", q->step, e)) == 0 &&
	    (k = steps_list(&old, s, q->run, "old", q->step, e)) == 0 &&
	    old.n != 0)
		k = join_gone(&old, q->run, "a device that lacks it "
		    "has to be let in (ace-recv --join)", e);
	if (k == 0 && l.n != 0 && l.step[0] < *next) {
		*next = l.step[0];
		k = join_took_part(s, q, *next, e);
		k = k < 0 ? k : !k;
	}
	steps_release(&l);
	steps_release(&old);
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

/* ---- who did not ask ---- */

/* Was a shard of this device ever accepted?  The steps at which it would have
 * been told most likely come last. */
static int
join_known(const struct inbox *s, const struct shard *sh, struct err *e)
{
	struct steps now = STEPS_INIT, old = STEPS_INIT;
	const char *run = inbox_run_of(sh);
	const char *device = inbox_device_of(sh);
	char *path;
	struct ledger l;
	size_t i, j;
	int k = steps_list(&now, s, run, "", 0, e), known = 0;

	for (i = now.n; k >= 0 && !known && i > 0; i--) {
		path = inbox_of(s, run, &now.step[i - 1], device, "aceg", e);
		k = path != NULL ? 0 : -ERR_SYS;
		known = path != NULL && faccessat(AT(path), F_OK, 0) == 0;
		alloc_free(path);
	}
	if (k >= 0 && !known)
		k = steps_list(&old, s, run, "old", 0, e);
	for (i = old.n; k >= 0 && !known && i > 0 &&
	    old.n - i < JOIN_LOOKS; i--) {
		k = steps_manifest(s, run, old.step[i - 1], &l, e);
		for (j = 0; k > 0 && !known && j < l.n; j++)
			known = receipt_is_accepted(&l.r[j]) && memcmp(
			    l.r[j].device, sh->device, SHARD_ID) == 0;
		ledger_release(&l);
	}
	steps_release(&now);
	steps_release(&old);
	return k < 0 ? k : known;
}

int
join_stranger(const struct inbox *s, const struct shard *sh, uint64_t floor,
    uint64_t *next, struct err *e)
{
	uint64_t told;
	char *path;
	int k;

	if (sh->step >= floor || floor - sh->step < 2)
		return 0;
	if ((path = inbox_of(s, inbox_run_of(sh), NULL, inbox_device_of(sh),
	    JOIN_TOLD, e)) == NULL)
		return -ERR_SYS;
	k = ledger_number(path, &told, e);
	alloc_free(path);
	if (k < 0 || (k > 0 && sh->step >= told))
		return k < 0 ? k : 0;
	if ((k = join_known(s, sh, e)) != 0)
		return k < 0 ? k : 0;
	k = join_open(s, inbox_run_of(sh), next, e);
	return k < 0 ? k : 1;
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
		    "difference, %s; who joins needs a whole model",
		    shard_is_patch(sh) ? "a patch of ace-diff" : "to a history"),
		    e);
	return filter_copy(in, w, e);
}

/* All of them, into the place of the model that was. */
static int
join_place(const struct inbox *s, const char *run, struct reader *in,
    struct err *e)
{
	char *dir = inbox_path(s, run, NULL, "", e);
	char *path = inbox_path(s, run, NULL, JOIN_MODEL, e);
	struct writer *w = NULL;
	int k = dir == NULL || path == NULL ? -ERR_SYS : 0;

	if (k == 0 && mkdirat(AT(dir), 0700) < 0 && errno != EEXIST)
		k = err_sys(e, "'%s'", dir);
	if (k == 0 && (k = writer_file(&w, path, "ace-recv", e)) == 0 &&
	    (k = join_put(run, in, w, e)) == 0)
		while ((k = reader_to_shard(in, e)) > 0)
			if ((k = join_put(run, in, w, e)) < 0)
				break;
	if (k == 0 && (k = writer_end(w, s->sync, e)) == 0)
		k = inbox_durable(s, run, NULL, e);
	writer_free(w);
	alloc_free(dir);
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
		return err_set(e, ERR_USAGE, "a model of which run? (--run "
		    "NAME)");
	/* the next shard takes the place of the one that says it */
	if ((copy = alloc_dup(run, e)) == NULL)
		return -ERR_SYS;
	k = join_place(s, copy, in, e);
	alloc_free(copy);
	return k;
}
