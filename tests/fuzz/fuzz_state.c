/*
 * libFuzzer: read any bytes as a device's residual with its pending shards, or read and change
 * them as a run's list of devices.  The first byte selects which.  The changed list must be
 * valid.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../away.h"
#define FORGED_AT 1
#include "forged.h"

#include "base/err.h"
#include "base/io.h"
#include "device/pending.h"
#include "spool/roster.h"
#include "spool/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { GROUPS = 64 };		/* groups of a pending shard that are read */

static const struct writer_opts made = { "fuzz", NULL, 0, 0 };

static void
put(const char *dir, const char *name, const uint8_t *p, size_t n)
{
	char path[96];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	if ((f = fopen(path, "wb")) == NULL || fwrite(p, 1, n, f) != n ||
	    fclose(f) != 0)
		abort();
}

static struct writer *
nowhere(void)
{
	struct err e = ERR_INIT;
	struct writer *w;
	struct io *io;

	if (io_create(&io, "/dev/null", 0, &e) < 0 || writer_open(&w, io, &made, &e) < 0)
		abort();
	return w;
}

/* ---- a device's residual ---- */

/* Make a receipt for every second pending shard, and copy those that are still open. */
static void
judged(const struct pending *all, const struct statedir *s,
    const struct shard *of, struct err *e)
{
	static struct receipts q;
	struct pending p = *all;
	struct writer *w = nowhere();
	struct residual r;
	struct receipt a;
	size_t i;

	memset(&q, 0, sizeof(q));
	for (i = 0; i < p.n; i += 2) {
		memset(&a, 0, sizeof(a));
		memcpy(a.run, of->run, SHARD_ID);
		memcpy(a.device, of->device, SHARD_ID);
		memcpy(a.digest, p.p[i].digest, SHARD_DIGEST);
		a.step = p.p[i].step;
		receipts_add(&q, &a);
	}
	pending_judge(&p, &q, of);
	if (pending_count(&p) > p.n / 2)
		abort();
	if (pending_owed(&p, UINT64_MAX) && residual_open(&r, s, e) == 0) {
		(void)pending_copy(&p, &r, w, UINT64_MAX, e);
		residual_close(&r);
	}
	writer_free(w);
}

/* Read the first GROUPS groups of a pending shard twice: decoded, and as the previous body
 * from which some codecs begin. */
static void
pending_read(const struct statedir *s, uint64_t step)
{
	struct err e = ERR_INIT;
	struct codec_last c;
	struct pending_last l = { .open = 0 };
	struct dense d;
	const float *x;
	uint32_t g;

	memset(&d, 0, sizeof(d));
	if (pending_values(&d, s, step, &e) == 0)
		for (g = 0; g < GROUPS &&
		    g < reader_schema(d.r)->ngroups; g++)
			if (dense_group(&d, g, &x, &e) < 0)
				break;
	dense_close(&d);
	err_clear(&e);
	for (g = 0; g < GROUPS; g++)
		if (pending_last_group(&l, s, step, g, &c, &e) < 0)
			break;
	pending_last_close(&l);
	err_clear(&e);
}

static void
residual(const char *dir, const uint8_t *p, size_t n)
{
	struct statedir s = STATE_INIT;
	struct err e = ERR_INIT;
	struct pending all;
	struct residual q;
	struct shard of;
	size_t i;

	put(dir, "residual", p, n);
	if (statedir_open(&s, dir, &e) < 0)
		abort();
	if (residual_open(&q, &s, &e) == 0 && q.d.r != NULL) {
		of = *reader_shard(q.d.r);
		residual_close(&q);
		if (pending_scan(&all, &s, &e) == 0) {
			judged(&all, &s, &of, &e);
			for (i = 0; i < all.n; i++)
				pending_read(&s, all.p[i].step);
		}
	} else {
		residual_close(&q);
	}
	err_clear(&e);
	statedir_close(&s);
}

/* ---- a run that a device joins ---- */

/* Check that the list contains a device after it joined, and not after it left. */
static void
roster(const struct spool *s)
{
	struct array_names t = ARRAY_NAMES_INIT, missing = t, here = t;
	struct err e = ERR_INIT;
	size_t i;
	int joins, in;

	(void)roster_missing(&missing, s, &here, 1, &e);
	err_clear(&e);
	for (joins = 1; joins >= 0; joins--) {
		if (roster_change(s, "edge", joins, &e) < 0)
			break;
		array_release(&t);
		if (roster_read(&t, s, &e) < 0)
			abort();
		for (in = 0, i = 0; i < t.n; i++)
			in += strcmp(t.p[i], "edge") == 0;
		if (in != joins)
			abort();
	}
	err_clear(&e);
	array_release(&missing);
	array_release(&t);
}

static void
devices(const char *dir, const uint8_t *p, size_t n)
{
	struct spool s = SPOOL_INIT;
	struct err e = ERR_INIT;

	if (spool_open(&s, dir, 1, &e) < 0)
		abort();
	s.sync = IO_SYNC_NONE;
	put(dir, "devices", p, n);
	roster(&s);
	spool_close(&s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char dir[] = "/tmp/ace-state.XXXXXX";

	if (n == 0)
		return 0;
	if (mkdtemp(dir) == NULL)
		abort();
	if (p[0] % 2 == 0)
		residual(dir, p + 1, n - 1);
	else
		devices(dir, p + 1, n - 1);
	(void)nftw(dir, take_away, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
