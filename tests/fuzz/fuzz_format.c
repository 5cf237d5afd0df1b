/*
 * libFuzzer: any bytes as a file of somebody else's; byte 0 says of whose.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "files/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct format_opts o = { .group_size = 65536, .round = 1, .name = "w" };
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	float x[256];
	char path[32];
	uint64_t left;
	int fd, r;

	if (n < 1 || (fd = memfd_create("input", 0)) < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, p + 1, n - 1) == (ssize_t)(n - 1) &&
	    format_open(&s, (enum format_id)(p[0] % 3), path, &o, &e) == 0) {
		left = format_schema(s)->total;
		for (r = 0; left != 0 && r == 0; left -= left < 256 ? left : 256)
			r = format_read(s, x, left < 256 ? (size_t)left : 256,
			    &e);
		if (r == 0)
			(void)format_end(s, &e);
		format_close(s);
	}
	(void)close(fd);
	return 0;
}
