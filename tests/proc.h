/*
 * Start pipelines with clip.so in tests, wait for them with a time limit, and kill them.
 * Environment: BUILD, the programs' folder; CLIP_PRELOAD, their LD_PRELOAD; TORTURE_DIR, the
 * parent of proc_dir.
 */
#ifndef TESTS_PROC_H
#define TESTS_PROC_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "clip.h"

enum { PROC_MAX = 64, PROC_WORDS = 40, PROC_HANG = 600 };

struct proc {
	pid_t pid;
	int line;		/* number of the process's pipeline */
	int status;		/* status of wait(2), once the process has ended */
	int ended, killed;	/* ended: reaped; killed: by proc_kill, or any status is good */
	char name[24];
};

static struct proc procs[PROC_MAX];
static int nproc, nline;
static char proc_dir[256];		/* a directory of our own */
static struct clip *proc_page;

static inline void
proc_must(int good, const char *what)
{
	if (good)
		return;
	(void)printf("Bail out! %s: %s\n", what, strerror(errno));
	(void)fflush(stdout);
	exit(99);
}

/* Make the directory proc_dir in TORTURE_DIR, /dev/shm or /tmp, with the page of clip.h. */
static inline void
proc_begin(const char *name)
{
	const char *tmp = getenv("TORTURE_DIR"), *pre = getenv("CLIP_PRELOAD");
	const char *build = getenv("BUILD");
	char path[PATH_MAX + 16], link[sizeof(proc_dir) + 16];
	sigset_t set;
	int fd;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (tmp == NULL)
		tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	(void)snprintf(proc_dir, sizeof(proc_dir), "%.200s/%.40s-XXXXXX", tmp,
	    name);
	proc_must(mkdtemp(proc_dir) != NULL, proc_dir);
	(void)snprintf(path, sizeof(path), "%s/page", proc_dir);
	proc_must((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) >= 0 &&
	    ftruncate(fd, sizeof(*proc_page)) == 0, path);
	proc_page = mmap(NULL, sizeof(*proc_page), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	proc_must(proc_page != MAP_FAILED && setenv("CLIP_PAGE", path, 1) == 0,
	    path);
	(void)close(fd);
	if (pre == NULL) {
		/* LD_PRELOAD is split at blanks, which BUILD may contain */
		(void)snprintf(link, sizeof(link), "%s/clip.so",
		    proc_dir);
		proc_must(realpath(build != NULL ? build : "build", path) !=
		    NULL && strlen(path) < sizeof(path) - 16, "BUILD");
		(void)strcat(path, "/tests/clip.so");
		proc_must(symlink(path, link) == 0, link);
		(void)setenv("CLIP_PRELOAD", link, 1);
	}
	/* orphans become our children, and we wait for them */
	proc_must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "subreaper");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Like proc_begin; also change to the directory, and set SOURCE_DATE_EPOCH, so that programs
 * write the same bytes each time. */
static inline void
proc_enter(const char *name)
{
	(void)setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
	proc_begin(name);
	proc_must(chdir(proc_dir) == 0, proc_dir);
}

/* Set proc_page: which of the next programs' calls clip.so acts on, and how. */
static inline void
proc_arm(enum clip_action action, uint32_t mask, int64_t left, int error)
{
	memset(proc_page, 0, sizeof(*proc_page));
	proc_page->mask = mask;
	proc_page->error = error;
	proc_page->action = action;
	proc_page->left = left;
}

static inline void
proc_end(void)
{
	char command[PATH_MAX + 16];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", proc_dir);
	proc_must(chdir("/") == 0 && system(command) == 0, command);
}

/* In the child process: run a program with these descriptors, standard error to log. */
static inline void
proc_exec(char **word, int in, int out, const char *log)
{
	const char *build = getenv("BUILD");
	char path[PATH_MAX];
	sigset_t set;
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	(void)sigemptyset(&set);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)dup2(in, 0);
	(void)dup2(out, 1);
	(void)dup2(fd, 2);
	(void)snprintf(path, sizeof(path), "%s/%s", build != NULL ? build :
	    "build", word[0]);
	(void)setenv("LD_PRELOAD", getenv("CLIP_PRELOAD"), 1);
	(void)execv(path, word);
	_exit(127);
}

/*
 * proc_start("ace-a ARGS < FILE | ace-b ARGS > FILE"): start a pipeline and return its
 * number.  Blanks separate words; `< FILE' may come earlier.  Without a FILE, input and output
 * are /dev/null.  Standard error goes to proc_dir/log.
 */
static inline int __attribute__((format(printf, 1, 2)))
proc_start(const char *fmt, ...)
{
	char text[4096], log[PATH_MAX + 8], *word[PROC_WORDS], *s, *save;
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), out, fd[2], n;
	int more = 1;
	va_list ap;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	proc_must(n > 0 && n < (int)sizeof(text), fmt);
	(void)snprintf(log, sizeof(log), "%s/log", proc_dir);
	s = strtok_r(text, " ", &save);
	while (more) {
		struct proc *p = &procs[nproc];

		for (n = 0; s != NULL && s[0] != '|' && s[0] != '>' &&
		    n + 1 < PROC_WORDS; s = strtok_r(NULL, " ", &save)) {
			word[n] = s;
			if (strcmp(s, "<") != 0) {
				n++;
				continue;
			}
			s = strtok_r(NULL, " ", &save);
			(void)close(in);
			proc_must((in = open(s, O_RDONLY | O_CLOEXEC)) >= 0, s);
		}
		word[n] = NULL;
		more = s != NULL && s[0] == '|';
		fd[0] = -1;
		if (more) {
			proc_must(pipe2(fd, O_CLOEXEC) == 0, "pipe");
			out = fd[1];
			s = strtok_r(NULL, " ", &save);
		} else {
			out = open(s != NULL ? strtok_r(NULL, " ", &save) :
			    "/dev/null", O_WRONLY | O_CREAT | O_TRUNC |
			    O_CLOEXEC, 0600);
		}
		proc_must(out >= 0 && nproc < PROC_MAX, "pipeline");
		memset(p, 0, sizeof(*p));
		(void)snprintf(p->name, sizeof(p->name), "%s", word[0]);
		p->line = nline;
		if ((p->pid = fork()) == 0)
			proc_exec(word, in, out, log);
		proc_must(p->pid > 0, "fork");
		nproc++;
		(void)close(in);
		(void)close(out);
		in = fd[0];
	}
	return nline++;
}

/* Reap the processes that have ended. Return 1 while others, orphans included, are
 * running. */
static inline int
proc_reap(void)
{
	int status, i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < nproc; i++)
			if (procs[i].pid == pid && !procs[i].ended) {
				procs[i].ended = 1;
				procs[i].status = status;
			}
	return pid == 0;
}

static inline void
proc_nap(double secs)
{
	struct timespec t = { (time_t)secs,
	    (long)((secs - (double)(time_t)secs) * 1e9) };
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigtimedwait(&set, NULL, &t);
}

static inline int
proc_kill(int i)
{
	if (i < 0 || i >= nproc || procs[i].ended)
		return 0;
	procs[i].killed = 1;
	return kill(procs[i].pid, SIGKILL) == 0;
}

static inline void
proc_kill_all(void)
{
	int i;

	for (i = 0; i < nproc; i++)
		(void)proc_kill(i);
}

/* Wait for all processes for at most secs. Return 0, or -1 if one hangs. */
static inline int
proc_wait(double secs)
{
	double end = clock_now() + secs;

	while (proc_reap()) {
		if (clock_now() > end)
			return -1;
		proc_nap(0.01);
	}
	return 0;
}

/* Return the exit status of a process that ended, or 128 plus the signal's number. */
static inline int
proc_status(int i)
{
	return WIFEXITED(procs[i].status) ? WEXITSTATUS(procs[i].status) :
	    128 + WTERMSIG(procs[i].status);
}

/* Return 1 when all programs of the pipeline ended with 0. */
static inline int
proc_good(int line)
{
	int i;

	for (i = 0; i < nproc; i++)
		if (procs[i].line == line && (!procs[i].ended ||
		    proc_status(i) != 0))
			return 0;
	return 1;
}

static inline void
proc_forget(void)
{
	nproc = 0;
}

#endif
