/*
 * Kill programs anywhere: three devices send their steps through whole pipelines to one
 * spool, and an aggregator closes the steps.  All programs are killed at random places, at
 * system calls and by the clock.  After every few kills the commands that did not finish run
 * again, until all have:
 *
 *   - the values of every device balance to the bit after each run (report/conserve.h)
 *   - every aggregate is the sum of the shards in its manifest, each once, and what was
 *     accepted for a skipped step is in a later one
 *   - nothing hangs
 *   - the leftovers of killed processes are gone after a last round without kills
 *
 *   torture [-n KILLS] [-s SEED]
 *
 * The same seed gives the same kills, except for the scheduler's influence.
 */
#include <glob.h>

#include "world.h"

/* ---- pipelines ---- */

static void
start_one_step(struct device *v, int d)
{
	static const char *const sync[] = { "", " --sync rename" };
	char mail[PATH_MAX + 32] = "";
	int how = (int)choose(8);

	/* the return pipe may be missing: receipts then arrive later */
	if (how == 0 && roomy(d))
		(void)snprintf(mail, sizeof(mail), "> %s/back.%d", proc_dir, d);
	else
		(void)snprintf(mail, sizeof(mail), "| ace-ack -S %s/S%d",
		    proc_dir, d);
	v->line = proc_start("ace-import -f raw --shape %d -g %d --name w "
	    "-d edge%d -r run -s %llu %s/raw.%d.%llu | "
	    "ace-expand -S %s/S%d --wait 100ms %s| "
	    "ace-compress -S %s/S%d --window %d --wait 5s %s%s | "
	    "ace-recv --spool %s/D %s", N, GROUP, d,
	    (unsigned long long)v->next, proc_dir, d,
	    (unsigned long long)v->next, proc_dir, d, v->plan, proc_dir, d,
	    WINDOW, v->code, sync[choose(4) == 0], proc_dir, mail);
}

/* Send several steps in one stream, beginning with the residual's step if that is below
 * v->upto, else with v->next. */
static void
start_stream(struct device *v, int d)
{
	char path[PATH_MAX + 16], command[4 * PATH_MAX];
	uint64_t from, i;
	size_t n;

	if (!absorbed(d, &from) || from >= v->upto)
		from = v->next;
	(void)snprintf(path, sizeof(path), "%s/stream.%d", proc_dir, d);
	n = (size_t)snprintf(command, sizeof(command), "cat");
	for (i = from; i < v->upto; i++)
		n += (size_t)snprintf(command + n, sizeof(command) - n,
		    " %s/in.%d.%llu", proc_dir, d, (unsigned long long)i);
	(void)snprintf(command + n, sizeof(command) - n, " >%s", path);
	proc_must(system(command) == 0, command);
	v->line = proc_start("ace-expand -S %s/S%d --wait 5s %s %s| "
	    "ace-compress -S %s/S%d --window %d --wait 5s %s | "
	    "ace-recv --spool %s/D | ace-ack -S %s/S%d", proc_dir, d, path,
	    v->plan, proc_dir, d, WINDOW, v->code, proc_dir, proc_dir, d);
}

/* The device is unreachable: code its shard into a file, which start_mail may send. */
static void
start_away(struct device *v, int d)
{
	v->line = proc_start("ace-expand %s/in.%d.%llu %s| "
	    "ace-compress -S %s/S%d --window %d --wait 5s %s > %s/mail.%d.%u",
	    proc_dir, d, (unsigned long long)v->next, v->plan, proc_dir, d,
	    WINDOW, v->code, proc_dir, d, v->mail++ % MAIL);
}

static void
start_mail(int d)
{
	char path[PATH_MAX + 32];
	struct stat st;
	int line, i;

	(void)snprintf(path, sizeof(path), "%s/mail.%d.%u", proc_dir, d,
	    choose(MAIL));
	if (stat(path, &st) < 0 || st.st_size == 0)
		return;
	if (!w.d[d].todo && choose(2) == 0)	/* only one ace-ack may run */
		line = proc_start("ace-recv --spool %s/D %s | ace-ack -S %s/S%d",
		    proc_dir, path, proc_dir, d);
	else
		line = proc_start("ace-recv --spool %s/D %s", proc_dir, path);
	/* the file may have been cut short when it was written */
	for (i = 0; i < nproc; i++)
		procs[i].killed |= procs[i].line == line;
}

/* Return how many steps of the run are closed. */
static size_t
closed(void)
{
	char path[PATH_MAX + 32];
	glob_t g;
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/D/done/*", proc_dir);
	n = glob(path, GLOB_NOSORT, NULL, &g) == 0 ? g.gl_pathc : 0;
	globfree(&g);
	return n;
}

static void
start_aggregator(void)
{
	w.agg_line = proc_start("ace-aggregate --rule sum --spool %s/D --create "
	    "--devices %d --quorum %d --deadline %ums --rounds %zu --publish | "
	    "ace-recv --spool %s/D --publish", proc_dir, DEVICES, w.quorum,
	    5 + choose(60), closed() + 1, proc_dir);
}

/* ---- a try: all remaining work in parallel ---- */

struct killer {
	int left;		/* kills left in this try */
	uint32_t seen;
	double at;		/* time of the next kill; 0: kill at calls */
};

static void
killer_next(struct killer *k)
{
	k->at = 0;
	proc_page->action = CLIP_COUNT;
	if (k->left-- <= 0)
		return;
	if (choose(3) == 0) {
		k->at = clock_now() + choose(20000) / 1e6;
		return;
	}
	__atomic_store_n(&proc_page->left, 1 + choose(500), __ATOMIC_SEQ_CST);
	proc_page->action = CLIP_KILL;
}

/* Kill at most three processes, and plan the next kill. */
static void
killer_strike(struct killer *k)
{
	uint32_t n = nproc != 0 ? 1 + choose(3) : 0;

	while (n-- != 0)
		kills += proc_kill((int)choose((uint32_t)nproc)) != 0;
	killer_next(k);
}

static void
killer_look(struct killer *k)
{
	if (k->at != 0 && clock_now() >= k->at)
		killer_strike(k);
	if (proc_page->fired != k->seen) {
		in_calls += proc_page->fired - k->seen;
		kills += proc_page->fired - k->seen;
		k->seen = proc_page->fired;
		killer_next(k);
	}
}

static int
only_aggregator(void)
{
	int i;

	for (i = 0; i < nproc; i++)
		if (!procs[i].ended && procs[i].line != w.agg_line)
			return 0;
	return 1;
}

/* Kill all processes; those of the aggregator also count as killed if they ended before. */
static void
no_more(void)
{
	int i;

	proc_kill_all();
	for (i = 0; i < nproc; i++)
		procs[i].killed |= procs[i].line == w.agg_line;
}

/* Wait until all programs have ended.  Kill the aggregator when it has no work, since it
 * then waits for more. */
static void
watch(struct killer *k)
{
	double end = clock_now() + (double)PROC_HANG, idle = 0;

	while (proc_reap()) {
		killer_look(k);
		proc_nap(0.0005);
		if (clock_now() > end) {
			int i;

			for (i = 0; i < nproc && procs[i].ended; i++)
				continue;
			fail("hangs", i < nproc ? procs[i].name : "a child");
		}
		if (w.agg_line < 0 || !only_aggregator() || work_left())
			idle = 0;
		else if (idle == 0)
			idle = clock_now() + 0.03;
		else if (clock_now() > idle)
			no_more();
	}
	killer_look(k);
}

static void
start_device(int d)
{
	struct device *v = &w.d[d];

	if (v->away > 0 && v->upto == v->next + 1 && roomy(d))
		start_away(v, d);
	else if (v->upto == v->next + 1)
		start_one_step(v, d);
	else
		start_stream(v, d);
	runs++;
}

static void
try(int with_kills)
{
	struct killer k = { with_kills, 0, 0 };
	int d, first = (int)choose(DEVICES), i;

	proc_forget();
	proc_arm(CLIP_COUNT, CLIP_CHANGES, 0, 0);
	w.agg_line = -1;
	if (work_left() || choose(2) == 0)
		start_aggregator();
	killer_next(&k);
	for (i = 0; i < DEVICES; i++) {
		d = (first + i) % DEVICES;
		if (w.d[d].todo)
			start_device(d);
		if (choose(3) == 0)
			start_mail(d);
		if (choose(4) == 0)
			proc_nap(choose(3000) / 1e6);
		killer_look(&k);
	}
	watch(&k);
	for (d = 0; d < DEVICES; d++)
		if (w.d[d].todo && proc_good(w.d[d].line))
			w.d[d].todo = 0;
	check_balance();
	for (i = 0; i < nproc && with_kills == 0; i++)
		if (!procs[i].killed && proc_status(i) != 0) {
			(void)printf("# it ended with %d\n", proc_status(i));
			fail("without a kill", procs[i].name);
		}
}

/* Let every device join the run by ace-recv --join, after the first round. */
static void
everybody_joins(void)
{
	struct killer k = { 0, 0, 0 };
	int d;

	proc_forget();
	proc_arm(CLIP_COUNT, CLIP_CHANGES, 0, 0);
	w.agg_line = -1;
	for (d = 0; d < DEVICES; d++)
		(void)proc_start("ace-recv --spool %s/D --device "
		    "edge%d --join", proc_dir, d);
	watch(&k);
	for (d = 0; d < nproc; d++)
		if (proc_status(d) != 0)
			fail("does not join", procs[d].name);
}

/* Run a round: every device advances by one step or several. */
static void
one_round(int with_kills)
{
	int d, tries = 0, left;

	for (d = 0; d < DEVICES; d++) {
		struct device *v = &w.d[d];

		v->upto = v->next + 1;
		if (v->next == 0)
			continue;
		if (v->away > 0 || !with_kills)
			v->away--;
		else if (choose(w.quorum > 1 ? 2 : 8) == 0)
			v->away = 1 + (int)choose(3);
		else if (choose(6) == 0)
			v->upto += choose(BURST);
	}
	for (d = 0; d < DEVICES; d++)
		w.d[d].todo = 1;
	do {
		try(with_kills && tries < 3 ? 1 + (int)choose(3) : 0);
		left = work_left() || (tries == 0 && with_kills);
		for (d = 0; d < DEVICES; d++)
			left |= w.d[d].todo;
		if (++tries > 20)
			fail("no end of it", "20 tries");
	} while (left);
	for (d = 0; d < DEVICES; d++)
		w.d[d].next = w.d[d].upto;
	check_sums();
	rounds++;
}

static void
one_world(uint64_t until)
{
	static const char *const codes[] = {
		"-c topk:0.2", "-c f32", "-c exact", "-c f16", "-c topk:0.05",
		/* values that are not sent do not change, so sums stay exact */
		"--error-feedback cache:1"
	};
	char path[PATH_MAX + 32];
	uint64_t i;
	int d, n;

	choices = 0;
	w.quorum = 1 + (int)choose(DEVICES);
	for (d = 0; d < DEVICES; d++) {
		memset(&w.d[d], 0, sizeof(w.d[d]));
		w.d[d].code = codes[choose(6)];
		w.d[d].history = w.d[d].code == codes[5];
		w.d[d].plan = w.d[d].history ?
		    "| ace-score | ace-select -p 0.5=topk:0.3 " : "";
		for (i = 0; i < STEPS + BURST; i++)
			make_input(d, i);
	}
	for (i = 0; i < STEPS && kills < until; i++) {
		for (d = 0, n = 0; d < DEVICES; d++)
			n += w.d[d].next + BURST < STEPS + BURST;
		if (n < DEVICES)
			break;
		one_round(1);
		if (i == 0)
			everybody_joins();
	}
	/* a last round without kills leaves everything tidy */
	for (d = 0; d < DEVICES; d++)
		w.d[d].away = 0;
	one_round(0);
	if (strays() != 0) {
		verbose = 1;
		(void)strays();
		fail("left lying about", "temporary files");
	}
	(void)snprintf(path, sizeof(path), "rm -rf '%s'/[SDmsbi]*", proc_dir);
	proc_must(system(path) == 0, path);
	(void)snprintf(path, sizeof(path), "%s/log", proc_dir);
	(void)unlink(path);
}

int
main(int argc, char **argv)
{
	uint64_t until = 200, s;
	double start;
	int c;

	while ((c = getopt(argc, argv, "n:s:")) != -1)
		switch (c) {
		case 'n':
			until = strtoull(optarg, NULL, 10);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	proc_begin("ace-torture");
	w.sc = model_of(N, 0, GROUP);
	start = clock_now();
	for (s = seed; kills < until; seed++)
		one_world(until);
	(void)printf("ok 1 - %llu kills (%llu at system calls), %llu pipelines in "
	    "%llu rounds: %llu states balance to the bit, %llu sums are those of "
	    "their manifests, %llu shards of steps passed over are in later ones, "
	    "nobody hung\n1..1\n",
	    (unsigned long long)kills, (unsigned long long)in_calls,
	    (unsigned long long)runs, (unsigned long long)rounds,
	    (unsigned long long)checks, (unsigned long long)sums,
	    (unsigned long long)carried);
	(void)printf("# seeds %llu to %llu, %.0f s\n", (unsigned long long)s,
	    (unsigned long long)seed - 1, clock_now() - start);
	proc_end();
	schema_release(&w.sc);
	return 0;
}
