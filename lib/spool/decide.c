#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/compare.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/temp.h"
#include "spool/admit.h"
#include "spool/decide.h"
#include "spool/mirror.h"
#include "spool/steps.h"

#define DECIDE_CLOSED "closed"

/* ---- the state of a run ---- */

/* Write the name of a step's manifest after its average was made. */
static const char *
decide_name(uint64_t step, char name[48])
{
	(void)snprintf(name, 48, STEPS_DONE "/%llu", (unsigned long long)step);
	return name;
}

static int
decide_is_done(const struct inbox *s, uint64_t step, struct err *e)
{
	char name[48];

	return inbox_has(s, NULL, decide_name(step, name), e);
}

/* Read the manifest at path: 1, or 0 if it is absent. */
static int
decide_read(struct ledger *l, const char *path, struct err *e)
{
	char line[ERR_LINE];
	int k = ledger_read(l, path, e);

	if (k == -ERR_DATA) {
		(void)err_format(e, line);
		err_clear(e);
		return err_set(e, ERR_DATA, "corrupt: '%s': %.200s", path, line);
	}
	return k > 0 && l->n == 0 ? err_set(e, ERR_DATA, "corrupt: manifest '%s' "
	    "lists no shard", path) : k;
}

/* Read the newest manifest into s->seen, unless it was read before: 1, or 0 if there is
 * none. */
static int
decide_newest(const struct inbox *s, struct err *e)
{
	struct inbox_seen *x = s->seen;
	char *path = inbox_path(s, NULL, DECIDE_CLOSED, e);
	struct ledger l = { .n = 0 };
	struct stat st;
	int k = path != NULL ? 0 : -ERR_SYS;

	if (k == 0 && fstatat(AT(path), &st, 0) < 0) {
		k = errno == ENOENT || errno == ENOTDIR ? 0 :
		    err_sys(e, "'%s'", path);
		memset(x, 0, sizeof(*x));
	} else if (k == 0 && (x->file != st.st_ino ||
	    x->time.tv_sec != st.st_mtim.tv_sec ||
	    x->time.tv_nsec != st.st_mtim.tv_nsec)) {
		if ((k = decide_read(&l, path, e)) > 0) {
			x->file = st.st_ino;
			x->time = st.st_mtim;
			x->step = l.line[l.n - 1].r.step;
			x->version = l.line[l.n - 1].r.version;
		}
		ledger_release(&l);
	}
	alloc_free(path);
	return k < 0 ? k : x->file != 0;
}

int
decide_load(const struct inbox *s, struct decided *d, struct err *e)
{
	int k;

	memset(d, 0, sizeof(*d));
	if ((k = decide_newest(s, e)) <= 0)
		return k;
	d->any = 1;
	d->closed = s->seen->step;
	if ((k = d->made = decide_is_done(s, d->closed, e)) < 0)
		return k;
	d->last = d->made ? d->closed : s->seen->version;
	k = d->has_last = d->made ? 1 : decide_is_done(s, d->last, e);
	return k < 0 ? k : 0;
}

/* *step, which is closed, becomes the step whose manifest lists its shards. */
static int
decide_into(const struct inbox *s, const struct decided *d, uint64_t *step,
    struct err *e)
{
	struct steps l = STEPS_INIT;
	int k = *step == d->closed ? 1 : decide_is_done(s, *step, e);

	if (k == 0) {
		k = steps_list(&l, s, STEPS_DONE, *step, e);
		*step = k == 0 && l.n != 0 ? l.step[0] : d->closed;
		steps_release(&l);
	}
	return k < 0 ? k : 0;
}

int
decide_manifest(const struct inbox *s, uint64_t step, struct ledger *l,
    struct err *e)
{
	struct decided d;
	uint64_t into;
	char name[48], *path;
	int k;

	memset(l, 0, sizeof(*l));
	do {
		ledger_release(l);
		into = step;
		if ((k = decide_load(s, &d, e)) < 0 || !d.any ||
		    step > d.closed || (k = decide_into(s, &d, &into, e)) < 0)
			return k;
		path = inbox_path(s, NULL, into == d.closed ? DECIDE_CLOSED :
		    decide_name(into, name), e);
		k = path != NULL ? decide_read(l, path, e) : -ERR_SYS;
		alloc_free(path);
		/* another step may have been closed meanwhile */
	} while (k > 0 && into == d.closed && l->line[l->n - 1].r.step > into);
	if (k == 0 || (k > 0 && l->line[l->n - 1].r.step != into))
		k = err_set(e, ERR_DATA, "corrupt: '%s' has no manifest of step %llu",
		    s->state.dir, (unsigned long long)into);
	if (k < 0)
		ledger_release(l);
	return k;
}

int
decide_aggregate(const struct inbox *s, uint64_t step, char **path, struct err *e)
{
	struct ledger l;
	size_t i;
	int k = inbox_has(s, &step, "aggregate.aceg", e), counts = 0;

	*path = NULL;
	/* the process that published it may have died before it was durable */
	if (k > 0 && (k = inbox_durable(s, &step, e)) == 0) {
		*path = inbox_path(s, &step, "aggregate.aceg", e);
		return *path != NULL ? DECIDE_HERE : -ERR_SYS;
	}
	if (k < 0 || (k = decide_manifest(s, step, &l, e)) < 0)
		return k;
	/* the step was passed over, or none of its shards counts */
	for (i = 0; k > 0 && i < l.n; i++)
		counts |= l.line[i].r.verdict == RECEIPT_ACCEPTED;
	if (k > 0)
		counts &= l.line[l.n - 1].r.step == step;
	ledger_release(&l);
	/* ace-aggregate --keep removed it with its step */
	if (k > 0 && counts && (k = inbox_has(s, &step, "", e)) >= 0) {
		counts = k;
		k = 1;
	}
	if (k < 0)
		return k;
	return k > 0 && !counts ? DECIDE_NEVER : DECIDE_COMING;
}

/* Fill in clock and version of a receipt. */
static int
decide_sign(const struct inbox *s, struct receipt *r, struct err *e)
{
	struct decided d;
	int k = decide_load(s, &d, e);

	r->clock = inbox_clock();
	if (k == 0 && d.has_last)
		r->version = d.last;
	return k;
}

/* ---- a step is closed ---- */

int
decide_close(const struct inbox *s, const struct decided *d, struct ledger *l,
    struct err *e)
{
	char *path = inbox_path(s, NULL, DECIDE_CLOSED, e);
	char *done = inbox_path(s, NULL, STEPS_DONE "/", e);
	size_t i;
	int k = path != NULL && done != NULL ? 0 : -ERR_SYS;

	for (i = 0; i < l->n; i++)
		l->line[i].r.version = d->has_last ? d->last : 0;
	if (k == 0)
		k = inbox_made(s, done, e);
	/* a process that linked a shard may have died before the name was durable; and
	 * the second name of the manifest that is replaced must be durable */
	for (i = 0; i < l->n && k == 0; i++)
		if (i == 0 || l->line[i].r.step != l->line[i - 1].r.step)
			k = inbox_durable(s, &l->line[i].r.step, e);
	if (k == 0 && d->made && s->sync == IO_SYNC_FULL)
		k = io_sync_path(done, e);
	if (k == 0)
		k = ledger_write(l, path, s->sync, e);
	alloc_free(path);
	alloc_free(done);
	return k;
}

int
decide_done(const struct inbox *s, uint64_t step, struct err *e)
{
	char name[48], *from = inbox_path(s, NULL, DECIDE_CLOSED, e);
	char *to = inbox_path(s, NULL, decide_name(step, name), e);
	int k = from != NULL && to != NULL ? 0 : -ERR_SYS;

	if (k == 0 && linkat(AT(from), AT(to), 0) < 0 && errno != EEXIST)
		k = err_sys(e, "'%s'", to);
	alloc_free(from);
	alloc_free(to);
	return k;
}

/* ---- room for a shard ---- */

struct decide_room {
	const struct inbox *s;
	const struct shard *sh;
	uint64_t steps, bytes;		/* of the device, in open steps */
	int known;			/* the shard has a verdict already */
};

struct decide_open {			/* a line of DEVICE.open */
	uint64_t step, bytes;		/* bytes 0: the files tell */
};

struct decide_list {
	struct decide_open *line;
	size_t n, cap;
	int fd;				/* the file, which is locked; or -1 */
};

/* Look for a file of the device, named as by inbox_of, and add its size: 1, or 0 if it is
 * absent. */
static int
decide_size(struct decide_room *p, const uint64_t *step, const char *end,
    struct err *e)
{
	char *path = inbox_of(p->s, step, inbox_device_of(p->sh), end, e);
	struct stat st;
	int there;

	if (path == NULL)
		return -ERR_SYS;
	there = fstatat(AT(path), &st, 0) == 0;
	if (there)
		p->bytes += (uint64_t)st.st_size;
	alloc_free(path);
	return there;
}

/* Add up the device's files in one open step: the shard, the receipts of rejected ones,
 * and the dense reconstruction of a difference.  Return 1 if there is a shard. */
static int
decide_step(struct decide_room *p, uint64_t step, struct err *e)
{
	char made[64];
	int k, no;

	(void)snprintf(made, sizeof(made), "history/history.%llu",
	    (unsigned long long)step);
	if ((k = decide_size(p, NULL, made, e)) < 0 ||
	    (k = decide_size(p, &step, "aceg", e)) < 0 ||
	    (no = decide_size(p, &step, "no", e)) < 0)
		return -ERR_SYS;
	p->steps += (uint64_t)(k | no);
	if (step == p->sh->step)
		p->known = k | no;
	return k;
}

/*
 * DIR/device/DEVICE.open has a line for each step in which the device may have a file,
 * with the bytes of its files there once they do not change any more.  So decide_room
 * looks at few files, however many steps are open.  A power cut may damage the list:
 * then a wrong number of bytes is counted until those steps are over.
 *
 * Open the list, locked as `how' says, and read the steps that are still open; it may be
 * absent.  Call decide_shut afterwards, also after a failure.
 */
static int
decide_list(const struct inbox *s, const struct shard *sh, int how,
    const struct decided *d, struct decide_list *l, struct err *e)
{
	char *path = inbox_of(s, NULL, inbox_device_of(sh), "open", e),
	    *text = NULL, *at, *end;
	struct decide_open *o;
	struct stat st;
	size_t n;
	int k = path != NULL ? 0 : -ERR_SYS;

	if (k == 0 && (how == LOCK_EX || faccessat(AT(path), F_OK, 0) == 0) &&
	    (k = fd_lock(path, how, &l->fd, e)) == 0) {
		if (fstat(l->fd, &st) < 0)
			k = err_sys(e, "'%s'", path);
		else if ((text = alloc_get((size_t)st.st_size + 1, 1, e)) == NULL)
			k = -ERR_SYS;
		else
			k = fd_read_at(l->fd, 0, text, (size_t)st.st_size, &n,
			    path, e);
	}
	for (at = text; k == 0 && at != NULL && *at != '\0';
	    at = end + strspn(end, "\n")) {
		if ((k = alloc_grow(&l->line, &l->cap, l->n + 1,
		    sizeof(*l->line), e)) < 0)
			break;
		o = &l->line[l->n];
		o->step = strtoull(at, &end, 10);
		o->bytes = *end == ' ' ? strtoull(end, &end, 10) : 0;
		l->n += end != at && (l->n > 0 ? o->step > o[-1].step :
		    !d->any || o->step > d->closed);
		end += strcspn(end, "\n");
	}
	alloc_free(text);
	alloc_free(path);
	return k;
}

static void
decide_shut(struct decide_list *l)
{
	if (l->fd >= 0)
		(void)close(l->fd);
	alloc_free(l->line);
}

/* Put the shard's step on the list, before the device's first file in it is made, and
 * the bytes of other steps whose files are complete: those with an accepted shard, and
 * with `alone', which says that the run's lock is exclusive, all. */
static int
decide_took(const struct inbox *s, const struct shard *sh, int alone,
    const struct decided *d, struct err *e)
{
	struct decide_list l = { .fd = -1 };
	struct decide_room p;
	struct decide_open *o;
	struct buf b = BUF_INIT;
	char line[64];
	size_t i;
	int k = decide_list(s, sh, LOCK_EX, d, &l, e);

	for (i = 0; i < l.n && l.line[i].step != sh->step; i++)
		;
	if (k == 0 && i == l.n &&
	    (k = alloc_grow(&l.line, &l.cap, l.n + 1, sizeof(*l.line), e)) == 0)
		l.n++;
	if (k == 0)
		l.line[i] = (struct decide_open){ sh->step, 0 };
	if (k == 0)
		qsort(l.line, l.n, sizeof(*l.line), compare_u64);
	for (o = l.line; k >= 0 && o < l.line + l.n; o++) {
		p = (struct decide_room){ .s = s, .sh = sh };
		if (o->bytes == 0 && o->step != sh->step) {
			k = decide_step(&p, o->step, e);
			o->bytes = k > 0 || alone ? p.bytes : 0;
		}
		if (k >= 0)
			k = buf_put(&b, line, (size_t)snprintf(line, sizeof(line),
			    "%llu %llu\n", (unsigned long long)o->step,
			    (unsigned long long)o->bytes), e);
	}
	if (k >= 0 && (k = fd_write_at(l.fd, 0, b.p, b.n, "open", e)) == 0 &&
	    ftruncate(l.fd, (off_t)b.n) < 0)
		k = err_sys(e, "open");
	buf_release(&b);
	decide_shut(&l);
	return k;
}

int
decide_room(const struct admit *a, const struct inbox *s,
    const struct shard *sh, const struct schema *sc, uint64_t coming,
    struct err *e)
{
	struct decide_room p = { .s = s, .sh = sh };
	struct decide_list l = { .fd = -1 };
	struct decide_open *o;
	struct decided d;
	int k = decide_load(s, &d, e);

	if (k < 0 || (d.any && sh->step <= d.closed))
		return k < 0 ? k : 1;
	if (sh->step > d.closed && sh->step - d.closed > a->ahead)
		return err_set(e, ERR_REFUSED, "limit: step %llu is more than %llu "
		    "steps after %llu, the last closed one (limits: ahead)",
		    (unsigned long long)sh->step, (unsigned long long)a->ahead,
		    (unsigned long long)d.closed);
	k = decide_list(s, sh, LOCK_SH, &d, &l, e);
	for (o = l.line; k >= 0 && o < l.line + l.n; o++) {
		if (o->bytes == 0) {
			k = decide_step(&p, o->step, e);
			continue;
		}
		p.steps++;
		p.bytes += o->bytes;
		p.known |= o->step == sh->step;
	}
	decide_shut(&l);
	if (k < 0 || p.known)
		return k < 0 ? k : 0;
	if (p.steps >= a->open)
		return err_set(e, ERR_REFUSED, "limit: %llu steps of this device "
		    "are open (limits: open)", (unsigned long long)p.steps);
	/* a shard that is being received may become as large as the limit */
	p.bytes += coming * a->shard;
	if ((sh->flags & SHARD_PREDICTED) != 0)
		p.bytes += sc->total * sizeof(float);	/* see decide_step */
	if (p.bytes >= a->quota)
		return err_set(e, ERR_REFUSED, "limit: %llu bytes of this device "
		    "wait for their steps (limits: quota)",
		    (unsigned long long)p.bytes);
	return 0;
}

/* ---- the verdict on a shard ---- */

/* Rejected shards with one name that are remembered.  More are not admitted, since their
 * receipts take room. */
enum { DECIDE_TRIES = 16 };

enum decide_says {
	DECIDE_NO,		/* not accepted: the receipt says why */
	DECIDE_YES,
	DECIDE_ALONE		/* retry with the exclusive lock */
};

struct decide_shard {
	const struct inbox *s;
	const struct shard *sh;
	const struct schema *sc;
	const char *temp;
	char *path, *no;	/* of the shard; of receipts of rejected ones */
	struct mirror *m;
	struct receipt *r;
	struct decided d;
	int model;		/* it is known to be of the run's model */
	int alone;		/* the lock is exclusive */
};

/* Give the temporary file its final name: 1, or 0 if a file has that name. */
static int
decide_link(const struct decide_shard *x, struct err *e)
{
	if (linkat(AT(x->temp), AT(x->path), 0) == 0)
		return 1;
	if (errno == EEXIST)
		return 0;
	if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)
		return err_set(e, ERR_SYS, "'%s': the file system of "
		    "the spool has no hard links", x->path);
	return err_sys(e, "'%s'", x->path);
}

/* Add the rejection to the file of receipts, beside those of other bytes with this name,
 * so that every later answer is the same. */
static int
decide_refuse(const struct decide_shard *x, struct err *e)
{
	struct ledger l = { .n = 0 };
	int k;

	if ((k = ledger_read(&l, x->no, e)) >= 0 &&
	    (k = ledger_add(&l, x->r, "", e)) == 0 &&
	    (k = decide_took(x->s, x->sh, x->alone, &x->d, e)) == 0)
		k = ledger_write(&l, x->no, x->s->sync, e);
	ledger_release(&l);
	return k;
}

/* Look for these bytes among those rejected before: 1, and r is their receipt, or 0.
 * After a rejection the name is still free, so that a device that was repaired may send
 * other bytes, up to DECIDE_TRIES times; not after another verdict than `invalid'. */
static int
decide_rejected(const struct decide_shard *x, const struct ledger *l, int closed,
    struct err *e)
{
	const struct receipt *old = NULL;
	size_t i, n = 0;

	for (i = 0; i < l->n; i++)
		if (memcmp(l->line[i].r.digest, x->r->digest, SHARD_DIGEST) == 0) {
			old = &l->line[i].r;
			n++;
		}
	if (l->n == 0 || n > 1)
		return err_set(e, ERR_DATA, "corrupt: '%s'", x->no);
	if (old != NULL)
		*x->r = *old;
	else if (closed || (l->n < DECIDE_TRIES &&
	    l->line[l->n - 1].r.verdict == RECEIPT_INVALID))
		return 0;
	else
		x->r->verdict = RECEIPT_EQUIVOCATION;
	return 1;
}

/* The same for the shard's file of rejections. */
static int
decide_before(const struct decide_shard *x, int closed, struct err *e)
{
	struct ledger l = { .n = 0 };
	int k = ledger_read(&l, x->no, e);

	if (k > 0)
		k = decide_rejected(x, &l, closed, e);
	ledger_release(&l);
	return k;
}

/* Look for an earlier verdict on this name: 1, and it is in r, or 0. */
static int
decide_known(const struct decide_shard *x, struct err *e)
{
	struct receipt had;
	int k = decide_before(x, 0, e);

	if (k != 0 || (k = ledger_shard(x->path, &had, NULL, e)) <= 0)
		return k;
	x->r->verdict = memcmp(had.digest, x->r->digest, SHARD_DIGEST) == 0 ?
	    RECEIPT_DUPLICATE : RECEIPT_EQUIVOCATION;
	return 1;
}

/* Set the verdict of a late shard to `invalid' if its device is new and does not know the
 * common model: it never had a shard in an open step of the run, and it was not sent the
 * averages (spool/join.h).  Its values must not come back in a later shard, as those of a
 * late one do.  A shard at most one step before the last closed one stays late. */
static int
decide_stranger(const struct decide_shard *x, struct err *e)
{
	const char *device = inbox_device_of(x->sh);
	char *known = inbox_of(x->s, NULL, device, INBOX_KNOWN, e);
	char *open = inbox_of(x->s, NULL, device, "open", e);
	uint64_t from = 0;
	int k = known != NULL && open != NULL ? 0 : -ERR_SYS;

	if (k == 0 && x->sh->step < x->d.closed &&
	    x->d.closed - x->sh->step >= 2 &&
	    (k = ledger_number(known, &from, e)) >= 0 &&
	    (k == 0 || x->sh->step < from) && faccessat(AT(open), F_OK, 0) < 0) {
		x->r->verdict = RECEIPT_INVALID;
		(void)snprintf(x->r->reason, sizeof(x->r->reason), "this device is "
		    "new here, and step %llu is the next: it has to ask for what "
		    "the others know (ace-recv(1), Joining and leaving)",
		    (unsigned long long)x->d.closed + 1);
	}
	alloc_free(known);
	alloc_free(open);
	return k < 0 ? k : 0;
}

/* Decide on a shard of a closed step, by the manifest. */
static int
decide_closed(const struct decide_shard *x, struct err *e)
{
	struct receipt *r = x->r;
	const struct receipt *had;
	struct ledger l;
	size_t i;
	int k = decide_manifest(x->s, x->sh->step, &l, e);

	if (k < 0)
		return k;
	r->verdict = RECEIPT_LATE;
	(void)snprintf(r->reason, sizeof(r->reason), "step %llu is closed",
	    (unsigned long long)x->sh->step);
	for (i = 0; i < l.n; i++) {
		had = &l.line[i].r;
		if (!receipt_is_for(had, x->sh))
			continue;
		r->verdict = memcmp(had->digest, r->digest, SHARD_DIGEST) == 0 ?
		    had->verdict : RECEIPT_EQUIVOCATION;
		/* the device need not know why its shard waits */
		(void)snprintf(r->reason, sizeof(r->reason), "%s",
		    receipt_is_accepted(had) ? "" : had->reason);
	}
	ledger_release(&l);
	if (r->verdict == RECEIPT_LATE && (k = decide_before(x, 1, e)) == 0)
		k = decide_stranger(x, e);
	/* the process that closed the step may have died before the name was durable */
	return k < 0 ? k : inbox_durable(x->s, NULL, e);
}

/* Compare the shard's model with the run's, which is that of the first shard: an enum
 * decide_says; DECIDE_ALONE: there is none yet, and this shard will set it. */
static int
decide_model(const struct decide_shard *x, struct err *e)
{
	char *path = inbox_path(x->s, NULL, INBOX_SCHEMA, e);
	char why[256];
	int k = path != NULL ? DECIDE_YES : -ERR_SYS;

	if (k > 0 && !x->alone && faccessat(AT(path), F_OK, 0) < 0)
		k = DECIDE_ALONE;
	else if (k > 0 && (k = ledger_schema(path, x->sc, x->sh, why, e)) > 0) {
		admit_refuse(x->r, "mismatch: run '%.32s' is of another model: %.80s",
		    inbox_run_of(x->sh), why);
		k = DECIDE_NO;
	} else if (k == 0) {
		k = DECIDE_YES;
	}
	alloc_free(path);
	return k;
}

int
decide_head(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, struct receipt *r, struct err *e)
{
	const struct decide_shard x = { .s = s, .sh = sh, .sc = sc, .r = r };
	int k = decide_model(&x, e);

	return k < 0 ? k : k == DECIDE_YES;
}

/* Refuse a shard of an older incarnation of the device (a restored backup): an enum
 * decide_says; DECIDE_ALONE: the incarnation is newer than the known one and must be
 * stored. */
static int
decide_fence(const struct decide_shard *x, struct err *e)
{
	const struct shard *sh = x->sh;
	char *path = inbox_of(x->s, NULL, inbox_device_of(sh), "incarnation", e);
	uint64_t newest = 0;
	int k = path != NULL ? ledger_number(path, &newest, e) : -ERR_SYS;

	if (k >= 0 && sh->incarnation < newest) {
		x->r->verdict = RECEIPT_FENCED;
		(void)snprintf(x->r->reason, sizeof(x->r->reason), "incarnation "
		    "%lu, %llu is known", (unsigned long)sh->incarnation,
		    (unsigned long long)newest);
		k = DECIDE_NO;
	} else if (k >= 0 && sh->incarnation > newest && !x->alone) {
		k = DECIDE_ALONE;
	} else if (k >= 0) {
		k = sh->incarnation > newest ? ledger_set_number(path,
		    sh->incarnation, x->s->sync, e) : 0;
		k = k < 0 ? k : DECIDE_YES;
	}
	alloc_free(path);
	return k;
}

/* Return 1, and the verdict `late', if the shard was computed at a model that is too
 * old. */
static int
decide_stale(const struct decide_shard *x)
{
	const uint64_t base = x->sh->base_version, most = x->s->max_stale;

	if (most == UINT64_MAX || !x->d.has_last || x->d.last <= base ||
	    x->d.last - base <= most)
		return 0;
	x->r->verdict = RECEIPT_LATE;
	(void)snprintf(x->r->reason, sizeof(x->r->reason), "stale: model version "
	    "%llu, now %llu", (unsigned long long)base,
	    (unsigned long long)x->d.last);
	return 1;
}

/* Decide whether to accept the shard: an enum decide_says.  With DECIDE_NO the caller
 * stores the verdict in r, unless it is `fenced'. */
static int
decide_judge(const struct decide_shard *x, struct err *e)
{
	int k;

	if (x->r->verdict != RECEIPT_ACCEPTED)
		return DECIDE_NO;
	if ((k = decide_fence(x, e)) != DECIDE_YES)
		return k;
	return decide_stale(x) ? DECIDE_NO : DECIDE_YES;
}

/* Decide on the shard: 0, and the verdict is on disk, or DECIDE_ALONE: retry with the
 * exclusive lock, since this decision changes later ones. */
static int
decide_one(struct decide_shard *x, struct err *e)
{
	int k;

	if ((k = decide_load(x->s, &x->d, e)) < 0)
		return k;
	if (x->d.any && x->sh->step <= x->d.closed)
		return decide_closed(x, e);
	/* of two runs that begin at the same time the spool is of the first */
	if (x->r->verdict == RECEIPT_ACCEPTED && !x->model &&
	    ((k = decide_model(x, e)) < 0 || k == DECIDE_ALONE))
		return k;
	if ((k = decide_known(x, e)) == 0) {
		if ((k = decide_judge(x, e)) < 0 || k == DECIDE_ALONE)
			return k;
		if (k == DECIDE_NO && x->r->verdict == RECEIPT_FENCED)
			return 0;
		if (k == DECIDE_NO)
			return x->alone ? decide_refuse(x, e) : DECIDE_ALONE;
		/* of several shards with one name only the accepted one keeps its
		 * history */
		if (x->m->cache != NULL && !x->alone)
			return DECIDE_ALONE;
		if ((k = mirror_keep(x->m, x->s, x->sh, x->d.has_last ?
		    &x->d.last : NULL, e)) < 0 ||
		    (k = decide_took(x->s, x->sh, x->alone, &x->d, e)) < 0)
			return k;
		/* if another process made that file first, decide by what it
		 * wrote */
		if ((k = decide_link(x, e)) == 0)
			k = decide_known(x, e);
	}
	return k < 0 ? k : inbox_durable(x->s, &x->sh->step, e);
}

/* Call decide_one with the run's shared lock, and if that is not enough with the
 * exclusive one. */
static int
decide_locked(struct decide_shard *x, struct err *e)
{
	const struct receipt asked = *x->r;
	int fd, k = DECIDE_ALONE;

	for (x->alone = 0; x->alone <= 1 && k == DECIDE_ALONE; x->alone++) {
		*x->r = asked;
		if ((k = inbox_lock(x->s, x->alone ? LOCK_EX : LOCK_SH, &fd,
		    e)) < 0)
			return k;
		k = decide_one(x, e);
		(void)close(fd);
	}
	return k;
}

int
decide_shard(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, int model, const char *temp, struct mirror *m,
    struct receipt *r, struct err *e)
{
	const char *device = inbox_device_of(sh);
	struct decide_shard x = { .s = s, .sh = sh, .sc = sc, .temp = temp, .m = m,
	    .r = r, .model = model };
	int k = 0;

	x.path = inbox_of(s, &sh->step, device, "aceg", e);
	x.no = inbox_of(s, &sh->step, device, "no", e);
	if (x.path == NULL || x.no == NULL)
		k = -ERR_SYS;
	else if (r->verdict == RECEIPT_ACCEPTED && s->sync == IO_SYNC_FULL)
		k = io_sync_file(temp, e);
	if (k == 0)
		k = decide_locked(&x, e);
	if (r->verdict == RECEIPT_EQUIVOCATION)
		(void)snprintf(r->reason, sizeof(r->reason), "other bytes came "
		    "under this name before");
	alloc_free(x.path);
	alloc_free(x.no);
	if (temp != NULL)
		temp_remove(temp);
	return k == 0 ? decide_sign(s, r, e) : k;
}
