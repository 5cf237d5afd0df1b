/*
 * Test manifest_average: a step has an average, will have one, or never gets one.  Programs
 * wait while the answer is "will have"; if that is wrong, they wait endlessly.
 */
#include <sys/stat.h>

#include "base/err.h"
#include "spool/manifest.h"
#include "spool/receipt_list.h"
#include "spool/spool.h"

#include "../inside.h"
#include "../tap.h"

static struct spool s = SPOOL_INIT;
static struct err e = ERR_INIT;

/* Write to path the manifest of a step with n shards, v[i] the verdict on the i-th. */
static void
closes(const char *path, uint64_t step, int n, const enum receipt_verdict *v)
{
	struct receipt_list l;
	struct receipt r;
	int i, k = 0;

	memset(&l, 0, sizeof(l));
	memset(&r, 0, sizeof(r));
	for (i = 0; i < n && k == 0; i++) {
		r.verdict = v[i];
		r.step = step;
		k = receipt_list_add(&l, &r, "edge.aceg", &e);
	}
	if (k < 0 || receipt_list_write(&l, path, IO_SYNC_NONE, &e) < 0)
		ok(0, "a manifest: %s", ERR_MSG(&e));
	receipt_list_release(&l);
}

/* Return the answer for step 5 when `step' was closed last, with this manifest. */
static int
when(uint64_t step, int n, const enum receipt_verdict *v)
{
	closes("closed", step, n, v);
	return manifest_average(&s, 5, &e);
}

/* Return the answer for step 5, closed with this manifest, when step 6 was closed later. */
static int
then(int n, const enum receipt_verdict *v)
{
	int k;

	closes("done/5", 5, n, v);
	k = when(6, 1, v);
	(void)unlink("done/5");
	return k;
}

/* Test a name of n letters: a file name has all of it, or its beginning and its hash. */
static void
long_name(const char *letter, size_t n)
{
	char name[256] = "", file[SPOOL_FILE], back[SHARD_NAME + 1];
	unsigned char id[SHARD_ID], want[SHARD_ID];
	size_t i;
	int whole;

	for (i = 0; i < n; i++)
		(void)strcat(name, letter);
	spool_file(name, "aceg", file);
	whole = spool_device(file, back, id);
	shard_id(name, want);
	i = strlen(back);
	ok(memcmp(id, want, SHARD_ID) == 0 && i > 0 &&
	    strncmp(back, name, i) == 0 && whole == (i == n),
	    "a name of %zu '%s': %zu of them and its hash", n, letter, i);
}

int
main(void)
{
	static const enum receipt_verdict all[] = { RECEIPT_ACCEPTED,
	    RECEIPT_ACCEPTED }, one[] = { RECEIPT_INVALID,
	    RECEIPT_ACCEPTED },
	    none[] = { RECEIPT_INVALID, RECEIPT_INVALID };
	FILE *f;

	if (mkdir("5", 0700) < 0 || mkdir("done", 0700) < 0 || spool_open(&s, ".", 1, &e) < 0)
		return 1;
	s.sync = IO_SYNC_NONE;
	long_name("a", 124);
	long_name("a", 125);
	long_name("a", 200);
	long_name("/", 41);
	long_name("/", 42);
	long_name("/", 80);
	ok(manifest_average(&s, 5, &e) == MANIFEST_COMING,
	    "no step is closed: it may come");
	ok(when(4, 2, all) == MANIFEST_COMING, "a step before it is closed: it may "
	    "come");
	ok(when(6, 2, all) == MANIFEST_NEVER, "a later step is closed and this one has "
	    "no manifest: it was passed over, and never comes");
	ok(when(5, 2, all) == MANIFEST_COMING && then(2, all) == MANIFEST_COMING,
	    "it is closed with its shards: it comes, also after later steps");
	ok(when(5, 2, one) == MANIFEST_COMING && then(2, one) == MANIFEST_COMING,
	    "one shard is set aside: it comes");
	ok(when(5, 2, none) == MANIFEST_NEVER && then(2, none) == MANIFEST_NEVER,
	    "all of its shards are set aside: it never comes");
	if ((f = fopen("5/aggregate.aceg", "w")) != NULL)
		(void)fclose(f);
	ok(when(4, 2, all) == MANIFEST_HERE && when(5, 2, none) == MANIFEST_HERE &&
	    when(6, 2, all) == MANIFEST_HERE,
	    "it is in the spool, whatever the manifest says");
	(void)unlink("5/aggregate.aceg");
	if ((f = fopen("closed", "w")) != NULL) {
		(void)fputs("five\n", f);
		(void)fclose(f);
	}
	ok(manifest_average(&s, 5, NULL) == -ERR_DATA && manifest_average(&s, 5, &e) ==
	    -ERR_DATA && strstr(ERR_MSG(&e), "closed") != NULL,
	    "a damaged `closed' is no reason to wait: %s", ERR_MSG(&e));
	err_clear(&e);
	spool_close(&s);
	return done_testing();
}
