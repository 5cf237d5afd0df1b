/*
 * libFuzzer: treat any bytes as the zstd frame of the only tensor in a directory of a
 * model's changes; byte 0 is the coding.  The model has 64 bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/err.h"
#include "model/delta.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char dir[] = "/tmp/fuzz-delta-XXXXXX";
static char model[64], index_[64], frames[64];

static void
put(const char *path, const char *head, const void *p, size_t n)
{
	FILE *f = fopen(path, "wb");
	unsigned char b[8];

	if (f == NULL)
		abort();
	if (strcmp(path, index_) != 0) {
		bytes_set64(b, strlen(head));
		(void)fwrite(b, 1, 8, f);
	}
	(void)fwrite(head, 1, strlen(head), f);
	(void)fwrite(p, 1, n, f);
	(void)fclose(f);
}

static void
clear(void)
{
	(void)unlink(model);
	(void)unlink(index_);
	(void)unlink(frames);
	(void)rmdir(dir);
}

static void
begin(void)
{
	static int begun;
	char zeros[64] = { 0 };

	if (begun++)
		return;
	if (mkdtemp(dir) == NULL)
		abort();
	(void)snprintf(model, sizeof(model), "%s/model", dir);
	(void)snprintf(index_, sizeof(index_), "%s/model.safetensors.index.json",
	    dir);
	(void)snprintf(frames, sizeof(frames), "%s/f", dir);
	put(model, "{\"w\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[0,64]}}",
	    zeros, sizeof(zeros));
	(void)atexit(clear);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct model old = MODEL_INIT, new = MODEL_INIT;
	struct err e = ERR_INIT;
	struct delta_head h;
	char head[256];

	if (n < 1)
		return 0;
	begin();
	(void)snprintf(head, sizeof(head), "{\"metadata\":{\"version\":\"000001\","
	    "\"base_version\":\"000000\",\"delta_encoding\":\"%s\","
	    "\"compression_format\":\"zstd\",\"checksum_format\":\"adler32\"},"
	    "\"weight_map\":{\"w\":\"f\"}}", delta_codings[p[0] % 2]);
	put(index_, head, NULL, 0);
	(void)snprintf(head, sizeof(head), "{\"__metadata__\":{\"w\":\"00400001\"},"
	    "\"w\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}",
	    n - 1, n - 1);
	put(frames, head, p + 1, n - 1);
	if (model_open(&old, model, &e) < 0 || delta_head(dir, &h, &e) < 0)
		abort();
	if (delta_open(&new, &old, dir, &h, &e) == 0)
		model_close(&new);
	model_close(&old);
	return 0;
}
