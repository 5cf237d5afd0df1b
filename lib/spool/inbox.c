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
#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/temp.h"
#include "spool/inbox.h"
#include "spool/ledger.h"

int
inbox_open(struct inbox *s, const char *dir, struct err *e)
{
	int r = statedir_open(&s->state, dir, e);

	return r == 0 && s->sync == IO_SYNC_FULL ?
	    statedir_durable(&s->state, e) : r;
}

void
inbox_close(struct inbox *s)
{
	statedir_close(&s->state);
}

/* ---- names ---- */

void
inbox_name(const char *name, char out[INBOX_NAME])
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const char *whole = name;
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
		/* too long for a file name: the rest is replaced by the hash of
		 * the whole, by which receipts name a device */
		ledger_hash(whole, id);
		out[n++] = '%';
		shard_hex(id, out + n);
	}
}

void
inbox_folder(const char *run, char out[INBOX_NAME])
{
	inbox_name(run, out);
	if (strcmp(out, LIMITS_FILE) == 0)
		(void)snprintf(out, INBOX_NAME, "%%6Cimits");
}

char *
inbox_path(const struct inbox *s, const char *run, const uint64_t *step,
    const char *file, struct err *e)
{
	char name[INBOX_NAME], *path;
	size_t n;

	inbox_folder(run, name);
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

static void
inbox_name_file(const char *device, const char *end, char out[INBOX_FILE])
{
	char name[INBOX_NAME];

	inbox_name(device, name);
	/* that file is the step's aggregate and belongs to no device */
	if (strcmp(name, "aggregate") == 0)
		(void)snprintf(name, sizeof(name), "%%61ggregate");
	(void)snprintf(out, INBOX_FILE, "%.200s.%s", name, end);
}

void
inbox_file(const struct shard *sh, const char *end, char out[INBOX_FILE])
{
	inbox_name_file(inbox_device_of(sh), end, out);
}

char *
inbox_of(const struct inbox *s, const char *run, const uint64_t *step,
    const char *device, const char *end, struct err *e)
{
	char file[INBOX_FILE];

	inbox_name_file(device, end, file);
	return inbox_path(s, run, step, file, e);
}

/* The value of two hex digits, or -1. */
static int
inbox_hex(const char *s)
{
	static const char digits[] = "0123456789ABCDEFabcdef";
	const char *at;
	int i, v = 0;

	for (i = 0; i < 2; i++, s++) {
		if (*s == '\0' || (at = strchr(digits, *s)) == NULL)
			return -1;
		v = v * 16 + (int)(at - digits < 16 ? at - digits :
		    at - digits - 6);
	}
	return v;
}

/* Undoes inbox_name for n bytes of it. */
static void
inbox_unescape(const char *name, size_t n, char out[SHARD_NAME + 1])
{
	size_t i, k = 0;
	int v;

	for (i = 0; i < n && k < SHARD_NAME; i++) {
		v = name[i] == '%' && i + 2 < n ? inbox_hex(name + i + 1) : -1;
		if (v > 0)
			i += 2;
		out[k++] = v > 0 ? (char)v : name[i];
	}
	out[k] = '\0';
}

int
inbox_device(const char *file, char out[SHARD_NAME + 1],
    unsigned char id[SHARD_ID])
{
	unsigned char own[SHARD_ID];
	const size_t n = strcspn(file, ".");
	size_t i;

	if (id == NULL)
		id = own;
	memset(id, 0, SHARD_ID);
	out[0] = '\0';
	/* a short name has at most 127 bytes, a long one ends with its hash */
	if (n > 127 + 1 + 2 * SHARD_ID || (n > 127 && n < 3 + 2 * SHARD_ID))
		return 0;
	if (n > 127) {
		inbox_unescape(file, n - 1 - 2 * SHARD_ID, out);
		for (i = 0; i < SHARD_ID; i++)
			id[i] = (unsigned char)inbox_hex(file + n -
			    2 * (SHARD_ID - i));
		return 0;
	}
	if (n != 1 || *file != '%')	/* that has no name, and no hash */
		inbox_unescape(file, n, out);
	if (out[0] != '\0')
		ledger_hash(out, id);
	return 1;
}

int
inbox_is_shard(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, ".aceg") == 0 &&
	    strcmp(name, "aggregate.aceg") != 0;
}

int
inbox_fits(const char *want, const char *run)
{
	const size_t n = want != NULL ? strlen(want) : 0;

	return n == 0 ? want == NULL || run[0] == '\0' :
	    strcmp(want, run) == 0 ||
	    (want[n - 1] == '*' && strncmp(want, run, n - 1) == 0);
}

const char *
inbox_run_of(const struct shard *sh)
{
	const char *run = text_get(&sh->kv, SHARD_KEY_RUN);

	return run != NULL ? run : "";
}

const char *
inbox_device_of(const struct shard *sh)
{
	const char *device = text_get(&sh->kv, SHARD_KEY_DEVICE);

	return device != NULL ? device : "";
}

/* ---- receiving ---- */

static int
inbox_mkdir(const char *path, struct err *e)
{
	if (mkdirat(AT(path), 0700) < 0 && errno != EEXIST)
		return err_sys(e, "'%s'", path);
	return 0;
}

int
inbox_begin(const struct inbox *s, const struct shard *sh, struct err *e)
{
	char *run = inbox_path(s, inbox_run_of(sh), NULL, "", e);
	char *step = inbox_path(s, inbox_run_of(sh), &sh->step, "", e);
	int r = -ERR_SYS;

	if (run != NULL && step != NULL && (r = inbox_mkdir(run, e)) == 0)
		r = inbox_mkdir(step, e);
	alloc_free(run);
	alloc_free(step);
	return r;
}

/* Syncs the directory that holds a name. */
static int
inbox_sync(const struct inbox *s, const char *run, const uint64_t *step,
    const char *name, struct err *e)
{
	char *path = inbox_path(s, run, step, name, e);
	int r = -ERR_SYS;

	if (path != NULL)
		r = io_sync_path(path, e);
	alloc_free(path);
	return r;
}

/* A step that is over may have none any more. */
int
inbox_is_there(const struct inbox *s, const char *run, const uint64_t *step,
    struct err *e)
{
	char *path = inbox_path(s, run, step, "", e);
	int k;

	if (path == NULL)
		return -ERR_SYS;
	k = faccessat(AT(path), F_OK, 0) == 0 || errno != ENOENT;
	alloc_free(path);
	return k;
}

int
inbox_durable(const struct inbox *s, const char *run, const uint64_t *step,
    struct err *e)
{
	char *spool;
	int r = 0;

	if (s->sync != IO_SYNC_FULL)
		return 0;
	if (step != NULL && (r = inbox_is_there(s, run, step, e)) > 0)
		r = inbox_sync(s, run, step, "manifest", e);
	if (r == 0)
		r = inbox_sync(s, run, NULL, "closed", e);
	if (r < 0 || (spool = statedir_path(&s->state, "run", e)) == NULL)
		return -ERR_SYS;
	r = io_sync_path(spool, e);
	alloc_free(spool);
	return r;
}

int
inbox_temp(const struct inbox *s, const struct shard *sh, const char *end,
    char **path, struct io **io, struct err *e)
{
	char file[INBOX_FILE];
	int fd, r;

	inbox_file(sh, end, file);
	*path = statedir_path(&s->state, file, e);
	if (*path == NULL)
		return -ERR_SYS;
	if ((r = temp_create(*path, 0600, &fd, e)) < 0) {
		alloc_free(*path);
		*path = NULL;
		return r;
	}
	if ((r = io_create_fd(io, fd, *path, e)) < 0)
		(void)close(fd);
	else
		io_own(*io);
	return r;
}

int
inbox_lock(const struct inbox *s, const char *run, int how, int *fd,
    struct err *e)
{
	char *path = run == NULL ? statedir_path(&s->state, ".lock", e) :
	    inbox_path(s, run, NULL, "lock", e);
	int r = path != NULL ? fd_lock(path, how, fd, e) : -ERR_SYS;

	alloc_free(path);
	return r;
}

int
inbox_run_name(const struct inbox *s, const char *name, char **run,
    struct err *e)
{
	size_t n = strlen(s->state.dir) + strlen(name) + 32;
	char *path = alloc_get(n, 1, e);
	int k;

	*run = NULL;
	if (path == NULL)
		return -ERR_SYS;
	(void)snprintf(path, n, "%s/%s/schema.aceg", s->state.dir, name);
	if (faccessat(AT(path), F_OK, 0) < 0)
		k = errno == ENOENT || errno == ENOTDIR ? 0 :
		    err_sys(e, "'%s'", path);
	else
		k = ledger_run(path, run, e);
	alloc_free(path);
	return k;
}

char *
inbox_old(const struct inbox *s, const char *run, uint64_t step,
    const char *end, struct err *e)
{
	char name[48];

	(void)snprintf(name, sizeof(name), "old/%llu%s",
	    (unsigned long long)step, end);
	return inbox_path(s, run, NULL, name, e);
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
inbox_last(const struct inbox *s, const char *run, uint64_t *step,
    struct err *e)
{
	return inbox_number(s, run, "last", step, e);
}

int
inbox_floor(const struct inbox *s, const char *run, uint64_t *step,
    struct err *e)
{
	return inbox_number(s, run, "closed", step, e);
}

uint64_t
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

int
inbox_sign(const struct inbox *s, const char *run, struct receipt *r,
    struct err *e)
{
	uint64_t last = 0;
	int k = inbox_last(s, run, &last, e);

	r->clock = inbox_clock();
	if (k > 0)
		r->version = last;
	return k < 0 ? k : 0;
}

/* ---- handing out ---- */

int
inbox_aggregate(const struct inbox *s, const char *run, uint64_t step,
    char **path, struct err *e)
{
	struct ledger l;
	uint64_t floor;
	size_t i;
	int k;

	*path = inbox_path(s, run, &step, "aggregate.aceg", e);
	if (*path == NULL)
		return -ERR_SYS;
	if (faccessat(AT(*path), F_OK, 0) == 0) {
		/* the process that published it may have died before it was
		 * durable */
		if ((k = inbox_durable(s, run, &step, e)) == 0)
			return INBOX_HERE;
		alloc_free(*path);
		*path = NULL;
		return k;
	}
	k = errno == ENOENT ? 0 : err_sys(e, "'%s'", *path);
	alloc_free(*path);
	*path = NULL;
	if (k < 0 || (k = inbox_floor(s, run, &floor, e)) <= 0)
		return k < 0 ? k : INBOX_COMING;
	if (step > floor)
		return INBOX_COMING;
	/* it is closed already: by a manifest of its own, or because a later
	 * step was closed */
	if ((*path = inbox_path(s, run, &step, "manifest", e)) == NULL)
		return -ERR_SYS;
	memset(&l, 0, sizeof(l));
	if ((k = ledger_read(&l, *path, e)) > 0) {
		/* or without any that counts */
		for (i = 0; i < l.n && l.r[i].verdict != RECEIPT_ACCEPTED; i++)
			;
		k = i < l.n || l.n == 0 ? INBOX_COMING : INBOX_NEVER;
	} else if (k == 0) {
		k = step < floor ? INBOX_NEVER : INBOX_COMING;
	}
	ledger_release(&l);
	alloc_free(*path);
	*path = NULL;
	return k;
}
