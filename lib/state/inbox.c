#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/temp.h"
#include "state/ledger.h"
#include "state/inbox.h"

enum { INBOX_ALONE = 3 };	/* not without the lock for oneself */

int
inbox_open(struct inbox *s, const char *dir, struct err *e)
{
	return state_open(&s->state, dir, e);
}

void
inbox_close(struct inbox *s)
{
	state_close(&s->state);
}

/* ---- names ---- */

void
inbox_escape(const char *name, char out[INBOX_NAME])
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	unsigned char id[16];
	size_t n = 0;

	for (; *name != '\0' && n + 4 < 128; name++) {
		if (strchr(plain, *name) != NULL)
			out[n++] = *name;
		else
			n += (size_t)snprintf(out + n, 4, "%%%02X",
			    (unsigned char)*name);
	}
	if (n == 0)
		out[n++] = '%';		/* a run or device without a name */
	out[n] = '\0';
	if (*name != '\0') {
		/* too long for a file's name: the rest as a hash */
		ledger_hash(name, id);
		out[n++] = '%';
		shard_hex(id, out + n);
	}
}

char *
inbox_path(const struct inbox *s, const char *run, const uint64_t *step,
    const char *file, struct err *e)
{
	char name[INBOX_NAME], *path;
	size_t n;

	inbox_escape(run, name);
	n = strlen(s->state.dir) + strlen(name) + strlen(file) + 32;
	if ((path = alloc_get(n, 1, e)) == NULL)
		return NULL;
	if (step != NULL)
		(void)snprintf(path, n, "%s/%s/%llu/%s", s->state.dir, name,
		    (unsigned long long)*step, file);
	else
		(void)snprintf(path, n, "%s/%s/%s", s->state.dir, name, file);
	return path;
}

/* DEVICE.PART.end; end NULL: DEVICE.incarnation */
static void
inbox_file(const struct shard *sh, const char *end, char out[INBOX_NAME + 32])
{
	const char *device = text_get(&sh->kv, SHARD_KEY_DEVICE);
	char name[INBOX_NAME];

	inbox_escape(device != NULL ? device : "", name);
	if (end == NULL) {
		(void)snprintf(out, INBOX_NAME + 32, "%.200s.incarnation",
		    name);
		return;
	}
	(void)snprintf(out, INBOX_NAME + 32, "%.200s.%lu.%s", name,
	    (unsigned long)sh->part, end);
}

static const char *
inbox_run_of(const struct shard *sh)
{
	const char *run = text_get(&sh->kv, SHARD_KEY_RUN);

	return run != NULL ? run : "";
}

/* ---- receiving ---- */

/* A directory, durable even when another process has
 * just made it. */
static int
inbox_mkdir(const struct inbox *s, char *path, struct err *e)
{
	size_t n = strlen(path);

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "'%s'", path);
	if (s->sync != IO_SYNC_FULL)
		return 0;
	path[n - 1] = '\0';		/* paths end with a slash */
	return io_sync_path(path, e);
}

int
inbox_begin(const struct inbox *s, const struct shard *sh, struct err *e)
{
	char *run = inbox_path(s, inbox_run_of(sh), NULL, "", e);
	char *step = inbox_path(s, inbox_run_of(sh), &sh->step, "", e);
	int r = -ERR_SYS;

	if (run != NULL && step != NULL && (r = inbox_mkdir(s, run, e)) == 0)
		r = inbox_mkdir(s, step, e);
	alloc_free(run);
	alloc_free(step);
	return r;
}

int
inbox_temp(const struct inbox *s, const struct shard *sh, char **path,
    struct writer **w, struct err *e)
{
	struct writer_opts o = { "ace-recv", NULL, 0 };
	struct io *io;
	int fd, r;

	*w = NULL;
	*path = inbox_path(s, inbox_run_of(sh), NULL, "shard" TEMP_NAME, e);
	if (*path == NULL)
		return -ERR_SYS;
	if ((r = temp_create(*path, &fd, e)) < 0)
		return r;
	if ((r = io_create_fd(&io, fd, *path, e)) < 0) {
		(void)close(fd);
		return r;
	}
	io_own(io);
	return writer_open(w, io, &o, e);
}

int
inbox_lock(const struct inbox *s, const char *run, int how, int *fd,
    struct err *e)
{
	char *path = inbox_path(s, run, NULL, "lock", e);
	int r = 0;

	*fd = -1;
	if (path == NULL)
		return -ERR_SYS;
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*fd < 0)
		r = err_sys(e, "'%s'", path);
	while (r == 0 && flock(*fd, how) < 0)
		if (errno != EINTR)
			r = err_sys(e, "'%s'", path);
	if (r < 0 && *fd >= 0)
		(void)close(*fd);
	alloc_free(path);
	return r;
}

static int
inbox_sync_file(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;

	if (fd < 0 || fsync(fd) < 0)
		r = err_sys(e, "'%s'", path);
	if (fd >= 0)
		(void)close(fd);
	return r;
}

/* Puts the temporary under its name: 1 there, 0 the name is taken. */
static int
inbox_link(const char *from, const char *to, struct err *e)
{
	if (link(from, to) < 0) {
		if (errno == EEXIST)
			return 0;
		if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)
			return err_set(e, ERR_SYS, "'%s': the file system of "
			    "the spool has no hard links", to);
		return err_sys(e, "'%s'", to);
	}
	return 1;
}

/* A rejection on disk, so that it is the same for ever. */
static int
inbox_refuse(const struct inbox *s, const struct shard *sh, struct receipt *r,
    struct err *e)
{
	char file[INBOX_NAME + 32], *path;
	struct ledger l;
	int k;

	inbox_file(sh, "no", file);
	path = inbox_path(s, inbox_run_of(sh), &sh->step, file, e);
	if (path == NULL)
		return -ERR_SYS;
	memset(&l, 0, sizeof(l));
	if ((k = ledger_add(&l, r, file, e)) == 0)
		k = ledger_write(&l, path, s->sync, e);
	ledger_release(&l);
	alloc_free(path);
	return k;
}

/* What was decided about this name before: 1 and r filled, or 0. */
static int
inbox_known(const struct inbox *s, const struct shard *sh, const char *path,
    struct receipt *r, struct err *e)
{
	char file[INBOX_NAME + 32], *no;
	unsigned char digest[SHARD_DIGEST];
	struct receipt old;
	int k;

	inbox_file(sh, "no", file);
	no = inbox_path(s, inbox_run_of(sh), &sh->step, file, e);
	if (no == NULL)
		return -ERR_SYS;
	k = ledger_first(no, &old, e);
	alloc_free(no);
	if (k < 0)
		return k;
	if (k > 0) {
		if (memcmp(old.digest, r->digest, SHARD_DIGEST) == 0)
			*r = old;
		else
			r->verdict = RECEIPT_EQUIVOCATION;
		return 1;
	}
	if ((k = ledger_digest(path, digest, e)) <= 0)
		return k;
	r->verdict = memcmp(digest, r->digest, SHARD_DIGEST) == 0 ?
	    RECEIPT_DUPLICATE : RECEIPT_EQUIVOCATION;
	return 1;
}

int
inbox_manifest(const struct inbox *s, const char *run, uint64_t step,
    struct ledger *l, struct err *e)
{
	char name[32], *path = inbox_path(s, run, &step, "manifest", e);
	int k;

	memset(l, 0, sizeof(*l));
	if (path == NULL)
		return -ERR_SYS;
	k = ledger_read(l, path, e);
	alloc_free(path);
	if (k != 0)
		return k;
	(void)snprintf(name, sizeof(name), "old/%llu",
	    (unsigned long long)step);
	if ((path = inbox_path(s, run, NULL, name, e)) == NULL)
		return -ERR_SYS;
	k = ledger_read(l, path, e);
	alloc_free(path);
	return k;
}

/* The step is closed: 1 and the verdict, or 0 it is open. */
static int
inbox_closed(const struct inbox *s, const struct shard *sh, struct receipt *r,
    struct err *e)
{
	const char *run = inbox_run_of(sh);
	struct ledger l;
	uint64_t floor;
	size_t i;
	int k;

	if ((k = inbox_manifest(s, run, sh->step, &l, e)) < 0)
		return k;
	if (k == 0 && ((k = inbox_floor(s, run, &floor, e)) <= 0 ||
	    sh->step >= floor))
		return k < 0 ? k : 0;
	r->verdict = RECEIPT_LATE;
	(void)snprintf(r->reason, sizeof(r->reason), "step %llu is closed",
	    (unsigned long long)sh->step);
	for (i = 0; i < l.n; i++)
		if (receipt_is_for(&l.r[i], sh)) {
			k = memcmp(l.r[i].digest, r->digest, SHARD_DIGEST);
			r->verdict = k == 0 ? RECEIPT_ACCEPTED :
			    RECEIPT_EQUIVOCATION;
			r->reason[0] = '\0';
		}
	ledger_release(&l);
	return 1;
}

/* The model of the run is that of its first shard: 1 it is this one, 0 and the
 * verdict; INBOX_ALONE there is none yet. */
static int
inbox_model(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, int alone, struct receipt *r, struct err *e)
{
	char *path = inbox_path(s, inbox_run_of(sh), NULL, "schema.aceg", e);
	char why[256];
	int k;

	if (path == NULL)
		return -ERR_SYS;
	if (!alone && access(path, F_OK) < 0)
		k = INBOX_ALONE;
	else if ((k = ledger_schema(path, sc, sh, why, e)) > 0) {
		r->verdict = RECEIPT_INVALID;
		(void)snprintf(r->reason, sizeof(r->reason), "mismatch: %.140s",
		    why);
		k = 0;
	} else if (k == 0) {
		k = 1;
	}
	alloc_free(path);
	return k;
}

/* An older incarnation of a device (a restored backup) is fenced off: 0 and
 * the verdict; 1 it is the newest; INBOX_ALONE it is newer. */
static int
inbox_fence(const struct inbox *s, const struct shard *sh, int alone,
    struct receipt *r, struct err *e)
{
	char file[INBOX_NAME + 32], *path;
	uint64_t newest = 0;
	int k;

	inbox_file(sh, NULL, file);
	path = inbox_path(s, inbox_run_of(sh), NULL, file, e);
	if (path == NULL)
		return -ERR_SYS;
	if ((k = ledger_number(path, &newest, e)) < 0) {
		alloc_free(path);
		return k;
	}
	k = 1;
	if (sh->incarnation < newest) {
		r->verdict = RECEIPT_FENCED;
		(void)snprintf(r->reason, sizeof(r->reason), "incarnation %lu, "
		    "%llu is known", (unsigned long)sh->incarnation,
		    (unsigned long long)newest);
		k = 0;
	} else if (sh->incarnation > newest) {
		k = INBOX_ALONE;
		if (alone && (k = ledger_set_number(path, sh->incarnation,
		    s->sync, e)) == 0)
			k = 1;
	}
	alloc_free(path);
	return k;
}

int
inbox_raise(const struct inbox *s, const char *run, const char *device,
    uint64_t *n, struct err *e)
{
	char file[INBOX_NAME + 32], *path = NULL;
	struct shard sh;
	int fd = -1, k;

	shard_init(&sh);
	if ((k = shard_set_run(&sh, run, e)) == 0 &&
	    (k = shard_set_device(&sh, device, e)) == 0 &&
	    (k = inbox_lock(s, run, LOCK_EX, &fd, e)) == 0) {
		inbox_file(&sh, NULL, file);
		path = inbox_path(s, run, NULL, file, e);
		k = path != NULL ? ledger_number(path, n, e) : -ERR_SYS;
		if (k >= 0)
			k = ledger_set_number(path, ++*n, s->sync, e);
		(void)close(fd);
	}
	alloc_free(path);
	shard_release(&sh);
	return k;
}

static int
inbox_number(const struct inbox *s, const char *run, const char *name,
    uint64_t *v, struct err *e)
{
	char *path = inbox_path(s, run, NULL, name, e);
	int r = path != NULL ? ledger_number(path, v, e) : -ERR_SYS;

	alloc_free(path);
	return r;
}

int
inbox_last(const struct inbox *s, const char *run, uint64_t *step)
{
	return inbox_number(s, run, "last", step, NULL) > 0;
}

int
inbox_floor(const struct inbox *s, const char *run, uint64_t *step,
    struct err *e)
{
	return inbox_number(s, run, "closed", step, e);
}

static int
inbox_stale(const struct inbox *s, const struct shard *sh, struct receipt *r)
{
	uint64_t last;

	if (s->max_stale == UINT64_MAX ||
	    !inbox_last(s, inbox_run_of(sh), &last) ||
	    last <= sh->base_version || last - sh->base_version <= s->max_stale)
		return 0;
	r->verdict = RECEIPT_LATE;
	(void)snprintf(r->reason, sizeof(r->reason), "stale: model version "
	    "%llu, now %llu", (unsigned long long)sh->base_version,
	    (unsigned long long)last);
	return 1;
}

/* Is it to be accepted?  1; 0 and the verdict, which is to be kept unless it is
 * `fenced'; INBOX_ALONE. */
static int
inbox_judge(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, int alone, struct receipt *r, struct err *e)
{
	int k;

	if (r->verdict != RECEIPT_ACCEPTED)
		return 0;
	if ((k = inbox_fence(s, sh, alone, r, e)) != 1 ||
	    (k = inbox_model(s, sh, sc, alone, r, e)) != 1)
		return k;
	return !inbox_stale(s, sh, r);
}

/* 0: r is decided.  INBOX_ALONE: what is to be decided changes what is decided
 * next, and needs the lock for itself. */
static int
inbox_decide(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, const char *temp, const char *path, int alone,
    struct receipt *r, struct err *e)
{
	int k;

	if ((k = inbox_closed(s, sh, r, e)) != 0 ||
	    (k = inbox_known(s, sh, path, r, e)) != 0)
		return k < 0 ? k : 0;
	if ((k = inbox_judge(s, sh, sc, alone, r, e)) < 0 || k == INBOX_ALONE)
		return k;
	if (k == 0 && r->verdict == RECEIPT_FENCED)
		return 0;
	if (k == 0)
		return alone ? inbox_refuse(s, sh, r, e) : INBOX_ALONE;
	if ((k = inbox_link(temp, path, e)) != 0)
		return k < 0 ? k : 0;
	/* somebody was faster: his bytes decide */
	k = inbox_known(s, sh, path, r, e);
	return k < 0 ? k : 0;
}

/* Whoever it was that made the name, the manifest or the number of the last
 * closed step may have died before it was durable. */
static int
inbox_sync(const struct inbox *s, const char *run, const char *path,
    const struct receipt *r, struct err *e)
{
	char *closed;
	int k;

	if (s->sync != IO_SYNC_FULL)
		return 0;
	if ((k = io_sync_path(path, e)) < 0 || r->verdict != RECEIPT_LATE)
		return k;
	if ((closed = inbox_path(s, run, NULL, "closed", e)) == NULL)
		return -ERR_SYS;
	k = io_sync_path(closed, e);
	alloc_free(closed);
	return k;
}

/* The same under the run's lock, shared if that is enough. */
static int
inbox_locked(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, const char *temp, const char *path,
    struct receipt *r, struct err *e)
{
	const struct receipt asked = *r;
	int alone, fd, k = INBOX_ALONE;

	for (alone = 0; alone <= 1 && k == INBOX_ALONE; alone++) {
		*r = asked;
		if ((k = inbox_lock(s, inbox_run_of(sh), alone ? LOCK_EX :
		    LOCK_SH, &fd, e)) < 0)
			return k;
		k = inbox_decide(s, sh, sc, temp, path, alone, r, e);
		if (k == 0)
			k = inbox_sync(s, inbox_run_of(sh), path, r, e);
		(void)close(fd);
	}
	return k;
}

/* Unix nanoseconds; what SOURCE_DATE_EPOCH says, where output is to be the
 * same again. */
static uint64_t
inbox_clock(void)
{
	const char *fixed = getenv("SOURCE_DATE_EPOCH");
	struct timespec t;

	if (fixed != NULL)
		return strtoull(fixed, NULL, 10) * 1000000000u;
	if (clock_gettime(CLOCK_REALTIME, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void
inbox_sign(const struct inbox *s, const char *run, struct receipt *r)
{
	uint64_t last = 0;

	r->clock = inbox_clock();
	if (inbox_last(s, run, &last))
		r->version = last;
}

int
inbox_settle(const struct inbox *s, const struct shard *sh,
    const struct schema *sc, const char *temp, struct receipt *r,
    struct err *e)
{
	char file[INBOX_NAME + 32], *path;
	int k;

	inbox_file(sh, "aceg", file);
	path = inbox_path(s, inbox_run_of(sh), &sh->step, file, e);
	if (path == NULL)
		return -ERR_SYS;
	k = r->verdict == RECEIPT_ACCEPTED && s->sync == IO_SYNC_FULL ?
	    inbox_sync_file(temp, e) : 0;
	if (k == 0)
		k = inbox_locked(s, sh, sc, temp, path, r, e);
	alloc_free(path);
	if (temp != NULL)
		(void)unlink(temp);
	inbox_sign(s, inbox_run_of(sh), r);
	return k;
}

/* ---- handing out ---- */

int
inbox_aggregate(const struct inbox *s, const char *run, uint64_t step,
    char **path, struct err *e)
{
	uint64_t floor;
	int k;

	*path = inbox_path(s, run, &step, "aggregate.aceg", e);
	if (*path == NULL)
		return -ERR_SYS;
	if (access(*path, F_OK) == 0)
		return 1;
	k = errno == ENOENT ? 0 : err_sys(e, "'%s'", *path);
	alloc_free(*path);
	*path = NULL;
	if (k < 0 || (k = inbox_floor(s, run, &floor, e)) <= 0)
		return k;
	if (step > floor)
		return 0;
	/* closed before: by a manifest of its own, or by being passed over */
	if ((*path = inbox_path(s, run, &step, "manifest", e)) == NULL)
		return -ERR_SYS;
	if (access(*path, F_OK) == 0)
		k = 0;
	else if (errno != ENOENT)
		k = err_sys(e, "'%s'", *path);
	else
		k = step < floor ? 2 : 0;
	alloc_free(*path);
	*path = NULL;
	return k;
}
