/*
 * libFuzzer: read any bytes as a GGUF file.  If it is accepted, all of it is read, and each
 * group must lie inside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char path[] = "/tmp/fuzz-gguf-XXXXXX";

static void
clear(void)
{
	(void)unlink(path);
}

static void
put(const uint8_t *p, size_t n)
{
	static int fd = -1;

	if (fd < 0) {
		if ((fd = mkstemp(path)) < 0)
			abort();
		(void)atexit(clear);
	}
	if (ftruncate(fd, 0) < 0 || pwrite(fd, p, n, 0) != (ssize_t)n)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct model m = MODEL_INIT;
	struct err e = ERR_INIT;
	struct model_span s;
	unsigned char *b;
	uint32_t g;

	if (n < 4 || p[0] != 'G')
		return 0;
	put(p, n);
	if (model_open(&m, path, &e) < 0)
		return 0;
	if ((b = malloc(model_most(&m))) == NULL)
		abort();
	for (g = 0; g < m.schema.ngroups; g++) {
		model_span(&m, g, &s);
		if (model_read(&m, &s, b, &e) < 0)
			abort();
	}
	free(b);
	model_close(&m);
	return 0;
}
