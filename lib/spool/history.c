#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/temp.h"
#include "device/error_feedback.h"
#include "spool/history.h"
#include "spool/limits.h"

int
history_begin(struct history *m, const struct spool *s, const struct shard *sh,
    const struct schema *sc, struct receipt *r, struct err *e)
{
	char dir[SPOOL_PATH];
	struct io *io;
	int k;

	if ((sh->flags & SHARD_PREDICTED) == 0 ||
	    r->verdict != RECEIPT_ACCEPTED)
		return 0;
	spool_of(s, NULL, spool_device_of(sh), "history", dir);
	if (feedback_cache_open(&m->cache, dir, 0, e) < 0)
		return -ERR_SYS;
	if ((k = spool_temp(s, sh, "history" TEMP_NAME, m->temp, &io, e)) < 0)
		return k;
	if (s->sync == IO_SYNC_FULL)
		io_behind(io);
	if ((k = feedback_cache_begin(m->cache, sh, sc, io, e)) > 0)
		return 0;
	history_drop(m);
	return limits_because(r, e);
}

int
history_group(struct history *m, uint32_t g, int sent, float *x, size_t n,
    struct err *e)
{
	m->next = g + 1;
	return m->cache == NULL ? 0 : feedback_cache_group(m->cache, g, sent, x, n, e);
}

int
history_upto(struct history *m, const struct schema *sc, uint32_t g, float *x,
    struct err *e)
{
	struct schema_span span;
	int k = 0;

	while (m->cache != NULL && m->next < g && k == 0) {
		schema_span(sc, m->next, &span);
		memset(x, 0, span.n * sizeof(*x));
		k = history_group(m, m->next, 0, x, span.n, e);
	}
	return k;
}

int
history_end(struct history *m, const struct spool *s, const struct schema *sc,
    float *x, struct err *e)
{
	int k = history_upto(m, sc, sc->ngroups, x, e);

	if (k < 0 || m->cache == NULL)
		return k;
	k = feedback_cache_commit(m->cache, IO_SYNC_NONE, e);
	return k == 0 && s->sync == IO_SYNC_FULL ? fd_sync_path(m->temp, NULL, e) : k;
}

int
history_keep(struct history *m, const struct spool *s, const struct shard *sh,
    uint64_t keep, struct err *e)
{
	char path[SPOOL_PATH];
	size_t n;
	int k;

	if (m->cache == NULL)
		return 0;
	spool_of(s, NULL, spool_device_of(sh), "history/", path);
	if ((k = spool_made(s, path, e)) < 0)
		return k;
	n = strlen(path);
	(void)snprintf(path + n, sizeof(path) - n, DENSE_HISTORY, (unsigned long long)sh->step);
	if (renameat(AT(m->temp), AT(path)) < 0)
		return err_sys(e, "'%s'", path);
	temp_leave(m->temp);
	m->temp[0] = '\0';
	/* sync the history's name before the shard gets its own: once the shard is accepted,
	 * its device goes on from this history */
	if (s->sync == IO_SYNC_FULL && (k = fd_sync_name(path, e)) < 0)
		return k;
	if (keep != 0)
		feedback_cache_prune(m->cache, keep - 1);
	return 0;
}

void
history_drop(struct history *m)
{
	feedback_cache_free(m->cache);
	if (m->temp[0] != '\0')
		temp_remove(m->temp);
	*m = (struct history)HISTORY_INIT;
}

/* The history of DIR/STEP/DEVICE.aceg is DIR/device/DEVICE.history/history.STEP. */
int
history_open(struct dense *d, const char *path, const struct shard *sh,
    const struct schema *sc, struct err *e)
{
	struct statedir s = STATE_INIT;
	const char *file = strrchr(path, '/'), *step = file;
	char dir[PATH_MAX], name[CACHE_NAME];
	int k;

	memset(d, 0, sizeof(*d));
	while (step != NULL && step > path && *--step != '/')
		continue;
	if (step == NULL || snprintf(dir, sizeof(dir), "%.*s/device/%.*s.history",
	    (int)(step - path), path, (int)strcspn(file + 1, "."),
	    file + 1) >= PATH_MAX)
		return err_set(e, ERR_SYS, "'%s' is not SPOOL/STEP/FILE, or has %d bytes or "
		    "more", path, PATH_MAX);
	s.dir = dir;
	(void)snprintf(name, sizeof(name), DENSE_HISTORY,
	    (unsigned long long)sh->step);
	if ((k = dense_open(d, &s, name, SHARD_HISTORY, " (restore it from a backup)",
	    e)) < 0 ||
	    (k = dense_check(d, sh, sc, e)) < 0)
		return k;
	return d->r != NULL ? 0 : err_set(e, ERR_DATA, "mismatch: the shard is a "
	    "difference to '%s', which is lost: the device begins a new history (%s)",
	    name, dir);
}
