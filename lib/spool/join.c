#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/reader.h"
#include "format/writer.h"
#include "pipe/filter.h"
#include "spool/join.h"
#include "spool/steps.h"

#define JOIN_MODEL "model.aceg"

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

/* The aggregate of a step, if there is one. */
static int
join_copy_step(const struct inbox *s, const char *run, uint64_t step,
    struct writer *w, struct err *e)
{
	struct reader_opts any = { .max_elements = SCHEMA_MAX_TOTAL };
	char *path = inbox_path(s, run, &step, "aggregate.aceg", e);
	int k;

	if (path == NULL)
		return -ERR_SYS;
	if (access(path, F_OK) < 0)
		k = errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	else if ((k = inbox_durable(s, run, &step, e)) == 0)
		k = filter_copy_file(path, &any, w, e);
	alloc_free(path);
	return k;
}

/* A step was removed (ace-aggregate --keep) that the model does not have. */
static int
join_gone(const struct steps *old, const char *run, struct err *e)
{
	return err_set(e, ERR_REFUSED, "the aggregate of step %llu of run "
	    "'%.80s' was removed (ace-aggregate --keep): put a newer model into "
	    "the spool first (ace-recv --publish)",
	    (unsigned long long)old->step[0], run);
}

int
join_send(const struct inbox *s, const char *run, struct writer *w,
    struct err *e)
{
	struct steps now = STEPS_INIT, old = STEPS_INIT;
	uint64_t next;
	size_t i;
	int k = join_copy_model(s, run, &next, w, e);

	if (k == 0 && (k = steps_list(&old, s, run, "old", next, e)) == 0)
		k = old.n != 0 ? join_gone(&old, run, e) :
		    steps_list(&now, s, run, "", next, e);
	for (i = 0; i < now.n && k >= 0; i++)
		k = join_copy_step(s, run, now.step[i], w, e);
	steps_release(&now);
	steps_release(&old);
	return k < 0 ? k : 0;
}

/* ---- a model comes ---- */

int
join_model(const struct inbox *s, const char *run, struct reader *in,
    struct err *e)
{
	struct writer_opts wo = { "ace-recv", NULL, 0 };
	struct writer *w = NULL;
	struct io *io;
	char *path;
	int k;

	if (run == NULL)
		run = text_get(&reader_shard(in)->kv, SHARD_KEY_RUN);
	if (run == NULL)
		return err_set(e, ERR_USAGE, "a model of which run? (--run "
		    "NAME)");
	if ((path = inbox_path(s, run, NULL, JOIN_MODEL, e)) == NULL)
		return -ERR_SYS;
	if ((k = io_create(&io, path, 0, e)) == 0 &&
	    (k = writer_open(&w, io, &wo, e)) == 0 &&
	    (k = filter_copy(in, w, e)) == 0)
		while ((k = reader_next(in, e)) > 0)
			if (k == READER_SHARD && (k = filter_copy(in, w, e)) < 0)
				break;
	if (k == 0 && (k = writer_end(w, s->sync, e)) == 0)
		k = inbox_durable(s, run, NULL, e);
	writer_free(w);
	alloc_free(path);
	return k;
}
