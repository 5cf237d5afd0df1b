/*
 * Make system calls fail.  For each case of fault_cases.h: each read, write, open, fsync,
 * rename, link, close, flock, malloc and some more fails with each error of faults[], alone
 * and, except EINTR and EAGAIN, with all later ones.  Allocations of libraries fail, too; in
 * refuse.c only those of our own code do.  Each time, unless the case is `loose',
 *
 *   - the program ends, with 0 or a documented status, and gives the reason if not 0
 *   - with 0 its output and its state are those of a run without the failure
 *   - otherwise each file of its state is the old one or the new one
 *   - a second run without failures completes the work
 *
 *   fault [-e EVERY] [NAME]
 *
 * -e: only every EVERY-th failure.  NAME: only cases whose names begin with NAME.  The log
 * follows a wrong result.
 */
#include "fault_cases.h"
#include "tree.h"

enum { BIG = 1 << 20 };

static const struct {
	enum clip_call call;
	const char *name;
	int error[6];
} faults[] = {
	{ CLIP_READ, "read", { EIO, EINTR, EAGAIN } },
	{ CLIP_WRITE, "write", { EIO, ENOSPC, EDQUOT, EINTR, EAGAIN } },
	{ CLIP_OPEN, "open", { EIO, EMFILE, ENOSPC, EDQUOT } },
	{ CLIP_FSYNC, "fsync", { EIO, ENOSPC, EDQUOT } },
	{ CLIP_RENAME, "rename", { EIO, ENOSPC, EDQUOT } },
	{ CLIP_LINK, "link", { EIO, ENOSPC, EDQUOT, EPERM } },
	{ CLIP_CLOSE, "close", { EIO, ENOSPC, EINTR } },
	{ CLIP_FLOCK, "flock", { EIO, ENOLCK, EINTR } },
	{ CLIP_UNLINK, "unlink", { EIO } },
	{ CLIP_MKDIR, "mkdir", { EIO, ENOSPC, EDQUOT } },
	{ CLIP_STAT, "stat", { EIO } },
	{ CLIP_SEEK, "lseek", { EIO } },
	{ CLIP_OTHER, "poll", { EINTR } },
	{ CLIP_MALLOC, "malloc", { ENOMEM } }
};

/* ---- files ---- */

/* Set t to the files in S, D and C, the names of states, spools and caches. */
static void
look_here(struct tree *t)
{
	tree_take(t, "S");
	tree_add(t, "D");
	tree_add(t, "C");
}

static uint64_t
file_sum(const char *path)
{
	static unsigned char b[BIG];
	int fd = open(path, O_RDONLY);
	ssize_t k = fd < 0 ? -1 : read(fd, b, sizeof(b));

	if (fd >= 0)
		(void)close(fd);
	return k < 0 ? 0 : hash_64(b, (size_t)k);
}

/* ---- a case ---- */

struct fault_run {
	const struct fault_case *c;
	struct tree was, will;
	uint64_t out;
	unsigned long seen, tried, clean, tolerated, bad;
};

static unsigned long every = 1, turn;

static void
shell(const char *command)
{
	char text[2100];

	(void)snprintf(text, sizeof(text), "set -e; %s", command);
	proc_must(system(text) == 0, command);
}

static void
fresh(void)
{
	shell("rm -rf work; cp -r template work");
}

/* Run the command in work once. Return its status, or -1 if it hung. */
static int
run(const struct fault_case *c)
{
	char log[300];
	int r;

	(void)snprintf(log, sizeof(log), "%s/log", proc_dir);
	if (truncate(log, 0) < 0)
		perror("truncate");
	proc_must(chdir("work") == 0, "work");
	proc_forget();
	(void)proc_start("%s", c->command);
	r = proc_wait(PROC_HANG);
	if (r < 0) {
		proc_kill_all();
		(void)proc_wait(PROC_HANG);
	} else {
		r = proc_status(0);
	}
	proc_must(chdir("..") == 0, "..");
	return r;
}

static int
said_something(void)
{
	struct stat st;
	char log[300];

	(void)snprintf(log, sizeof(log), "%s/log", proc_dir);
	return stat(log, &st) == 0 && st.st_size > 0;
}

/* Recognise that libarchive lacked memory for a few bytes: it prints a message and
 * ends the program with status 1 before our code learns of it. */
static int
libarchive_ended(void)
{
	char log[300], text[80];
	FILE *f;
	int said;

	(void)snprintf(log, sizeof(log), "%s/log", proc_dir);
	if ((f = fopen(log, "r")) == NULL)
		return 0;
	said = fgets(text, sizeof(text), f) != NULL &&
	    strstr(text, "Fatal Internal Error in libarchive") != NULL;
	(void)fclose(f);
	return said;
}

static void
look(struct tree *now)
{
	proc_must(chdir("work") == 0, "work");
	look_here(now);
	proc_must(chdir("..") == 0, "..");
}

/* Return what is wrong with the way the program ended, or NULL. */
static const char *
judge(struct fault_run *f, int status, int error)
{
	struct tree now;

	look(&now);
	if (status < 0)
		return "hangs";
	if (status == 0) {
		f->tolerated++;
		if (f->c->loose != CLOCK && file_sum("work/out") != f->out)
			return "silent: another output";
		return f->c->loose == FUZZY ||
		    tree_done(&now, &f->was, &f->will) ? NULL :
		    "silent: another state";
	}
	if (error == EINTR && strcmp(proc_page->what, "close") != 0 &&
	    strcmp(proc_page->what, "flock") != 0 && status != 4)
		return "an interrupt has an effect";
	f->clean++;
	if (status == 128 + SIGSEGV && (f->c->loose & LIBRARY) != 0 &&
	    error == ENOMEM)
		return NULL;
	if (status > 5)
		return "crashes";
	if (status != 4 && status != 5 && status != 3 &&
	    !(status == 1 && libarchive_ended()))
		return "status";
	if (!said_something())
		return "says nothing";
	if ((f->c->loose & (FUZZY | COMMITS)) == 0 && !tree_between(&now, &f->was, &f->will))
		return "a state neither old nor new";
	return NULL;
}

static void
one(struct fault_run *f, const char *what, int64_t nth, int error, int action)
{
	const char *wrong;
	struct tree now;
	int status;

	f->seen++;
	if (turn++ % every != 0)
		return;
	f->tried++;
	status = run(f->c);
	wrong = judge(f, status, error);
	proc_arm(CLIP_COUNT, 0, 0, 0);
	if (wrong == NULL && (f->c->loose != ENDLESS ||
	    access("work/D/done/0", F_OK) < 0)) {
		status = run(f->c);
		look(&now);
		if (status != 0)
			wrong = "not the second time";
		else if (f->c->loose != LEARNS && f->c->loose != CLOCK &&
		    file_sum("work/out") != f->out)
			wrong = "another output the second time";
		else if ((f->c->loose & (FUZZY | LEARNS)) == 0 &&
		    !tree_done(&now, &f->was, &f->will))
			wrong = "another state the second time";
	}
	if (wrong != NULL && f->bad++ < 10) {
		(void)printf("# %s: %s %lld %s%s: %s (status %d)\n",
		    f->c->name, what, (long long)nth,
		    error != 0 ? strerror(error) : "",
		    action == CLIP_FAIL_ON ? ", from then on" : "", wrong,
		    status);
		shell("sed 's/^/#   /' log");
	}
	fresh();
}

/* Return the number of calls of this kind that the program makes, or -1 if it fails. */
static int64_t
count(const struct fault_case *c, enum clip_call call)
{
	proc_arm(CLIP_COUNT, 1u << call, BIG, 0);
	if (run(c) != 0)
		return -1;
	return BIG - proc_page->left;
}

static void
all_calls(struct fault_run *f)
{
	size_t i, k;
	int64_t n, at;
	int action;

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		n = count(f->c, faults[i].call);
		fresh();
		for (at = 1; at <= n; at++)
			for (k = 0; k < 6 && faults[i].error[k] != 0; k++)
				for (action = CLIP_FAIL;
				    action <= CLIP_FAIL_ON; action++) {
					/* if each call were interrupted, the
					 * program would never finish */
					if (action == CLIP_FAIL_ON &&
					    (faults[i].error[k] == EINTR ||
					    faults[i].error[k] == EAGAIN))
						continue;
					proc_arm((enum clip_action)action,
					    1u << faults[i].call, at,
					    faults[i].error[k]);
					one(f, faults[i].name, at,
					    faults[i].error[k], action);
				}
	}
}

static int
one_case(const struct fault_case *c, int number)
{
	static struct fault_run f;
	char text[2048];

	memset(&f, 0, sizeof(f));
	f.c = c;
	(void)snprintf(text, sizeof(text), "rm -rf template work; mkdir -m 700 "
	    "template; cd template; PATH=$BUILD:$BUILD/tests:$PATH; %s",
	    c->setup);
	shell(text);
	fresh();
	look(&f.was);
	proc_arm(CLIP_COUNT, 0, 0, 0);
	proc_must(run(c) == 0, c->name);
	look(&f.will);
	f.out = file_sum("work/out");
	fresh();
	all_calls(&f);
	(void)printf("%sok %d - %s: %lu failures, %lu refused cleanly, %lu "
	    "tolerated, %lu wrong\n", f.bad != 0 || f.seen == 0 ? "not " : "",
	    number, c->name, f.tried, f.clean, f.tolerated, f.bad);
	return f.bad != 0 || f.seen == 0;
}

int
main(int argc, char **argv)
{
	size_t i, n = 0;
	int c, bad = 0;

	while ((c = getopt(argc, argv, "e:")) != -1) {
		if (c != 'e')
			return 2;
		every = strtoul(optarg, NULL, 10);
	}
	proc_enter("ace-fault");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (optind == argc || strncmp(cases[i].name, argv[optind],
		    strlen(argv[optind])) == 0)
			bad |= one_case(&cases[i], (int)++n);
	(void)printf("1..%zu\n", n);
	proc_end();
	return bad;
}
