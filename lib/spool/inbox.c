#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/temp.h"
#include "spool/inbox.h"
#include "spool/ledger.h"

#define INBOX_SYNCED ".synced"
#define INBOX_DEVICE "device/"

static int inbox_settle(const struct inbox *s, const char *dir, int top,
    struct err *e);

int
inbox_open(struct inbox *s, const char *dir, struct err *e)
{
	char *path;
	int r = statedir_open(&s->state, dir, e);

	if (r == 0 && (s->seen = alloc_get(1, sizeof(*s->seen), e)) == NULL)
		r = -ERR_SYS;
	if (r == 0 && s->sync == IO_SYNC_FULL) {
		path = statedir_path(&s->state, "", e);
		r = path != NULL ? inbox_settle(s, path, 1, e) : -ERR_SYS;
		alloc_free(path);
	}
	return r;
}

void
inbox_close(struct inbox *s)
{
	alloc_free(s->seen);
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

char *
inbox_path(const struct inbox *s, const uint64_t *step, const char *file,
    struct err *e)
{
	const size_t n = strlen(s->state.dir) + strlen(file) + 32;
	char *path = alloc_get(n, 1, e), in[24] = "";

	if (step != NULL)
		(void)snprintf(in, sizeof(in), "%llu/", (unsigned long long)*step);
	if (path != NULL)
		(void)snprintf(path, n, "%s/%s%s", s->state.dir, in, file);
	return path;
}

void
inbox_file(const char *device, const char *end, char out[INBOX_FILE])
{
	char name[INBOX_NAME];

	inbox_name(device, name);
	/* aggregate.aceg is the step's average */
	if (strcmp(name, "aggregate") == 0)
		(void)snprintf(name, sizeof(name), "%%61ggregate");
	(void)snprintf(out, INBOX_FILE, "%.200s.%s", name, end);
}

char *
inbox_of(const struct inbox *s, const uint64_t *step, const char *device,
    const char *end, struct err *e)
{
	const size_t n = step == NULL ? strlen(INBOX_DEVICE) : 0;
	char file[INBOX_FILE + sizeof(INBOX_DEVICE)];

	memcpy(file, INBOX_DEVICE, n);
	inbox_file(device, end, file + n);
	return inbox_path(s, step, file, e);
}

/* Return the value of two hex digits, or -1. */
static int
inbox_hex(const char *s)
{
	const char two[] = { s[0], s[0] != '\0' ? s[1] : '\0', '\0' };

	return strspn(two, "0123456789ABCDEFabcdef") == 2 ?
	    (int)strtol(two, NULL, 16) : -1;
}

/* Convert n bytes of a file name back. */
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
	if (n != 1 || *file != '%')	/* not that of "", which has no hash */
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

int
inbox_run(const struct inbox *s, char **name, struct err *e)
{
	char *path = inbox_path(s, NULL, INBOX_SCHEMA, e);
	struct receipt r;
	int k = path != NULL ? ledger_shard(path, &r, name, e) : -ERR_SYS;

	alloc_free(path);
	return k;
}

/* ---- receiving ---- */

/* Make the name of a directory durable, and make the file .synced in it, unless that is
 * there. */
static int
inbox_settle(const struct inbox *s, const char *dir, int top, struct err *e)
{
	const size_t n = strlen(dir) + sizeof(INBOX_SYNCED);
	char *mark = alloc_get(n, 1, e);
	int fd, r = -ERR_SYS;

	if (mark == NULL)
		return -ERR_SYS;
	(void)snprintf(mark, n, "%s" INBOX_SYNCED, dir);
	if (faccessat(AT(mark), F_OK, 0) == 0) {
		alloc_free(mark);
		return 0;
	}
	mark[strlen(dir) - 1] = '\0';
	r = top ? statedir_durable(&s->state, e) : io_sync_path(mark, e);
	mark[strlen(dir) - 1] = '/';
	/* if it cannot be made, the next process syncs again */
	if (r == 0 && (fd = openat(AT(mark), O_WRONLY | O_CREAT | O_NOFOLLOW |
	    O_CLOEXEC, 0600)) >= 0)
		(void)close(fd);
	alloc_free(mark);
	return r;
}

int
inbox_made(const struct inbox *s, const char *dir, struct err *e)
{
	if (mkdirat(AT(dir), 0700) < 0 && errno != EEXIST)
		return err_sys(e, "'%s'", dir);
	return s->sync == IO_SYNC_FULL ? inbox_settle(s, dir, 0, e) : 0;
}

void
inbox_unmake(const char *dir)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s" INBOX_SYNCED, dir) < PATH_MAX)
		(void)unlinkat(AT(path), 0);
	(void)unlinkat(AT(dir), AT_REMOVEDIR);
}

int
inbox_begin(const struct inbox *s, const uint64_t *step, struct err *e)
{
	const char *last = s->sync == IO_SYNC_FULL ? INBOX_SYNCED : "";
	char *path;
	int i, r = step != NULL ? inbox_has(s, step, last, e) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	for (i = 0; r == 0 && i < 1 + (step != NULL); i++) {
		path = inbox_path(s, i == 0 ? NULL : step, i == 0 ? INBOX_DEVICE : "",
		    e);
		r = path != NULL ? inbox_made(s, path, e) : -ERR_SYS;
		alloc_free(path);
	}
	return r;
}

int
inbox_has(const struct inbox *s, const uint64_t *step, const char *name,
    struct err *e)
{
	char *path = inbox_path(s, step, name, e);
	int k;

	if (path == NULL)
		return -ERR_SYS;
	k = faccessat(AT(path), F_OK, 0) == 0;
	if (k == 0 && errno != ENOENT && errno != ENOTDIR)
		k = err_sys(e, "'%s'", path);
	alloc_free(path);
	return k;
}

int
inbox_durable(const struct inbox *s, const uint64_t *step, struct err *e)
{
	char *path;
	int r;

	/* a step that is over may have no directory any more */
	if (s->sync != IO_SYNC_FULL || (r = inbox_has(s, step, "", e)) == 0)
		return 0;
	if (r < 0 || (path = inbox_path(s, step, ".", e)) == NULL)
		return -ERR_SYS;
	r = io_sync_path(path, e);
	alloc_free(path);
	return r;
}

int
inbox_temp(const struct inbox *s, const struct shard *sh, const char *end,
    char **path, struct io **io, struct err *e)
{
	char file[INBOX_FILE];
	int fd, r;

	inbox_file(inbox_device_of(sh), end, file);
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
inbox_lock(const struct inbox *s, int how, int *fd, struct err *e)
{
	char *path = inbox_path(s, NULL, ".lock", e);
	int r = path != NULL ? fd_lock(path, how, fd, e) : -ERR_SYS;

	alloc_free(path);
	return r;
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
