#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "spool/manifest.h"
#include "spool/receipt_list.h"
#include "spool/steps.h"

#define MANIFEST_CLOSED "closed"

/* Set name to the file name that a step's manifest gets when the step is done. */
static const char *
manifest_name(uint64_t step, char name[48])
{
	(void)snprintf(name, 48, STEPS_DONE "/%llu", (unsigned long long)step);
	return name;
}

static int
manifest_is_done(const struct spool *s, uint64_t step, struct err *e)
{
	char name[48];

	return spool_has(s, NULL, manifest_name(step, name), e);
}

/* Read the manifest at path.  Return 1, or 0 if it is absent. */
static int
manifest_read(struct receipt_list *l, const char *path, struct err *e)
{
	int k = receipt_list_read(l, path, e);

	return k > 0 && l->n == 0 ? err_set(e, ERR_DATA, "corrupt: manifest '%s' "
	    "lists no shard", path) : k;
}

/* Fail because the newest manifest, at path, is damaged (absent 0) or missing (absent 1);
 * return 0 if it is missing and no step is done.  The message says how to continue after the
 * newest manifest that can be read.  Later steps are then closed again, with the same shards.
 * If the command is too long or the path has a quote, the message names ace-recv(1) instead. */
static int
manifest_remedy(const struct spool *s, const char *path, int absent, struct err *e)
{
	struct steps done = STEPS_INIT;
	struct receipt_list l = { .n = 0 };
	struct err unread = ERR_INIT;
	char name[48], from[SPOOL_PATH], how[sizeof(unread.text)];
	size_t i, bad, n;
	int k = steps_list(&done, s, STEPS_DONE, 0, absent ? e : &unread);

	if (k == 0 && absent && done.n != 0)
		(void)err_set(e, ERR_DATA, "corrupt: '%s' is missing", path);
	else if (absent)
		goto out;
	if (e != NULL)
		e->has_byte = 0;	/* users would type the offset after the command, too */
	for (i = done.n; k == 0 && i-- > 0; err_clear(&unread)) {
		spool_path(s, NULL, manifest_name(done.step[i], name), from);
		k = manifest_read(&l, from, &unread) > 0;
		n = (size_t)snprintf(how, sizeof(how), "type: (cd '%s' && ln -f %s "
		    MANIFEST_CLOSED, s->state.dir, name);
		for (bad = i + 1; bad < done.n && n < sizeof(how); bad++)
			n += (size_t)snprintf(how + n, sizeof(how) - n, " && rm %s",
			    manifest_name(done.step[bad], name));
		if (k != 0 && e != NULL)
			(void)err_after(e, 0, "; to go on after step %llu, %s",
			    (unsigned long long)done.step[i], n + strlen(e->text) + 64 <
			    sizeof(how) && strchr(s->state.dir, '\'') == NULL ?
			    strcat(how, ")") : "see closed in ace-recv(1)");
		receipt_list_release(&l);
	}
	if (k == 0)
		(void)err_after(e, 0, ": restore the spool from a backup");
	k = -ERR_DATA;
out:
	steps_release(&done);
	return k;
}

int
manifest_closed(const struct spool *s, struct closed *d, struct err *e)
{
	struct spool_seen *x = s->seen;
	struct receipt_list l = { .n = 0 };
	char path[SPOOL_PATH];
	struct stat st;
	size_t i = 0;
	int k;

	memset(d, 0, sizeof(*d));
	spool_path(s, NULL, MANIFEST_CLOSED, path);
	if (fstatat(AT(path), &st, 0) < 0)
		return errno == ENOENT || errno == ENOTDIR ?
		    manifest_remedy(s, path, 1, e) : err_sys(e, "'%s'", path);
	if (x->file != st.st_ino || x->time.tv_sec != st.st_mtim.tv_sec ||
	    x->time.tv_nsec != st.st_mtim.tv_nsec) {
		k = manifest_read(&l, path, e);
		while (i < l.n && l.line[i].r.verdict != RECEIPT_DUPLICATE)
			i++;
		if (k > 0)
			*x = (struct spool_seen){ st.st_ino, st.st_mtim,
			    l.line[l.n - 1].r.step, l.line[l.n - 1].r.version,
			    l.line[0].r.step, i < l.n ? l.line[i].r.step : UINT64_MAX };
		receipt_list_release(&l);
		if (k <= 0)
			return k == -ERR_DATA ? manifest_remedy(s, path, 0, e) : k;
	}
	d->open = x->step + 1;
	if ((k = manifest_is_done(s, x->step, e)) > 0)
		d->made = d->open;
	else if (k == 0 && (k = manifest_is_done(s, x->version, e)) > 0)
		d->made = x->version + 1;
	d->keep = d->made == d->open ? x->waits : x->first;
	if (d->keep > d->made)
		d->keep = d->made;
	return k < 0 ? k : 0;
}

/* Set *step, a closed step, to the step whose manifest has its shards: a later step if *step
 * was passed over, otherwise *step itself. */
static int
manifest_into(const struct spool *s, const struct closed *d, uint64_t *step,
    struct err *e)
{
	struct steps l = STEPS_INIT;
	int k = *step + 1 == d->open ? 1 : manifest_is_done(s, *step, e);

	if (k == 0) {
		k = steps_list(&l, s, STEPS_DONE, *step, e);
		*step = k == 0 && l.n != 0 ? l.step[0] : d->open - 1;
		steps_release(&l);
	}
	return k < 0 ? k : 0;
}

int
manifest_of(const struct spool *s, uint64_t step, struct receipt_list *l,
    struct err *e)
{
	struct closed d;
	uint64_t into;
	char name[48], path[SPOOL_PATH];
	int k;

	memset(l, 0, sizeof(*l));
	do {
		receipt_list_release(l);
		into = step;
		if ((k = manifest_closed(s, &d, e)) < 0 || step >= d.open ||
		    (k = manifest_into(s, &d, &into, e)) < 0)
			return k;
		k = manifest_read(l, spool_path(s, NULL, into + 1 == d.open ?
		    MANIFEST_CLOSED : manifest_name(into, name), path), e);
		/* another step may have been closed meanwhile */
	} while (k > 0 && into + 1 == d.open && l->line[l->n - 1].r.step > into);
	if (k == -ERR_DATA)
		(void)err_after(e, k, ": restore it from a backup");
	else if (k == 0 || (k > 0 && l->line[l->n - 1].r.step != into))
		k = err_set(e, ERR_DATA, "corrupt: '%s' %s the manifest of step %llu: restore "
		    "it from a backup", path, k == 0 ? "is missing, expected" : "is not",
		    (unsigned long long)into);
	if (k < 0)
		receipt_list_release(l);
	return k;
}

int
manifest_average(const struct spool *s, uint64_t step, struct err *e)
{
	struct receipt_list l;
	size_t i;
	int k = spool_has(s, &step, SPOOL_AVERAGE, e), counts = 0;

	/* the process that stored the average may have died before syncing it */
	if (k > 0 && (k = spool_durable(s, &step, e)) == 0)
		return MANIFEST_HERE;
	if (k < 0 || (k = manifest_of(s, step, &l, e)) <= 0)
		return k < 0 ? k : MANIFEST_COMING;
	for (i = 0; i < l.n; i++)
		counts |= l.line[i].r.verdict == RECEIPT_ACCEPTED;
	/* a step that was passed over is in the manifest of a later step */
	counts &= l.line[l.n - 1].r.step == step;
	receipt_list_release(&l);
	/* ace-aggregate --keep removes a step's directory with the average */
	if (counts && (k = spool_has(s, &step, "", e)) < 0)
		return k;
	return counts && k > 0 ? MANIFEST_COMING : MANIFEST_NEVER;
}

/* ---- closing ---- */

int
manifest_close(const struct spool *s, const struct closed *d, struct receipt_list *l,
    struct err *e)
{
	char path[SPOOL_PATH], done[SPOOL_PATH];
	size_t i;
	int k = spool_made(s, spool_path(s, NULL, STEPS_DONE "/", done), e);

	for (i = 0; i < l->n; i++)
		l->line[i].r.version = d->made != 0 ? d->made - 1 : 0;
	/* a process that linked a shard may have died before the name was durable; the
	 * manifest to be replaced must have a durable second name */
	for (i = 0; i < l->n && k == 0; i++)
		if (i == 0 || l->line[i].r.step != l->line[i - 1].r.step)
			k = spool_durable(s, &l->line[i].r.step, e);
	if (k == 0 && d->made != 0 && d->made == d->open && s->sync == IO_SYNC_FULL)
		k = fd_sync_name(done, e);
	if (k == 0)
		k = receipt_list_write(l, spool_path(s, NULL, MANIFEST_CLOSED, path),
		    s->sync, e);
	return k;
}

int
manifest_done(const struct spool *s, uint64_t step, struct err *e)
{
	char name[48], from[SPOOL_PATH], to[SPOOL_PATH];

	spool_path(s, NULL, MANIFEST_CLOSED, from);
	spool_path(s, NULL, manifest_name(step, name), to);
	return linkat(AT(from), AT(to), 0) < 0 && errno != EEXIST ?
	    err_sys(e, "'%s'", to) : 0;
}
