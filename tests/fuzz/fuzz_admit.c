/*
 * libFuzzer: treat any bytes as input of a device to a receiver with a new spool.  If a shard
 * is accepted, aggregate one step.  The step must have an average, from which no contribution
 * is excluded.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../away.h"
#include "../memory.h"
#include "forged.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "mean/aggregate.h"
#include "pipe/filter.h"
#include "spool/receipt_list.h"
#include "spool/receive.h"
#include "spool/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char name[] = "fuzz";
static struct cli quiet = { .prog = name, .quiet = 1 };
static unsigned accepted;

static int
look(const char *path, const struct stat *st, int type, struct FTW *at)
{
	const char *file = path + at->base;
	struct receipt_list l = { .n = 0 };
	struct err e = ERR_INIT;
	size_t i;

	(void)st;
	if (type != FTW_F)
		return 0;
	accepted += (unsigned)spool_is_shard(file);
	if (strcmp(file, "closed") != 0)
		return 0;
	if (receipt_list_read(&l, path, &e) < 0)
		abort();
	for (i = 0; i < l.n; i++)
		if (!receipt_is_accepted(&l.line[i].r))
			__builtin_trap();	/* the contribution was excluded */
	receipt_list_release(&l);
	return 0;
}

static void
receive(const char *dir, const uint8_t *p, size_t n)
{
	struct receive_opts o = { .cli = &quiet };
	struct reader_opts ro = { .max_elements = 1 << 16 };
	struct spool s = SPOOL_INIT;
	struct err e = ERR_INIT;
	struct reader *in = NULL;
	struct io *io;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	s.sync = IO_SYNC_NONE;
	if (null < 0 || spool_open(&s, dir, 1, &e) < 0 ||
	    limits_read(&o.limits, &s, NULL, &e) < 0)
		abort();
	o.limits.shard = 1 << 20;
	if (memory_open(&io, p, n, &e) == 0 &&
	    reader_open(&in, io, &ro, &e) == 0)
		(void)receive_all(&s, in, &o, null, &e);
	(void)close(null);
	reader_free(in);
	spool_close(&s);
}

/* Aggregate the first complete step of the spool. */
static int
average(const char *dir, struct err *e)
{
	char *argv[] = { name, NULL };
	struct aggregate_opts o = { .device = "aggregate",
	    .who = { .rule_text = "mean", .theta = -1 }, .expect = 1,
	    .steps = 1, .spool = dir };
	struct filter f;
	int r;

	filter_init(&f, &quiet, argv);
	f.output = "/dev/null";
	f.sync = IO_SYNC_NONE;
	o.f = &f;
	r = aggregate_run(&o, NULL, 0, e);
	filter_release(&f);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char dir[] = "/tmp/ace-admit.XXXXXX";
	struct err e = ERR_INIT;

	if (mkdtemp(dir) == NULL)
		abort();
	receive(dir, p, n);
	accepted = 0;
	if (nftw(dir, look, 16, 0) < 0)
		abort();
	if (accepted > 0) {
		if (average(dir, &e) < 0) {
			(void)fprintf(stderr, "%s\n", ERR_MSG(&e));
			__builtin_trap();
		}
		(void)nftw(dir, look, 16, 0);
	}
	(void)nftw(dir, take_away, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
