#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "spool/clients.h"
#include "spool/inbox.h"
#include "spool/ledger.h"

/* The places of the spool are the first bytes; those of a device are further on,
 * where the hash of its name says.  Nothing is ever written there. */
#define CLIENTS_DEVICES ((off_t)1 << 40)

/* Takes one of n places from the byte `at' on: 1, or 0 when all are taken. */
static int
clients_place(int fd, off_t at, uint64_t n, const char *name, struct err *e)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = at, .l_len = 1 };

	for (; n > 0; n--, l.l_start++) {
		if (fcntl(fd, F_OFD_SETLK, &l) == 0)
			return 1;
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return err_sys(e, "'%s'", name);
	}
	return 0;
}

static int
clients_take(int fd, uint64_t most, const char *device, uint64_t each,
    const char *name, struct err *e)
{
	unsigned char id[16];
	int r = clients_place(fd, 0, most, name, e);

	if (r == 0)
		return err_set(e, ERR_REFUSED, "'%s': %llu connections are "
		    "served already (--max-clients)", name,
		    (unsigned long long)most);
	if (r < 0 || device == NULL)
		return r < 0 ? r : 0;
	ledger_hash(device, id);
	r = clients_place(fd, CLIENTS_DEVICES + (off_t)bytes_le32(id) *
	    CLIENTS_LIMIT, each, name, e);
	return r != 0 ? r < 0 ? r : 0 : err_set(e, ERR_REFUSED, "%llu "
	    "connections of device '%.80s' are served already "
	    "(--max-each)", (unsigned long long)each, device);
}

int
clients_enter(const struct inbox *s, uint64_t most, const char *device,
    uint64_t each, int *fd, struct err *e)
{
	char *path = state_path(&s->state, ".clients", e);
	int r;

	*fd = -1;
	if (path == NULL)
		return -ERR_SYS;
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = *fd < 0 ? err_sys(e, "'%s'", path) :
	    clients_take(*fd, most, device, each, path, e);
	if (r < 0 && *fd >= 0) {
		(void)close(*fd);
		*fd = -1;
	}
	alloc_free(path);
	return r;
}
