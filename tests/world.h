/* The state of torture.c: devices, their inputs, the files on disk, and the checks. */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include <dirent.h>
#include <math.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/rng.h"
#include "proc.h"
#include "device/error_feedback.h"
#include "device/pending.h"
#include "device/residual.h"
#include "format/values.h"
#include "format/writer.h"
#include "report/conserve.h"
#include "sync/compensate.h"
#include "spool/receipt_list.h"
#include "spool/spool.h"
#include "unit/model.h"

enum { DEVICES = 3, N = 300, GROUP = 64, STEPS = 16, BURST = 3, MAIL = 6,
    WINDOW = 4 };

struct device {
	const char *plan;	/* commands before ace-compress in the pipeline */
	const char *code;	/* options of ace-compress */
	int history;		/* 1: sends differences to a history (cache) */
	float h[N];		/* the receiver's history */
	uint64_t next;		/* first step that is not yet sent */
	uint64_t upto;		/* this round: steps next .. upto - 1 */
	int away;		/* rounds left in which the device is unreachable, if > 0 */
	int todo, line;		/* 1: this round's shards are not sent yet; its pipeline's number */
	unsigned mail;		/* number of files that start_away began */
};

struct world {
	struct device d[DEVICES];
	struct schema sc;
	int quorum;		/* a step with fewer shards is passed over */
	int agg_line;
};

static uint64_t seed = 1, kills, runs, checks, rounds, sums, in_calls, carried;
static uint32_t choices;
static int verbose;
static struct world w;

static uint32_t
choose(uint32_t below)
{
	uint32_t r[4];

	rng_block(seed, 77, 0, choices++, r);
	return r[0] % below;
}

static void
fail(const char *what, const char *more)
{
	char command[PATH_MAX + 32];

	(void)printf("not ok - %s: %s (seed %llu, after %llu kills; %s)\n",
	    what, more, (unsigned long long)seed, (unsigned long long)kills,
	    proc_dir);
	(void)fflush(stdout);
	(void)snprintf(command, sizeof(command),
	    "tail -n 20 %s/log | sed 's/^/# /'", proc_dir);
	if (system(command) < 0)
		exit(99);
	exit(1);
}

static void
must(int r, const struct err *e, const char *what)
{
	if (r < 0)
		fail(what, ERR_MSG(e));
}

/* ---- inputs: multiples of 2^-6, so that f32 sums are exact ---- */

static void
values(int d, uint64_t step, float *x)
{
	uint32_t r[4];
	uint32_t i;

	for (i = 0; i < N; i++) {
		rng_block(seed, (uint64_t)d * 1000 + step, 1, i, r);
		x[i] = r[1] % 4 == 0 ? 0 : ldexpf((float)(r[0] % 129) - 64, -6);
	}
}

static void
make_input(int d, uint64_t step)
{
	struct writer_opts o = { "torture", NULL, 0, 0 };
	char path[PATH_MAX + 64], name[16];
	struct writer *v = NULL;
	struct err e = ERR_INIT;
	struct schema_span span;
	struct shard sh;
	struct io *io;
	float x[N];
	uint32_t g;
	FILE *f;

	values(d, step, x);
	(void)snprintf(path, sizeof(path), "%s/raw.%d.%llu", proc_dir, d,
	    (unsigned long long)step);
	f = fopen(path, "wb");
	proc_must(f != NULL && fwrite(x, sizeof(x), 1, f) == 1 &&
	    fclose(f) == 0, path);
	(void)snprintf(path, sizeof(path), "%s/in.%d.%llu", proc_dir, d,
	    (unsigned long long)step);
	(void)snprintf(name, sizeof(name), "edge%d", d);
	shard_init(&sh);
	sh.step = step;
	must(shard_set_device(&sh, name, &e), &e, name);
	must(shard_set_run(&sh, "run", &e), &e, name);
	must(io_create(&io, path, 0, &e), &e, path);
	must(writer_open(&v, io, &o, &e), &e, path);
	must(writer_shard(v, &sh, &w.sc, &e), &e, path);
	for (g = 0; g < w.sc.ngroups; g++) {
		schema_span(&w.sc, g, &span);
		must(writer_values(v, g, x + span.offset, span.n, &e), &e,
		    path);
	}
	must(writer_send(v, NULL, &e), &e, path);
	must(writer_end(v, IO_SYNC_NONE, &e), &e, path);
	writer_free(v);
	shard_release(&sh);
}

/* ---- the files on disk ---- */

/* Set *step to the step of the device's residual. Return 1, or 0 if it has none. */
static int
absorbed(int d, uint64_t *step)
{
	char path[PATH_MAX + 16];
	struct statedir s = STATE_INIT;
	struct err e = ERR_INIT;
	struct residual q;
	int have;

	(void)snprintf(path, sizeof(path), "%s/S%d", proc_dir, d);
	if (access(path, F_OK) < 0)
		return 0;
	must(statedir_open(&s, path, &e), &e, path);
	must(residual_open(&q, &s, &e), &e, path);
	have = q.d.r != NULL;
	*step = q.step;
	residual_close(&q);
	statedir_close(&s);
	return have;
}

/* Return 1 if device d can send 2 more shards (1 if it has a history) before it needs a receipt. */
static int
roomy(int d)
{
	char path[PATH_MAX + 16];
	struct statedir s = STATE_INIT;
	struct err e = ERR_INIT;
	struct residual q;
	struct receipts rc;
	struct pending p;
	int room = 1;

	(void)snprintf(path, sizeof(path), "%s/S%d", proc_dir, d);
	if (access(path, F_OK) < 0)
		return 1;
	must(statedir_open(&s, path, &e), &e, path);
	must(residual_open(&q, &s, &e), &e, path);
	if (q.d.r != NULL) {
		must(pending_scan(&p, &s, &e), &e, path);
		must(receipts_load(&rc, &s, &e), &e, path);
		pending_judge(&p, &rc, reader_shard(q.d.r));
		room = w.d[d].history ? pending_count(&p) == 0 :
		    pending_count(&p) + 2 <= WINDOW;
	}
	residual_close(&q);
	statedir_close(&s);
	return room;
}

/* Call each(dir, name, arg) for the names in dir that are not hidden. */
static void
names(const char *dir, void (*each)(const char *dir, const char *name,
    void *arg), void *arg)
{
	struct dirent *de;
	DIR *h = opendir(dir);

	while (h != NULL && (de = readdir(h)) != NULL)
		if (de->d_name[0] != '.')
			each(dir, de->d_name, arg);
	if (h != NULL)
		(void)closedir(h);
}

static int
has_manifest(const char *dir, uint64_t step)
{
	char path[2 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/done/%llu", dir,
	    (unsigned long long)step);
	return access(path, F_OK) == 0;
}

static int
last_step(uint64_t *step)
{
	char path[PATH_MAX + 32];

	(void)snprintf(path, sizeof(path), "%s/D", proc_dir);
	for (*step = STEPS + BURST - 1; *step != 0; --*step)
		if (has_manifest(path, *step))
			return 1;
	return has_manifest(path, 0);
}

struct open_step {
	uint64_t last;
	int any, found;
};

static void
each_shard(const char *dir, const char *name, void *arg)
{
	const char *dot = strrchr(name, '.');

	(void)dir;
	if (dot != NULL && strcmp(dot, ".aceg") == 0 &&
	    strcmp(name, "aggregate.aceg") != 0)
		++*(int *)arg;
}

static void
each_step(const char *dir, const char *name, void *arg)
{
	struct open_step *o = arg;
	char path[2 * PATH_MAX];
	int n = 0;

	if (name[0] < '0' || name[0] > '9' ||
	    (o->any && strtoull(name, NULL, 10) <= o->last))
		return;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	names(path, each_shard, &n);
	o->found |= n >= w.quorum;
}

/* Return 1 if a step that is not aggregated yet has a quorum of shards. */
static int
work_left(void)
{
	struct open_step o = { 0, 0, 0 };
	char path[PATH_MAX + 16];

	o.any = last_step(&o.last);
	(void)snprintf(path, sizeof(path), "%s/D", proc_dir);
	names(path, each_step, &o);
	return o.found;
}

static void
each_stray(const char *dir, const char *name, void *arg)
{
	char path[2 * PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (strstr(name, ".new-") != NULL) {
		if (verbose)
			(void)printf("# left: %s\n", path);
		++*(int *)arg;
	}
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		names(path, each_stray, arg);
}

static int
strays(void)
{
	char path[PATH_MAX + 16];
	int n = 0, d;

	(void)snprintf(path, sizeof(path), "%s/D", proc_dir);
	names(path, each_stray, &n);
	for (d = 0; d < DEVICES; d++) {
		(void)snprintf(path, sizeof(path), "%s/S%d", proc_dir, d);
		names(path, each_stray, &n);
	}
	return n;
}

/* ---- checks ---- */

static void
check_balance(void)
{
	char state[PATH_MAX + 16], spool[PATH_MAX + 16];
	char path[STEPS + BURST][PATH_MAX + 64], *list[STEPS + BURST];
	struct conserve_in in = { state, spool, list, 0, NULL };
	struct conserve c;
	uint64_t step, i;
	int d, r;

	(void)snprintf(spool, sizeof(spool), "%s/D", proc_dir);
	for (d = 0; d < DEVICES; d++) {
		struct err e = ERR_INIT;

		(void)snprintf(state, sizeof(state), "%s/S%d", proc_dir, d);
		if (access(spool, F_OK) < 0 || !absorbed(d, &step))
			continue;
		for (i = 0; i <= step; i++) {
			(void)snprintf(path[i], sizeof(path[i]),
			    "%s/in.%d.%llu", proc_dir, d,
			    (unsigned long long)i);
			list[i] = path[i];
		}
		in.n = step + 1;
		r = conserve_check(&c, &in, &e);
		must(r, &e, "the balance of a device");
		if (c.off != 0)
			fail("the balance of a device", "not exact");
		checks++;
	}
}

/* Add sign times the values of the shard in a file to acc. If the shard is a difference,
 * reconstruct the values from h, and then replace h by them. */
static void
add_file(const char *path, double sign, double *acc, float *h)
{
	struct values v = VALUES_INIT;
	const char *base;
	float x[GROUP], rho = 0;
	int past;
	struct schema_span span;
	struct err e = ERR_INIT;
	struct reader *r;
	struct io *io;
	size_t i;
	int k;

	must(io_open(&io, path, &e), &e, path);
	must(reader_open(&r, io, NULL, &e), &e, path);
	while ((k = reader_next(r, &e)) > 0) {
		if (k != READER_SHARD)
			continue;
		v.differences = past = (reader_shard(r)->flags &
		    SHARD_PREDICTED) != 0;
		must(past ? feedback_cache_how(&rho, reader_shard(r), &base,
		    &e) : 0, &e, path);
		if (past && strcmp(base, "none") == 0)
			memset(h, 0, N * sizeof(*h));
		must(values_begin(&v, r, &e), &e, path);
		while ((k = values_next(&v, &e)) > 0) {
			schema_span(reader_schema(r), v.group, &span);
			memcpy(x, v.x, v.n * sizeof(*x));
			if (past) {
				if (!v.sent)
					compensate_absent(rho, h + span.offset, x, v.n);
				memcpy(h + span.offset, x, v.n * sizeof(*x));
			}
			for (i = 0; i < v.n; i++)
				acc[span.offset + i] += sign * (double)x[i];
		}
		must(k, &e, path);
	}
	must(k, &e, path);
	values_release(&v);
	reader_free(r);
}

static int counted[STEPS + BURST][DEVICES];

static void
check_sum(const char *dir, uint64_t step)
{
	char path[2 * PATH_MAX], device[SPOOL_NAME], name[32];
	unsigned long long of;
	unsigned char id[SHARD_ID];
	double acc[N] = { 0 };
	struct err e = ERR_INIT;
	struct receipt_list l;
	size_t i, d;

	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)step);
	(void)snprintf(path, sizeof(path), "%s/%s/aggregate.aceg", dir, name);
	if (access(path, F_OK) < 0)
		return;
	add_file(path, -1, acc, NULL);
	memset(&l, 0, sizeof(l));
	(void)snprintf(path, sizeof(path), "%s/done/%s", dir, name);
	if (receipt_list_read(&l, path, &e) <= 0 || l.n == 0)
		fail("no manifest", path);
	for (i = 0; i < l.n; i++) {
		of = l.line[i].r.step;
		if (l.line[i].r.verdict != RECEIPT_ACCEPTED)
			fail("something does not count in the manifest", path);
		for (d = 0; d < DEVICES; d++) {
			(void)snprintf(device, sizeof(device), "edge%zu", d);
			shard_id(device, id);
			if (memcmp(id, l.line[i].r.device, SHARD_ID) != 0)
				continue;
			(void)snprintf(path, sizeof(path), "%s/%llu/%s.aceg",
			    dir, of, device);
			add_file(path, 1, acc, w.d[d].h);
			if (counted[of][d]++ != 0)
				fail("counted twice", path);
		}
	}
	for (i = 0; i < N; i++)
		if (acc[i] != 0)
			fail("an aggregate is not the sum of its manifest",
			    path);
	receipt_list_release(&l);
	sums++;
}

/* Check each average, and that each shard of the steps up to the last closed one is in one. */
static void
check_sums(void)
{
	char path[PATH_MAX + 16], file[2 * PATH_MAX];
	uint64_t step, last;
	int d;

	memset(counted, 0, sizeof(counted));
	(void)snprintf(path, sizeof(path), "%s/D", proc_dir);
	for (step = 0; step < STEPS + BURST; step++)
		check_sum(path, step);
	for (step = 0; last_step(&last) && step <= last; step++)
		for (d = 0; d < DEVICES; d++) {
			(void)snprintf(file, sizeof(file), "%s/%llu/edge%d.aceg",
			    path, (unsigned long long)step, d);
			if (!counted[step][d] && access(file, F_OK) == 0)
				fail("accepted, and in no average", file);
			carried += counted[step][d] && access(file, F_OK) == 0 &&
			    !has_manifest(path, step);
		}
}

#endif
