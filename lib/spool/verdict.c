#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/temp.h"
#include "format/reader.h"
#include "format/writer.h"
#include "spool/history.h"
#include "spool/limits.h"
#include "spool/manifest.h"
#include "spool/receipt_list.h"
#include "spool/verdict.h"

/* Limit on the stored receipts of rejected shards with one name (device, step), since each
 * takes room.  After that many, no other shard with this name is accepted. */
enum { VERDICT_TRIES = 16 };

struct verdict {
	const struct spool *s;
	const struct shard *sh;
	const struct schema *sc;
	const char *temp;
	const char *path, *no;	/* the shard's file; that of receipts of rejected shards */
	struct history *m;
	struct receipt *r;
	struct closed d;
	int model;		/* 1: the shard is known to be of the run's model */
};

/* Give the temporary file its final name. */
static int
verdict_link(const struct verdict *x, struct err *e)
{
	if (linkat(AT(x->temp), AT(x->path), 0) == 0)
		return 0;
	if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)
		return err_set(e, ERR_SYS, "cannot make a hard link '%s': %s: "
		    "put the spool on another file system", x->path, strerror(errno));
	return err_sys(e, "'%s'", x->path);
}

/* Add the refusal to the file of receipts, beside those for other bytes sent under this
 * name, so that the same bytes get the same answer later. */
static int
verdict_refuse(const struct verdict *x, struct err *e)
{
	struct receipt_list l = { .n = 0 };
	int k;

	if ((k = receipt_list_read(&l, x->no, e)) >= 0 &&
	    (k = receipt_list_add(&l, x->r, "", e)) == 0 &&
	    (k = limits_took(x->s, x->sh, &x->d, e)) == 0)
		k = receipt_list_write(&l, x->no, x->s->sync, e);
	receipt_list_release(&l);
	return k;
}

/* Look for the shard's bytes among those rejected before.  Return 1 with their receipt in
 * r; 1 with the verdict invalid in r if VERDICT_TRIES other shards were rejected before;
 * or 0: other bytes may follow, since a device may have been repaired.  closed 1: the step is
 * closed; return 0 for other bytes, which are late, however many were rejected. */
static int
verdict_before(const struct verdict *x, int closed, struct err *e)
{
	struct receipt_list l = { .n = 0 };
	size_t i;
	int k = receipt_list_read(&l, x->no, e);

	if (k == -ERR_DATA)
		(void)err_after(e, k, ": remove the file: the bytes that were refused are then "
		    "judged again");
	for (i = 0; i < l.n && memcmp(l.line[i].r.digest, x->r->digest, SHARD_DIGEST) != 0; i++)
		continue;
	if (k > 0 && i < l.n) {
		*x->r = l.line[i].r;
	} else if (k > 0) {
		k = !closed && l.n >= VERDICT_TRIES;
		if (k > 0)
			limits_refuse(x->r, "%d other shards of this step were invalid: "
			    "send a later step, or remove the receiver's file "
			    "'SPOOL/STEP/NAME.no'", VERDICT_TRIES);
	}
	receipt_list_release(&l);
	return k;
}

/* Look for an earlier verdict on this name.  Return 1 with the verdict in r, or 0 if there is
 * none.  Remove the file of an accepted shard that was damaged in the spool, so that this
 * shard can take its place. */
static int
verdict_known(const struct verdict *x, struct err *e)
{
	struct receipt had;
	int k = verdict_before(x, 0, e);

	if (k != 0)
		return k;
	if ((k = spool_shard(x->path, &had, e)) == -ERR_DATA) {
		err_clear(e);
		return unlinkat(AT(x->path), 0) < 0 && errno != ENOENT ?
		    err_sys(e, "'%s'", x->path) : 0;
	}
	if (k <= 0)
		return k;
	x->r->verdict = memcmp(had.digest, x->r->digest, SHARD_DIGEST) == 0 ?
	    RECEIPT_DUPLICATE : RECEIPT_EQUIVOCATION;
	x->r->reason[0] = '\0';		/* a limit that was lowered since may have set it */
	return 1;
}

/* Set the verdict of a late shard to `invalid' if its device is new and does not know the
 * common model: the device never had a shard in an open step of the run, and the step from
 * which it has the model (spool/join.h) is later or unknown.  A device goes on after a late
 * shard and adds its values to the next; `invalid' stops it, so that no values of another model
 * reach the average.  A shard at most one step before the last closed step stays late. */
static int
verdict_stranger(const struct verdict *x, struct err *e)
{
	const char *device = spool_device_of(x->sh);
	char known[SPOOL_PATH], open[SPOOL_PATH];
	uint64_t from = 0;
	int k = 0;

	spool_of(x->s, NULL, device, SPOOL_KNOWN, known);
	spool_of(x->s, NULL, device, "open", open);
	if (x->d.open - x->sh->step > 2 &&
	    (k = spool_number(known, &from, e)) >= 0 &&
	    (k == 0 || x->sh->step < from) && faccessat(AT(open), F_OK, 0) < 0) {
		x->r->verdict = RECEIPT_INVALID;
		(void)snprintf(x->r->reason, sizeof(x->r->reason), "this device is "
		    "new here, and step %llu is the next: the device has to ask for the "
		    "averages so far (ace-recv(1), Joining and leaving)",
		    (unsigned long long)x->d.open);
	}
	return k < 0 ? k : 0;
}

/* Decide on a shard of a closed step, by the manifest and the receipts of rejected shards. */
static int
verdict_closed(const struct verdict *x, struct err *e)
{
	struct receipt *r = x->r;
	const struct receipt_list_line *had;
	struct receipt_list l;
	int k = manifest_of(x->s, x->sh->step, &l, e);

	if (k < 0)
		return k;
	r->verdict = RECEIPT_LATE;
	(void)snprintf(r->reason, sizeof(r->reason), "step %llu is closed",
	    (unsigned long long)x->sh->step);
	had = receipt_list_find(&l, r);
	if (had != NULL && receipt_is_for(&had->r, x->sh)) {
		r->verdict = memcmp(had->r.digest, r->digest, SHARD_DIGEST) == 0 ?
		    had->r.verdict : RECEIPT_EQUIVOCATION;
		/* the device need not know why its shard waits */
		(void)snprintf(r->reason, sizeof(r->reason), "%s",
		    receipt_is_accepted(&had->r) ? "" : had->r.reason);
	}
	receipt_list_release(&l);
	if (r->verdict == RECEIPT_LATE && (k = verdict_before(x, 1, e)) == 0)
		k = verdict_stranger(x, e);
	return k < 0 ? k : 0;
}

static int
verdict_schema_new(const char *path, const struct schema *sc,
    const struct shard *of, struct err *e)
{
	struct writer *w = NULL;
	struct shard sh;
	int k;

	shard_init(&sh);
	sh.kind = SHARD_HISTORY;
	if ((k = shard_same(&sh, of, e)) == 0 &&
	    (k = writer_file(&w, path, "spool", e)) == 0 &&
	    (k = writer_shard(w, &sh, sc, e)) == 0 &&
	    (k = writer_send(w, NULL, e)) == 0)
		k = writer_end(w, IO_SYNC_FULL, e);
	writer_free(w);
	shard_release(&sh);
	return k;
}

int
verdict_run(const struct spool *s, const struct shard *sh, const struct schema *sc,
    char why[256], struct err *e)
{
	struct reader *r;
	int k = spool_run(s, &r, e);

	if (k > 0 && memcmp(reader_shard(r)->run, sh->run, SHARD_ID) != 0)
		k = err_set(e, ERR_DATA, "mismatch: the shard is of run "
		    "'%.80s', but spool '%.150s' is of run '%.80s'",
		    shard_run(sh), s->state.dir, shard_run(reader_shard(r)));
	else if (k >= 0)
		k = k == 0 ? VERDICT_NEW : schema_diff(sc, reader_schema(r), why) != 0 ?
		    VERDICT_OTHER : VERDICT_SAME;
	reader_free(r);
	return k;
}

int
verdict_head(const struct spool *s, const struct shard *sh,
    const struct schema *sc, struct receipt *r, struct err *e)
{
	char why[256];
	const int k = verdict_run(s, sh, sc, why, e);
	const size_t n = k == VERDICT_OTHER ? strlen(why) : 0;

	if (n != 0)	/* the end of a long text has the values */
		limits_refuse(r, "mismatch: the shard is of another model than run "
		    "'%.24s': %s%.72s", spool_run_of(sh), n > 72 ? "..." : "",
		    &why[n > 72 ? n - 69 : 0]);
	return k < 0 ? k : k == VERDICT_SAME;
}

/* If the run has no model yet, make the shard's model that of the run; if another shard has
 * set another model since verdict_head, refuse the shard. */
static int
verdict_model(const struct verdict *x, struct err *e)
{
	char path[SPOOL_PATH];
	int k = x->model ? 1 : verdict_head(x->s, x->sh, x->sc, x->r, e);

	if (k == 0 && x->r->verdict == RECEIPT_ACCEPTED)
		k = verdict_schema_new(spool_path(x->s, NULL, SPOOL_SCHEMA, path), x->sc,
		    x->sh, e);
	return k < 0 ? k : 0;
}

/* Set the verdict `fenced' for a shard of an older incarnation of the device (a restored
 * backup); store a newer incarnation. */
static int
verdict_fence(const struct verdict *x, struct err *e)
{
	const struct shard *sh = x->sh;
	char path[SPOOL_PATH];
	uint64_t newest = 0;
	int k;

	spool_of(x->s, NULL, spool_device_of(sh), "incarnation", path);
	if ((k = spool_number(path, &newest, e)) < 0)
		return k;
	if (sh->incarnation < newest) {
		x->r->verdict = RECEIPT_FENCED;
		(void)snprintf(x->r->reason, sizeof(x->r->reason), "incarnation "
		    "%lu is older than %llu, the newest", (unsigned long)sh->incarnation,
		    (unsigned long long)newest);
		return 0;
	}
	return sh->incarnation == newest ? 0 :
	    spool_set_number(path, sh->incarnation, x->s->sync, e);
}

/* Decide on a shard of an open step. */
static int
verdict_open(struct verdict *x, struct err *e)
{
	int k;

	/* if the first shards of two runs come at the same time, the spool belongs to
	 * the run that gets the lock first */
	if (x->r->verdict == RECEIPT_ACCEPTED && (k = verdict_model(x, e)) < 0)
		return k;
	if ((k = verdict_known(x, e)) != 0)
		return k < 0 ? k : 0;
	if (x->r->verdict != RECEIPT_ACCEPTED)
		return verdict_refuse(x, e);
	/* the verdict `fenced' is not stored */
	if ((k = verdict_fence(x, e)) < 0 || x->r->verdict != RECEIPT_ACCEPTED)
		return k;
	/* only the accepted shard with this name keeps its history */
	if ((k = history_keep(x->m, x->s, x->sh, x->d.keep, e)) < 0 ||
	    (k = limits_took(x->s, x->sh, &x->d, e)) < 0)
		return k;
	return verdict_link(x, e);
}

/* Decide while the lock prevents closing and other decisions.  Sync the directory without the
 * lock, so that devices do not wait for each other's syncs of it (names of new directories are
 * synced under the lock, once per step).  This also syncs a name that another process made
 * before it died. */
int
verdict_shard(const struct spool *s, const struct shard *sh,
    const struct schema *sc, int model, const char *temp, struct history *m,
    struct receipt *r, struct err *e)
{
	const char *device = spool_device_of(sh);
	struct verdict x = { .s = s, .sh = sh, .sc = sc, .temp = temp, .m = m,
	    .r = r, .model = model };
	char path[SPOOL_PATH], no[SPOOL_PATH];
	int fd = -1, closed = 0, k = 0;

	x.path = spool_of(s, &sh->step, device, "aceg", path);
	x.no = spool_of(s, &sh->step, device, "no", no);
	if (r->verdict == RECEIPT_ACCEPTED && s->sync == IO_SYNC_FULL)
		k = fd_sync_path(temp, NULL, e);
	if (k == 0 && (k = spool_lock(s, &fd, e)) == 0 &&
	    (k = manifest_closed(s, &x.d, e)) == 0) {
		closed = sh->step < x.d.open;
		/* the directory of the step is made only now, and not for a closed step, which may
		 * have been removed, since a device can name any number of steps */
		if (!closed)
			k = spool_begin(s, &sh->step, e);
		if (k == 0)
			k = closed ? verdict_closed(&x, e) : verdict_open(&x, e);
	}
	if (fd >= 0)
		(void)close(fd);
	if (k == 0 && r->verdict != RECEIPT_FENCED)
		k = spool_durable(s, closed ? NULL : &sh->step, e);
	if (r->verdict == RECEIPT_EQUIVOCATION)
		(void)snprintf(r->reason, sizeof(r->reason), "another shard of "
		    "this device and step came before");
	temp_remove(temp);
	r->clock = spool_clock();
	if (k == 0 && x.d.made != 0)
		r->version = x.d.made - 1;
	return k;
}
