#include <errno.h>
#include <fcntl.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/fd.h"
#include "spool/clients.h"
#include "spool/spool.h"

/* Each connection locks bytes of the file, which are never written: one of the bytes from 0
 * on for the spool, and one from CLIENTS_DEVICES + CLIENTS_LIMIT * (the first 32 bits of the
 * device's id) on for its device. */
#define CLIENTS_DEVICES ((off_t)1 << 40)

/* Lock a free one of the n bytes from `at' on.  Return 1, or 0 if all are locked. */
static int
clients_place(int fd, off_t at, uint64_t n, struct err *e)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = at, .l_len = 1 };

	for (; n > 0; n--, l.l_start++) {
		if (fcntl(fd, F_OFD_SETLK, &l) == 0)
			return 1;
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return err_sys(e, "cannot lock file .clients of the spool");
	}
	return 0;
}

int
clients_open(const struct spool *s, int *fd, struct err *e)
{
	char path[SPOOL_PATH];

	*fd = -1;
	return fd_lock(spool_path(s, NULL, ".clients", path), 0, fd, e);
}

int
clients_enter(int fd, uint64_t most, const char *device, uint64_t each, struct err *e)
{
	unsigned char id[16];
	int r = clients_place(fd, 0, most, e);

	if (r == 0)
		r = err_set(e, ERR_REFUSED, "too many open connections, expected at most "
		    "%llu (limits: clients): try again later",
		    (unsigned long long)most);
	if (r > 0 && device != NULL) {
		shard_id(device, id);
		r = clients_place(fd, CLIENTS_DEVICES + (off_t)bytes_le32(id) *
		    CLIENTS_LIMIT, each, e);
		if (r == 0)
			r = err_set(e, ERR_REFUSED, "too many open connections of "
			    "device '%.80s', expected at most %llu (limits: each): try "
			    "again later, or end its old ace-recv processes", device,
			    (unsigned long long)each);
	}
	return r < 0 ? r : 0;
}
