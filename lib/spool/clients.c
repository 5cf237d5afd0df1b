#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/temp.h"
#include "format/text.h"
#include "spool/clients.h"
#include "spool/spool.h"

/* Bytes of the file that are locked and never written.  The spool's places begin at byte
 * 0, a device's at CLIENTS_DEVICES plus an offset made from the hash of its name. */
#define CLIENTS_DEVICES ((off_t)1 << 40)
#define CLIENTS_SHARDS ((off_t)1 << 49)	/* shards that a device is sending */
#define CLIENTS_SUMS ((off_t)1 << 39)	/* each ace-aggregate locks it, shared */

/* Lock one of the n bytes from `at' on.  Return 1, or 0 if all are taken. */
static int
clients_place(int fd, off_t at, uint64_t n, struct err *e)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = at, .l_len = 1 };

	for (; n > 0; n--, l.l_start++) {
		if (fcntl(fd, F_OFD_SETLK, &l) == 0)
			return 1;
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return err_sys(e, ".clients");
	}
	return 0;
}

static int
clients_take(int fd, uint64_t most, const char *device, uint64_t each,
    struct err *e)
{
	unsigned char id[16];
	int r = clients_place(fd, 0, most, e);

	if (r == 0)
		return err_set(e, ERR_REFUSED, "%llu connections are open, the most "
		    "allowed (limits: clients): try again later",
		    (unsigned long long)most);
	if (r < 0 || device == NULL)
		return r < 0 ? r : 0;
	shard_id(device, id);
	r = clients_place(fd, CLIENTS_DEVICES + (off_t)bytes_le32(id) *
	    CLIENTS_LIMIT, each, e);
	return r != 0 ? r < 0 ? r : 0 : err_set(e, ERR_REFUSED, "%llu connections of "
	    "device '%.80s' are open, the most allowed (limits: each): try again "
	    "later", (unsigned long long)each, device);
}

int
clients_open(const struct spool *s, int *fd, struct err *e)
{
	char *path = statedir_path(&s->state, ".clients", e);
	int r;

	*fd = -1;
	r = path != NULL ? fd_lock(path, 0, fd, e) : -ERR_SYS;
	alloc_free(path);
	return r;
}

static struct flock
clients_sum(short how)
{
	return (struct flock){ .l_type = how, .l_whence = SEEK_SET,
	    .l_start = CLIENTS_SUMS, .l_len = 1 };
}

int
clients_sums(const struct spool *s, int *fd, struct err *e)
{
	struct flock l = clients_sum(F_RDLCK);
	int r = clients_open(s, fd, e);

	/* go on without the lock, which is only for messages */
	if (r == 0)
		(void)fcntl(*fd, F_OFD_SETLK, &l);
	return r;
}

int
clients_summed(const struct spool *s)
{
	struct flock l = clients_sum(F_WRLCK);
	int fd, r = 1;

	if (clients_open(s, &fd, NULL) < 0)
		return 1;
	if (fcntl(fd, F_OFD_GETLK, &l) == 0)
		r = l.l_type != F_UNLCK;
	(void)close(fd);
	return r;
}

int
clients_enter(const struct spool *s, uint64_t most, const char *device,
    uint64_t each, int *fd, struct err *e)
{
	int r = clients_open(s, fd, e);

	if (r == 0 && (r = clients_take(*fd, most, device, each, e)) < 0) {
		(void)close(*fd);
		*fd = -1;
	}
	return r;
}

/* ---- shards that are being received ---- */

/* Return a lock of type `how' on the device's bytes for shards. */
static struct flock
clients_shards(const char *device, short how)
{
	unsigned char id[16];

	shard_id(device, id);
	return (struct flock){ .l_type = how, .l_whence = SEEK_SET,
	    .l_start = CLIENTS_SHARDS + (off_t)bytes_le32(id) * CLIENTS_LIMIT,
	    .l_len = CLIENTS_LIMIT };
}

int
clients_sends(int fd, const char *device, uint64_t *others, struct err *e)
{
	struct flock l = clients_shards(device, F_WRLCK), at = l;
	const off_t end = l.l_start + l.l_len;
	int k;

	*others = 0;
	while ((k = fcntl(fd, F_OFD_GETLK, &at)) == 0 && at.l_type != F_UNLCK) {
		++*others;
		at.l_type = F_WRLCK;
		at.l_start += at.l_len;
		at.l_len = end - at.l_start;
		at.l_pid = 0;
		if (at.l_len <= 0)
			break;
	}
	if (k < 0)
		return err_sys(e, ".clients");
	k = clients_place(fd, l.l_start, CLIENTS_LIMIT, e);
	return k < 0 ? k : 0;
}

void
clients_sent(int fd, const char *device)
{
	struct flock l = clients_shards(device, F_UNLCK);

	(void)fcntl(fd, F_OFD_SETLK, &l);
}

/* ---- the sandboxes of programs ---- */

const char *const clients_programs[] = { "ace-recv", "ace-aggregate", NULL };

static char *
clients_note_path(const struct spool *s, const char *program, struct err *e)
{
	char name[64];

	(void)snprintf(name, sizeof(name), ".sandbox.%s", program);
	return statedir_path(&s->state, name, e);
}

int
clients_noted(const struct spool *s, const char *program,
    char out[CLIENTS_NOTE], struct err *e)
{
	char *path = clients_note_path(s, program, e);
	size_t n;
	int k;

	if (path == NULL)
		return -ERR_SYS;
	k = io_text(path, out, CLIENTS_NOTE, NULL);
	alloc_free(path);
	if (k <= 0)
		return 0;
	n = strlen(out);
	if (n < 2 || out[n - 1] != '\n')
		return 0;
	out[n - 1] = '\0';
	return text_clean(out, n - 1);
}

/* Usually the line is there already and nothing is written.  Temporary files of killed
 * processes are removed first. */
void
clients_note(const struct spool *s, const char *program, const char *says)
{
	char line[CLIENTS_NOTE], *path;

	temp_sweep(s->state.dir);
	if (says[0] == '\0' || (clients_noted(s, program, line, NULL) > 0 &&
	    strcmp(line, says) == 0))
		return;
	(void)snprintf(line, sizeof(line), "%s\n", says);
	if ((path = clients_note_path(s, program, NULL)) != NULL)
		(void)io_set_text(path, line, IO_SYNC_NONE, NULL);
	alloc_free(path);
}
