/*
 * libFuzzer: read any bytes as one of the files that programs read beside a stream: a
 * manifest, a shard or a number of a spool, a table, a plan as text, a key ring, or a file of a
 * state.  The first byte selects the file.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../away.h"
#define FORGED_AT 1
#include "forged.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/statedir.h"
#include "base/table.h"
#include "device/learned.h"
#include "device/link.h"
#include "device/receipts.h"
#include "device/residual.h"
#include "format/plan_text.h"
#include "pipe/sign.h"
#include "spool/receipt_list.h"
#include "spool/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char statedir_dir[] = "/tmp/ace-fuzz.XXXXXX";

static void
gone(void)
{
	(void)nftw(statedir_dir, take_away, 16, FTW_DEPTH | FTW_PHYS);
}

/* Write p[n] as a file of a state, names[which], and read it. */
static void
kept(int which, const uint8_t *p, size_t n, struct err *e)
{
	static const char *const names[] = { "link", "receipts", "score", "residual" };
	static struct receipts receipts;
	static int made;
	struct statedir s = STATE_INIT;
	struct learned h = LEARNED_INIT;
	struct residual q;
	struct link l;
	char path[64];
	FILE *f;

	if (!made && (mkdtemp(statedir_dir) == NULL || atexit(gone) != 0))
		abort();
	made = 1;
	(void)snprintf(path, sizeof(path), "%s/%s", statedir_dir, names[which]);
	if ((f = fopen(path, "wb")) == NULL || fwrite(p, 1, n, f) != n ||
	    fclose(f) != 0 || statedir_open(&s, statedir_dir, e) < 0)
		abort();
	l = (struct link){ .n = 0 };
	if (which == 0)
		(void)link_load(&l, &s, e);
	else if (which == 1)
		(void)receipts_load(&receipts, &s, e);
	else if (which == 2)
		(void)learned_load(&h, &s, "score", e);
	else {
		if (residual_open(&q, &s, e) >= 0 && q.d.r != NULL)
			(void)residual_pending(&q, e);
		residual_close(&q);
	}
	learned_release(&h);
	statedir_close(&s);
	(void)unlink(path);
}

static void
named(int which, const char *path, struct err *e)
{
	struct receipt_list ledger = { .n = 0 };
	struct plan_text plan = PLAN_TEXT_INIT;
	struct table table = TABLE_INIT;
	struct receipt r;
	uint64_t number;

	switch (which) {
	case 0:
		(void)receipt_list_read(&ledger, path, e);
		receipt_list_release(&ledger);
		break;
	case 1:
		(void)spool_shard(path, &r, e);
		break;
	case 2:
		(void)spool_number(path, &number, e);
		break;
	case 3:
		if (table_read(&table, path, e) == 0)
			table_release(&table);
		break;
	case 4:
		if (plan_text_read(&plan, path, e) == 0)
			plan_text_release(&plan);
		break;
	case 5:
		sign_ring_free(sign_ring_read(path, e));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct err e = ERR_INIT;
	char path[32];
	int fd, which;

	if (n == 0)
		return 0;
	if ((which = p[0] % 10) >= 6) {
		kept(which - 6, p + 1, n - 1, &e);
		return 0;
	}
	if ((fd = memfd_create("input", 0)) < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, p + 1, n - 1) == (ssize_t)(n - 1))
		named(which, path, &e);
	(void)close(fd);
	return 0;
}
