#include "base/err.h"
#include "format/writer.h"
#include "spool/join.h"
#include "spool/manifest.h"
#include "spool/steps.h"

int
join_known(const struct spool *s, const char *device, uint64_t step, struct err *e)
{
	char path[SPOOL_PATH];
	uint64_t before = 0;
	int k = spool_begin(s, NULL, e);

	spool_of(s, NULL, device, SPOOL_KNOWN, path);
	if (k == 0)
		k = spool_number(path, &before, e);
	if (k == 0 || (k > 0 && step < before))
		k = spool_set_number(path, step, s->sync, e);
	return k < 0 ? k : 0;
}

/* ---- a device asks ---- */

/* Fail if a step from `from' on was removed (ace-aggregate --keep).  It is enough to look
 * for the directory of the first of them that is done, since the earliest are removed first. */
static int
join_gone(const struct spool *s, uint64_t from, struct err *e)
{
	struct steps done = STEPS_INIT;
	int k = steps_list(&done, s, STEPS_DONE, from, e);

	if (k == 0 && done.n != 0 &&
	    (k = spool_has(s, &done.step[0], "", e)) == 0)
		k = err_set(e, ERR_REFUSED, "the average of step %llu is absent "
		    "(ace-aggregate --keep removes averages): begin with a model of a "
		    "later step (ace-recv(1), Joining and leaving)",
		    (unsigned long long)done.step[0]);
	steps_release(&done);
	return k < 0 ? k : 0;
}

/* Return 1 if the device has a shard in this step and can still get the step's average: after
 * a crash the device sends that shard again. */
static int
join_took_part(const struct spool *s, const char *device, uint64_t step, struct err *e)
{
	char path[SPOOL_PATH];
	int k = spool_there(spool_of(s, &step, device, "aceg", path), e);

	return k <= 0 || (k = manifest_average(s, step, e)) < 0 ? k :
	    k != MANIFEST_NEVER;
}

int
join_next(const struct spool *s, const char *device, uint64_t from, uint64_t *next,
    struct err *e)
{
	struct steps l = STEPS_INIT;
	struct closed d;
	int k = manifest_closed(s, &d, e);

	*next = d.open;
	if (k == 0 && *next > from && (k = steps_list(&l, s, "", from, e)) == 0)
		k = join_gone(s, from, e);
	if (k == 0 && l.n != 0 && l.step[0] < *next) {
		*next = l.step[0];
		k = join_took_part(s, device, *next, e);
		k = k < 0 ? k : !k;
	}
	steps_release(&l);
	return k;
}

int
join_tell(const char *run, const char *device, uint64_t step, struct writer *w,
    struct err *e)
{
	struct schema none = SCHEMA_INIT;
	struct shard sh;
	int k;

	shard_init(&sh);
	sh.kind = SHARD_MODEL;
	sh.step = step;
	if ((k = schema_finish(&none, e)) == 0 &&
	    (k = shard_set_run(&sh, run, e)) == 0 &&
	    (device[0] == '\0' || (k = shard_set_device(&sh, device, e)) == 0) &&
	    (k = writer_shard(w, &sh, &none, e)) == 0)
		k = writer_send(w, NULL, e);
	shard_release(&sh);
	schema_release(&none);
	return k;
}
