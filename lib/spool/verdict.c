#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/temp.h"
#include "spool/admit.h"
#include "spool/join.h"
#include "spool/ledger.h"
#include "spool/mirror.h"
#include "spool/steps.h"
#include "spool/verdict.h"

/* So many rejected tries of one shard's name are remembered, and no more are let
 * in: their receipts take room. */
enum { VERDICT_TRIES = 16 };

enum verdict_says {
	VERDICT_NO,		/* not accepted: the receipt says why */
	VERDICT_YES,
	VERDICT_ALONE		/* retry with the exclusive lock */
};

/* Gives the temporary file its final name: 1 done, 0 there is such a file. */
static int
verdict_link(const char *from, const char *to, struct err *e)
{
	if (linkat(AT(from), AT(to), 0) < 0) {
		if (errno == EEXIST)
			return 0;
		if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)
			return err_set(e, ERR_SYS, "'%s': the file system of "
			    "the spool has no hard links", to);
		return err_sys(e, "'%s'", to);
	}
	return 1;
}

/* The path of the file with the receipt of this shard, if it is rejected. */
static char *
verdict_no(const struct inbox *s, const struct shard *sh, struct err *e)
{
	return inbox_of(s, inbox_run_of(sh), &sh->step, inbox_device_of(sh),
	    "no", e);
}

/* Writes the rejection to disk, so that every later answer is the same; beside
 * those of other bytes under this name. */
static int
verdict_refuse(const struct inbox *s, const struct shard *sh, struct receipt *r,
    struct err *e)
{
	char *path = verdict_no(s, sh, e);
	struct ledger l;
	int k;

	if (path == NULL)
		return -ERR_SYS;
	memset(&l, 0, sizeof(l));
	if ((k = ledger_read(&l, path, e)) >= 0 &&
	    (k = ledger_add(&l, r, "", e)) == 0 &&
	    (k = admit_took(s, sh, e)) == 0)
		k = ledger_write(&l, path, s->sync, e);
	ledger_release(&l);
	alloc_free(path);
	return k;
}

/* Were these bytes rejected before?  1 and the receipt is in r, or 0.  A rejected
 * try leaves the name free: a device that is put right may say it again, in other
 * bytes.  But not without end, nor when the reason was not the shard's own. */
static int
verdict_rejected(const struct ledger *l, const char *path, int closed,
    struct receipt *r, struct err *e)
{
	const struct receipt *old = NULL;
	size_t i, n = 0;

	for (i = 0; i < l->n; i++)
		if (memcmp(l->r[i].digest, r->digest, SHARD_DIGEST) == 0) {
			old = &l->r[i];
			n++;
		}
	if (l->n == 0 || n > 1)
		return err_set(e, ERR_DATA, "corrupt: '%s'", path);
	if (old != NULL)
		*r = *old;
	else if (closed || (l->n < VERDICT_TRIES &&
	    l->r[l->n - 1].verdict == RECEIPT_INVALID))
		return 0;
	else
		r->verdict = RECEIPT_EQUIVOCATION;
	return 1;
}

/* The same, by the file of the rejected. */
static int
verdict_before(const struct inbox *s, const struct shard *sh, int closed,
    struct receipt *r, struct err *e)
{
	char *no = verdict_no(s, sh, e);
	struct ledger l;
	int k;

	if (no == NULL)
		return -ERR_SYS;
	memset(&l, 0, sizeof(l));
	if ((k = ledger_read(&l, no, e)) > 0)
		k = verdict_rejected(&l, no, closed, r, e);
	ledger_release(&l);
	alloc_free(no);
	return k;
}

/* Was a shard of this name accepted?  1 and the verdict is in r, or 0. */
static int
verdict_there(const char *path, struct receipt *r, struct err *e)
{
	unsigned char digest[SHARD_DIGEST];
	int k = ledger_digest(path, digest, e);

	if (k <= 0)
		return k;
	r->verdict = memcmp(digest, r->digest, SHARD_DIGEST) == 0 ?
	    RECEIPT_DUPLICATE : RECEIPT_EQUIVOCATION;
	return 1;
}

/* Was there a verdict on this name before?  1 and it is in r, or 0. */
static int
verdict_known(const struct inbox *s, const struct shard *sh, const char *path,
    struct receipt *r, struct err *e)
{
	int k = verdict_before(s, sh, 0, r, e);

	return k != 0 ? k : verdict_there(path, r, e);
}

/* A late shard comes back in a later one.  Of a device that comes into the run
 * and does not know what the others do, all of them would, at once.  Returns 1, and
 * the verdict on a late shard is in r. */
static int
verdict_stranger(const struct inbox *s, const struct shard *sh,
    struct receipt *r, struct err *e)
{
	uint64_t floor = 0, next = 0;
	int k = inbox_floor(s, inbox_run_of(sh), &floor, e);

	if (k > 0)
		k = join_stranger(s, sh, floor, &next, e);
	if (k > 0) {
		r->verdict = RECEIPT_INVALID;
		(void)snprintf(r->reason, sizeof(r->reason), "this device is new "
		    "here, and step %llu is the next: it has to ask for what "
		    "the others know (ace-recv(1), Joining and leaving)",
		    (unsigned long long)next);
	}
	return k < 0 ? k : 1;
}

/* Is the step closed?  1 and the verdict that follows is in r, or 0. */
static int
verdict_closed(const struct inbox *s, const struct shard *sh, const char *path,
    struct receipt *r, struct err *e)
{
	const char *run = inbox_run_of(sh);
	struct ledger l;
	uint64_t floor;
	size_t i;
	int k;

	if ((k = inbox_floor(s, run, &floor, e)) <= 0 || sh->step > floor)
		return k < 0 ? k : 0;
	if ((k = steps_manifest(s, run, sh->step, &l, e)) < 0)
		return k;
	if (k == 0 && sh->step == floor)
		return 0;
	/* of a step that was passed over: it will be in the next manifest */
	if (k == 0 && (k = verdict_there(path, r, e)) != 0)
		return k;
	r->verdict = RECEIPT_LATE;
	(void)snprintf(r->reason, sizeof(r->reason), "step %llu is closed",
	    (unsigned long long)sh->step);
	for (i = 0; i < l.n; i++)
		if (receipt_is_for(&l.r[i], sh)) {
			k = memcmp(l.r[i].digest, r->digest, SHARD_DIGEST);
			r->verdict = k == 0 ? l.r[i].verdict :
			    RECEIPT_EQUIVOCATION;
			/* why one waits is nothing to its device */
			memcpy(r->reason, receipt_is_accepted(&l.r[i]) ? "" :
			    l.r[i].reason, receipt_is_accepted(&l.r[i]) ? 1 :
			    sizeof(r->reason));
		}
	ledger_release(&l);
	if (r->verdict != RECEIPT_LATE)
		return 1;
	k = verdict_before(s, sh, 1, r, e);
	return k != 0 ? k : verdict_stranger(s, sh, r, e);
}

/* Is the shard of the run's model, which is that of its first shard?  An enum
 * verdict_says; VERDICT_ALONE: no model is known yet, this shard will set
 * it. */
static int
verdict_model(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, int alone, struct receipt *r, struct err *e)
{
	char *path = inbox_path(s, inbox_run_of(sh), NULL, "schema.aceg", e);
	char why[256];
	int k;

	if (path == NULL)
		return -ERR_SYS;
	if (!alone && faccessat(AT(path), F_OK, 0) < 0)
		k = VERDICT_ALONE;
	else if ((k = ledger_schema(path, sc, sh, why, e)) > 0) {
		r->verdict = RECEIPT_INVALID;
		(void)snprintf(r->reason, sizeof(r->reason), "mismatch: run "
		    "'%.32s' is of another model: %.80s", inbox_run_of(sh), why);
		k = VERDICT_NO;
	} else if (k == 0) {
		k = VERDICT_YES;
	}
	alloc_free(path);
	return k;
}

int
verdict_head(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, struct receipt *r, struct err *e)
{
	int k = r->verdict != RECEIPT_ACCEPTED ? VERDICT_NO :
	    verdict_model(s, sh, sc, 0, r, e);

	return k < 0 ? k : 0;
}

/* Refuses shards of an older incarnation of a device (a restored backup): an
 * enum verdict_says; VERDICT_ALONE: the shard's incarnation is newer than all
 * that are known, and has to be written down. */
static int
verdict_fence(const struct inbox *s, const struct shard *sh, int alone,
    struct receipt *r, struct err *e)
{
	char *path = inbox_of(s, inbox_run_of(sh), NULL, inbox_device_of(sh),
	    "incarnation", e);
	uint64_t newest = 0;
	int k;

	if (path == NULL)
		return -ERR_SYS;
	if ((k = ledger_number(path, &newest, e)) < 0) {
		alloc_free(path);
		return k;
	}
	k = VERDICT_YES;
	if (sh->incarnation < newest) {
		r->verdict = RECEIPT_FENCED;
		(void)snprintf(r->reason, sizeof(r->reason), "incarnation %lu, "
		    "%llu is known", (unsigned long)sh->incarnation,
		    (unsigned long long)newest);
		k = VERDICT_NO;
	} else if (sh->incarnation > newest) {
		k = VERDICT_ALONE;
		if (alone && (k = ledger_set_number(path, sh->incarnation,
		    s->sync, e)) == 0)
			k = VERDICT_YES;
	}
	alloc_free(path);
	return k;
}

/* Was it computed at a model that is too old?  1 and the verdict is in r, or
 * 0. */
static int
verdict_stale(const struct inbox *s, const struct shard *sh, struct receipt *r,
    struct err *e)
{
	uint64_t last;
	int k;

	if (s->max_stale == UINT64_MAX ||
	    (k = inbox_last(s, inbox_run_of(sh), &last, e)) == 0)
		return 0;
	if (k < 0)
		return k;
	if (last <= sh->base_version || last - sh->base_version <= s->max_stale)
		return 0;
	r->verdict = RECEIPT_LATE;
	(void)snprintf(r->reason, sizeof(r->reason), "stale: model version "
	    "%llu, now %llu", (unsigned long long)sh->base_version,
	    (unsigned long long)last);
	return 1;
}

/* Is it to be accepted?  An enum verdict_says; with VERDICT_NO the verdict in r
 * is to be written to disk, unless it is `fenced'. */
static int
verdict_judge(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, int alone, struct receipt *r, struct err *e)
{
	int k;

	if (r->verdict != RECEIPT_ACCEPTED)
		return VERDICT_NO;
	if ((k = verdict_fence(s, sh, alone, r, e)) != VERDICT_YES ||
	    (k = verdict_model(s, sh, sc, alone, r, e)) != VERDICT_YES)
		return k;
	k = verdict_stale(s, sh, r, e);
	return k < 0 ? k : k > 0 ? VERDICT_NO : VERDICT_YES;
}

/* 0: r is decided.  VERDICT_ALONE: retry with the exclusive lock, since this
 * decision changes what is decided next. */
static int
verdict_decide(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, const char *temp, const char *path, int alone,
    struct mirror *m, struct receipt *r, struct err *e)
{
	int k;

	if ((k = verdict_closed(s, sh, path, r, e)) != 0 ||
	    (k = verdict_known(s, sh, path, r, e)) != 0)
		return k < 0 ? k : 0;
	if ((k = verdict_judge(s, sh, sc, alone, r, e)) < 0 || k == VERDICT_ALONE)
		return k;
	if (k == VERDICT_NO && r->verdict == RECEIPT_FENCED)
		return 0;
	if (k == VERDICT_NO)
		return alone ? verdict_refuse(s, sh, r, e) : VERDICT_ALONE;
	/* one history goes with the one shard that is accepted */
	if (m->cache != NULL && !alone)
		return VERDICT_ALONE;
	if ((k = mirror_keep(m, s, sh, e)) < 0 || (k = admit_took(s, sh, e)) < 0)
		return k;
	if ((k = verdict_link(temp, path, e)) != 0)
		return k < 0 ? k : 0;
	/* another process made that file first: the verdict is about what that
	 * process wrote */
	k = verdict_known(s, sh, path, r, e);
	return k < 0 ? k : 0;
}

/* verdict_decide under the run's lock: the shared one, and if that is not
 * enough, the exclusive one. */
static int
verdict_locked(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, const char *temp, const char *path,
    struct mirror *m, struct receipt *r, struct err *e)
{
	const struct receipt asked = *r;
	int alone, fd, k = VERDICT_ALONE;

	for (alone = 0; alone <= 1 && k == VERDICT_ALONE; alone++) {
		*r = asked;
		if ((k = inbox_lock(s, inbox_run_of(sh), alone ? LOCK_EX :
		    LOCK_SH, &fd, e)) < 0)
			return k;
		k = verdict_decide(s, sh, sc, temp, path, alone, m, r, e);
		if (k == 0)
			k = inbox_durable(s, inbox_run_of(sh), &sh->step, e);
		(void)close(fd);
	}
	return k;
}

int
verdict_settle(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, const char *temp, struct mirror *m,
    struct receipt *r, struct err *e)
{
	char *path = inbox_of(s, inbox_run_of(sh), &sh->step,
	    inbox_device_of(sh), "aceg", e);
	int k = 0;

	if (path == NULL)
		k = -ERR_SYS;
	else if (r->verdict == RECEIPT_ACCEPTED && s->sync == IO_SYNC_FULL)
		k = io_sync_file(temp, e);
	if (k == 0)
		k = verdict_locked(s, sh, sc, temp, path, m, r, e);
	if (r->verdict == RECEIPT_EQUIVOCATION)
		(void)snprintf(r->reason, sizeof(r->reason), "other bytes came "
		    "under this name before");
	alloc_free(path);
	if (temp != NULL)
		temp_remove(temp);
	return k == 0 ? inbox_sign(s, inbox_run_of(sh), r, e) : k;
}
