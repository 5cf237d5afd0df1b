/*
 * libFuzzer: read any bytes as a file of another program's format, or as an archive; byte 0
 * selects the format.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arc.h"
#include "base/err.h"
#include "base/io.h"
#include "files/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Read the entries of an archive, about 1 MiB at most. */
static void
archive(const char *path)
{
	struct arc_entry en;
	struct arc *a = NULL;
	struct io *io = NULL;
	struct err e = ERR_INIT;
	char bytes[4096];
	size_t got = 1, all = 0;

	if (io_open(&io, path, &e) == 0 && arc_open(&a, io, ARC_ANY, &e) == 0)
		while (arc_next(a, &en, &e) > 0 && arc_safe(a, &en, &e) == 0)
			for (got = 1; got != 0 && all < 1 << 20; all += got)
				if (arc_read(a, bytes, sizeof(bytes), &got,
				    &e) < 0)
					break;
	arc_free(a);
	io_free(io);
}

/* Read the schema and the values of a file in one of the formats. */
static void
file(enum format_id f, const char *path)
{
	struct format_opts o = { .group_size = 65536, .round = 1, .name = "w" };
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	float x[256];
	uint64_t left;
	int r;

	if (format_open(&s, f, path, &o, &e) < 0)
		return;
	left = format_schema(s)->total;
	for (r = 0; left != 0 && r == 0; left -= left < 256 ? left : 256)
		r = format_read(s, x, left < 256 ? (size_t)left : 256, &e);
	if (r == 0)
		(void)format_end(s, &e);
	format_close(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char path[32];
	int fd;

	if (n < 1 || (fd = memfd_create("input", 0)) < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, p + 1, n - 1) == (ssize_t)(n - 1)) {
		if (p[0] % 6 <= FORMAT_RAW)
			file((enum format_id)(p[0] % 6), path);
		else
			archive(path);
	}
	(void)close(fd);
	return 0;
}
