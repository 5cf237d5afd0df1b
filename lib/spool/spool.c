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
#include "base/temp.h"
#include "format/reader.h"
#include "spool/spool.h"

#define SPOOL_DEVICE "device/"

static int spool_settle(const struct spool *s, const char *dir, int top,
    struct err *e);

int
spool_open(struct spool *s, const char *dir, int create, struct err *e)
{
	char path[SPOOL_PATH];
	int r;

	if (!create && access(dir, F_OK) < 0 && errno == ENOENT)
		return err_set(e, ERR_SYS, "spool '%s' is absent: check its name, or "
		    "make it with ace-recv --create", dir);
	r = statedir_open(&s->state, dir, e);
	if (r == 0 && (s->seen = alloc_get(1, sizeof(*s->seen), e)) == NULL)
		r = -ERR_SYS;
	if (r == 0 && s->sync == IO_SYNC_FULL)
		r = spool_settle(s, spool_path(s, NULL, "", path), 1, e);
	return r;
}

void
spool_close(struct spool *s)
{
	alloc_free(s->seen);
	statedir_close(&s->state);
}

/* ---- names ---- */

void
spool_name(const char *name, char out[SPOOL_NAME])
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
		out[n++] = '%';		/* the name is empty */
	out[n] = '\0';
	if (*name != '\0') {
		/* too long for a file name: replace the rest by the id, which is the
		 * hash of the whole name */
		shard_id(whole, id);
		out[n++] = '%';
		shard_hex(id, out + n);
	}
}

char *
spool_path(const struct spool *s, const uint64_t *step, const char *file,
    char out[SPOOL_PATH])
{
	const char *dir = s->state.dir, *slash = dir[strlen(dir) - 1] == '/' ? "" : "/";

	if (step != NULL)
		(void)snprintf(out, SPOOL_PATH, "%s%s%llu/%s", dir, slash,
		    (unsigned long long)*step, file);
	else
		(void)snprintf(out, SPOOL_PATH, "%s%s%s", dir, slash, file);
	return out;
}

void
spool_file(const char *device, const char *end, char out[SPOOL_FILE])
{
	char name[SPOOL_NAME];

	spool_name(device, name);
	/* a device `aggregate': aggregate.aceg is the name of the step's average */
	if (strcmp(name, "aggregate") == 0)
		(void)snprintf(name, sizeof(name), "%%61ggregate");
	(void)snprintf(out, SPOOL_FILE, "%.200s.%s", name, end);
}

char *
spool_of(const struct spool *s, const uint64_t *step, const char *device,
    const char *end, char out[SPOOL_PATH])
{
	char name[SPOOL_FILE], file[SPOOL_FILE + sizeof(SPOOL_DEVICE)];

	spool_file(device, end, name);
	(void)snprintf(file, sizeof(file), "%s%s", step == NULL ? SPOOL_DEVICE : "",
	    name);
	return spool_path(s, step, file, out);
}

/* Return the value of two hex digits, or -1. */
static int
spool_hex(const char *s)
{
	const char two[] = { s[0], s[0] != '\0' ? s[1] : '\0', '\0' };

	return strspn(two, "0123456789ABCDEFabcdef") == 2 ?
	    (int)strtol(two, NULL, 16) : -1;
}

/* Replace each %XX in n bytes of a file name by its byte. */
static void
spool_unescape(const char *name, size_t n, char out[SHARD_NAME + 1])
{
	size_t i, k = 0;
	int v;

	for (i = 0; i < n && k < SHARD_NAME; i++) {
		v = name[i] == '%' && i + 2 < n ? spool_hex(name + i + 1) : -1;
		if (v > 0)
			i += 2;
		out[k++] = v > 0 ? (char)v : name[i];
	}
	out[k] = '\0';
}

int
spool_device(const char *file, char out[SHARD_NAME + 1],
    unsigned char id[SHARD_ID])
{
	unsigned char own[SHARD_ID];
	const size_t n = strcspn(file, ".");
	size_t i;

	if (id == NULL)
		id = own;
	memset(id, 0, SHARD_ID);
	out[0] = '\0';
	/* a short name has at most 127 bytes; a longer one ends with its hash */
	if (n > 127 + 1 + 2 * SHARD_ID)
		return 0;
	if (n > 127) {
		spool_unescape(file, n - 1 - 2 * SHARD_ID, out);
		for (i = 0; i < SHARD_ID; i++)
			id[i] = (unsigned char)spool_hex(file + n -
			    2 * (SHARD_ID - i));
		return 0;
	}
	if (n != 1 || *file != '%')	/* "%" is the name "", which has no hash */
		spool_unescape(file, n, out);
	if (out[0] != '\0')
		shard_id(out, id);
	return 1;
}

int
spool_is_shard(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, ".aceg") == 0 &&
	    strcmp(name, SPOOL_AVERAGE) != 0;
}

const char *
spool_run_of(const struct shard *sh)
{
	const char *run = text_get(&sh->kv, SHARD_KEY_RUN);

	return run != NULL ? run : "";
}

const char *
spool_device_of(const struct shard *sh)
{
	const char *device = text_get(&sh->kv, SHARD_KEY_DEVICE);

	return device != NULL ? device : "";
}

int
spool_run(const struct spool *s, struct reader **r, struct err *e)
{
	char path[SPOOL_PATH];
	int k = spool_reader(r, spool_path(s, NULL, SPOOL_SCHEMA, path), e);

	if (k > 0)
		k = reader_to_shard(*r, e);
	if (k != -ERR_DATA)
		return k;
	e->kind = ERR_CORRUPT;
	return err_after(e, err_before(e, k, "'%s': ", path), ": remove the file, which the "
	    "next shard makes anew");
}

/* ---- receiving ---- */

/* Make the name of the directory dir durable.  The file .synced in it records this, so that it
 * happens once.  top 1: dir is that of the spool. */
static int
spool_settle(const struct spool *s, const char *dir, int top, struct err *e)
{
	const size_t slash = strlen(dir) - 1;
	char mark[SPOOL_PATH + sizeof(SPOOL_SYNCED)];
	int fd, r;

	(void)snprintf(mark, sizeof(mark), "%s" SPOOL_SYNCED, dir);
	if (faccessat(AT(mark), F_OK, 0) == 0)
		return 0;
	mark[slash] = '\0';
	r = top ? statedir_durable(&s->state, e) : fd_sync_name(mark, e);
	mark[slash] = '/';
	/* ignore errors: without the file, the next process syncs again */
	if (r == 0 && (fd = openat(AT(mark), O_WRONLY | O_CREAT | O_NOFOLLOW |
	    O_CLOEXEC, 0600)) >= 0)
		(void)close(fd);
	return r;
}

int
spool_made(const struct spool *s, const char *dir, struct err *e)
{
	if (mkdirat(AT(dir), 0700) < 0 && errno != EEXIST)
		return err_sys(e, "'%s'", dir);
	return s->sync == IO_SYNC_FULL ? spool_settle(s, dir, 0, e) : 0;
}

int
spool_begin(const struct spool *s, const uint64_t *step, struct err *e)
{
	const char *last = s->sync == IO_SYNC_FULL ? SPOOL_SYNCED : "";
	char path[SPOOL_PATH];
	int r = step != NULL ? spool_has(s, step, last, e) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	r = spool_made(s, spool_path(s, NULL, SPOOL_DEVICE, path), e);
	if (r == 0 && step != NULL)
		r = spool_made(s, spool_path(s, step, "", path), e);
	return r;
}

int
spool_there(const char *path, struct err *e)
{
	if (faccessat(AT(path), F_OK, 0) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, "'%s'", path);
}

int
spool_has(const struct spool *s, const uint64_t *step, const char *name,
    struct err *e)
{
	char path[SPOOL_PATH];

	return spool_there(spool_path(s, step, name, path), e);
}

int
spool_durable(const struct spool *s, const uint64_t *step, struct err *e)
{
	char path[SPOOL_PATH];
	int r;

	if (s->sync != IO_SYNC_FULL ||
	    (r = fd_sync_name(spool_path(s, step, ".", path), e)) == 0)
		return 0;
	/* the directory of a step that is over may be removed at any time */
	if (spool_has(s, step, "", NULL) == 0) {
		err_clear(e);
		r = 0;
	}
	return r;
}

int
spool_temp(const struct spool *s, const struct shard *sh, const char *end,
    char path[SPOOL_PATH], struct io **io, struct err *e)
{
	char file[SPOOL_FILE];
	int fd, r;

	spool_file(spool_device_of(sh), end, file);
	spool_path(s, NULL, file, path);
	if ((r = temp_create(path, O_RDWR, 0600, 0, &fd, e)) < 0) {
		path[0] = '\0';
		return r;
	}
	if ((r = io_create_fd(io, fd, path, e)) < 0)
		(void)close(fd);
	else
		io_own(*io);
	return r;
}

int
spool_lock(const struct spool *s, int *fd, struct err *e)
{
	char path[SPOOL_PATH];

	return fd_lock(spool_path(s, NULL, ".lock", path), LOCK_EX, fd, e);
}

uint64_t
spool_clock(void)
{
	const char *fixed = getenv("SOURCE_DATE_EPOCH");
	struct timespec t;

	if (fixed != NULL)
		return strtoull(fixed, NULL, 10) * 1000000000u;
	if (clock_gettime(CLOCK_REALTIME, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- small files ---- */

int
spool_reader(struct reader **r, const char *path, struct err *e)
{
	const struct reader_opts o = { .max_elements = SCHEMA_MAX_TOTAL };

	return reader_kept(r, path, &o, e);
}

int
spool_shard(const char *path, struct receipt *rc, struct err *e)
{
	const struct shard *sh;
	struct reader *r;
	int k, n = 0;

	memset(rc, 0, sizeof(*rc));
	if ((k = spool_reader(&r, path, e)) <= 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		if (k != READER_SEND)
			continue;
		n++;
		sh = reader_shard(r);
		memcpy(rc->run, sh->run, SHARD_ID);
		memcpy(rc->device, sh->device, SHARD_ID);
		rc->step = sh->step;
		memcpy(rc->digest, reader_end_of_shard(r)->digest,
		    SHARD_DIGEST);
	}
	reader_free(r);
	if (k == 0 && n != 1)
		k = err_set(e, ERR_DATA, "corrupt: the file has %d shards, expected 1", n);
	return k < 0 ? k : 1;
}

int
spool_number(const char *path, uint64_t *v, struct err *e)
{
	char s[32], *end;
	int k;

	*v = 0;
	if ((k = io_text(path, s, sizeof(s), e)) <= 0)
		return k;
	*v = strtoull(s, &end, 10);
	if (end == s || *end != '\n' || end[1] != '\0')
		return err_set(e, ERR_DATA, "corrupt: '%s' does not hold one "
		    "whole number: restore it from a backup", path);
	return 1;
}

int
spool_set_number(const char *path, uint64_t v, enum io_sync sync,
    struct err *e)
{
	char s[32];

	(void)snprintf(s, sizeof(s), "%llu\n", (unsigned long long)v);
	return io_set_text(path, s, sync, e);
}
