#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "front/child.h"

/* ---- building the command lines ---- */

struct child *
child_add(struct children *c, struct child *p, const char *word, ...)
{
	va_list ap;

	if (p == NULL)		/* no pipeline of ours has more than CHILD_MOST */
		p = &c->child[c->n++];
	va_start(ap, word);
	for (; word != NULL && c->r == 0; word = va_arg(ap, const char *)) {
		if (p->n == CHILD_WORDS)
			c->r = err_set(c->e, ERR_USAGE, "the command '%s' has more than "
			    "%d words: put the command into a script", p->word[0], CHILD_WORDS);
		else if ((p->word[p->n++] = alloc_dup(word, c->e)) == NULL)
			c->r = -ERR_SYS;
	}
	va_end(ap);
	return p;
}

void
child_release(struct children *c)
{
	size_t i, k;

	for (i = 0; i < c->n; i++)
		for (k = 0; k < c->child[i].n; k++)
			alloc_free(c->child[i].word[k]);
	memset(c, 0, sizeof(*c));
}

void
child_quote(const char *word, FILE *f)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+";

	if (*word != '\0' && word[strspn(word, plain)] == '\0') {
		(void)fputs(word, f);
		return;
	}
	(void)fputc('\'', f);
	for (; *word != '\0'; word++)
		if (*word == '\'')
			(void)fputs("'\\''", f);
		else
			(void)fputc(*word, f);
	(void)fputc('\'', f);
}

int
child_print(struct children *c, FILE *f)
{
	const int r = c->r;
	size_t i, k;

	if (c->circle && c->r == 0)
		(void)fputs("mkfifo back\n", f);
	for (i = 0; i < c->n && c->r == 0; i++) {
		for (k = 0; k < c->child[i].n; k++) {
			(void)fputs(k > 0 ? " " : i > 0 ? "    " : "", f);
			child_quote(c->child[i].word[k], f);
		}
		if (c->circle && i == 0)
			(void)fputs(" <back", f);
		if (c->circle && i + 1 == c->n)
			(void)fputs(" >back", f);
		(void)fputs(i + 1 < c->n ? " |\n" : "\n", f);
	}
	child_release(c);
	return r;
}

/* ---- one process ---- */

int
child_exec(char *const *words, struct err *e)
{
	char path[PATH_MAX], *slash;
	ssize_t n = strncmp(words[0], "ace-", 4) != 0 ? -1 :
	    readlink("/proc/self/exe", path, sizeof(path) - 1);

	(void)signal(SIGPIPE, SIG_DFL);	/* systemd starts programs with it ignored */
	if (n > 0) {
		path[n] = '\0';
		slash = strrchr(path, '/');
		if (slash != NULL && (size_t)(slash + 1 - path) +
		    strlen(words[0]) < sizeof(path)) {
			memcpy(slash + 1, words[0], strlen(words[0]) + 1);
			(void)execv(path, words);
		}
	}
	(void)execvp(words[0], words);
	return err_sys(e, "cannot run '%s'", words[0]);
}

int
child_status(const struct child *p)
{
	return WIFSIGNALED(p->status) ? 128 + WTERMSIG(p->status) :
	    WEXITSTATUS(p->status);
}

/* Return 1 if a program failed, unless it ended by SIGPIPE or was stopped (p->stopped). */
static int
child_failed(const struct child *p)
{
	const int s = child_status(p);

	return s != 0 && s != 128 + SIGPIPE && !p->stopped;
}

/* In the child process, run the program with standard input `from', output `to' and error
 * `say'.  -1: keep ours; with p->own_voice also keep our standard error. */
static void
child_become(const struct children *c, const struct child *p, int from, int to, int say)
{
	struct err e = ERR_INIT;
	sigset_t none;

	(void)setpgid(0, c->group);
	/* the child ends when this process ends, however it ends */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if ((from >= 0 && dup2(from, 0) < 0) || (to >= 0 && dup2(to, 1) < 0) ||
	    (!p->own_voice && dup2(say, 2) < 0))
		(void)err_sys(&e, "'%s'", p->word[0]);
	else if (!p->own_voice || c->inherit == 0 || fcntl(c->inherit, F_SETFD, 0) == 0)
		(void)child_exec(p->word, &e);
	(void)dprintf(2, "%s\n", ERR_MSG(&e));
	_exit(errno == ENOENT ? 127 : 126);
}

int
child_output(char *const *words, char *out, size_t n, struct err *e)
{
	struct child p = { .pid = 0 };
	size_t at = 0, got = 1;
	int fd[2], r = 0;

	if (pipe2(fd, O_CLOEXEC) < 0 || (p.pid = fork()) < 0)
		return err_sys(e, "cannot run '%s'", words[0]);
	if (p.pid == 0) {
		const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);

		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)dup2(none, 0);
		(void)dup2(fd[1], 1);
		(void)child_exec(words, e);
		(void)dprintf(2, "%s\n", ERR_MSG(e));
		_exit(127);
	}
	(void)close(fd[1]);
	while (r == 0 && got != 0 && at < n) {
		r = fd_read(fd[0], -1, out + at, n - at, &got, words[0], e);
		at += got;
	}
	(void)close(fd[0]);
	if (at == n && r == 0) {
		(void)kill(p.pid, SIGKILL);
		r = err_set(e, ERR_DATA, "limit: '%s' prints %zu bytes or more, expected a short "
		    "answer: let nothing else print, such as a shell's start-up file", words[0], n);
	}
	out[at - (at == n)] = '\0';
	while (waitpid(p.pid, &p.status, 0) < 0 && errno == EINTR)
		continue;
	return r < 0 ? r : child_status(&p);
}

/* ---- the pipeline ---- */

size_t
child_cause(const struct children *c)
{
	size_t at = c->first >= 0 ? (size_t)c->first : 0, i;
	int s;

	/* if the first program of a circle succeeded, the second got all its input: if the second
	 * failed, and not because it could not read or write (ERR_SYS), it is the cause */
	s = child_status(&c->child[1]);
	if (c->circle && s != ERR_SYS && child_failed(&c->child[1]) &&
	    child_status(&c->child[0]) == 0)
		return 1;
	/* 255 is ssh's status for a broken connection */
	for (i = 0; i < c->n; i++)
		if (child_status(&c->child[i]) == 255)
			return i;
	while (!c->child[at].own_voice && at > 0) {
		s = child_status(&c->child[at]);
		if ((s != ERR_DATA && s != ERR_SYS) ||
		    !child_failed(&c->child[at - 1]))
			break;
		at--;
	}
	return at;
}

static volatile sig_atomic_t child_signal;

/* Handle a signal. SIGCHLD only interrupts a poll. */
static void
child_asked(int sig)
{
	if (sig != SIGCHLD)
		child_signal = sig;
}

static void
child_start(struct children *c)
{
	int say[2] = { -1, -1 }, next[2], back[2] = { -1, -1 }, from;
	size_t i;

	if (pipe2(say, O_CLOEXEC) < 0 ||
	    (c->circle && pipe2(back, O_CLOEXEC) < 0))
		c->r = err_sys(c->e, "cannot create a pipe");
	from = back[0];
	for (i = 0; i < c->n && c->r == 0; i++) {
		struct child *p = &c->child[i];

		next[0] = -1;
		next[1] = back[1];
		if (i + 1 < c->n && pipe2(next, O_CLOEXEC) < 0)
			c->r = err_sys(c->e, "cannot create a pipe");
		else if ((p->pid = fork()) < 0)
			c->r = err_sys(c->e, "cannot start '%s'", p->word[0]);
		if (c->r < 0) {
			p->pid = 0;
			break;
		}
		if (p->pid == 0)
			child_become(c, p, from, next[1], say[1]);
		if (c->group == 0)
			c->group = p->pid;
		(void)setpgid(p->pid, c->group);
		if (from >= 0)
			(void)close(from);
		if (next[1] >= 0)
			(void)close(next[1]);
		from = next[0];
	}
	(void)close(say[1]);
	c->hear = say[0];
}

/* Note which programs have ended. Return how many still run. */
static size_t
child_reap(struct children *c)
{
	size_t left = 0, i;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < c->n; i++) {
			if (c->child[i].pid != pid)
				continue;
			c->child[i].pid = 0;
			c->child[i].status = status;
			if (c->first < 0 && child_failed(&c->child[i]))
				c->first = (int)i;
		}
	for (i = 0; i < c->n; i++)
		left += c->child[i].pid != 0;
	return left;
}

static void
child_lines(struct children *c, const struct child_ear *ear)
{
	char *end, *p = c->line;

	c->line[c->held] = '\0';
	while ((end = strchr(p, '\n')) != NULL) {
		*end = '\0';
		ear->line(ear->arg, p);
		p = end + 1;
	}
	c->held -= (size_t)(p - c->line);
	memmove(c->line, p, c->held);
	if (c->held == sizeof(c->line) - 1) {	/* a longer line than our programs write */
		ear->line(ear->arg, c->line);
		c->held = 0;
	}
}

/* Wait at most ms milliseconds for text of the programs, and pass on its whole lines. */
static void
child_hear(struct children *c, const struct child_ear *ear, int ms)
{
	struct pollfd p = { .fd = c->hear, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, ms) <= 0)
		return;
	n = read(c->hear, c->line + c->held, sizeof(c->line) - 1 - c->held);
	if (n <= 0) {
		if (n == 0 || errno != EINTR)
			p.fd = c->hear = -1;
		return;
	}
	/* replace NULs, which would end the string */
	for (char *z = c->line + c->held; n > 0; n--, z++, c->held++)
		if (*z == '\0')
			*z = ' ';
	child_lines(c, ear);
}

static void
child_watch(struct children *c, const struct child_ear *ear)
{
	const int hear = c->hear;
	double end = -1;
	int sig = SIGTERM;

	while (child_reap(c) > 0) {
		if (end < 0 && child_signal != 0) {
			(void)kill(-c->group, SIGTERM);
			end = clock_now() + (double)CHILD_GRACE;
			sig = SIGKILL;
		} else if (end < 0 && c->first >= 0) {
			end = clock_now() + (double)CHILD_GRACE;
		} else if (end >= 0 && clock_now() > end) {
			for (size_t i = 0; i < c->n; i++)
				c->child[i].stopped |= c->child[i].pid != 0;
			(void)kill(-c->group, sig);
			end = clock_now() + (double)CHILD_GRACE;
			sig = SIGKILL;
		}
		/* do not wait for the pipe's end: other processes may have it open */
		child_hear(c, ear, c->hear < 0 ? 200 : 500);
		ear->tick(ear->arg, c->first >= 0);
	}
	while (c->hear >= 0) {
		const size_t had = c->held;
		struct pollfd p = { .fd = c->hear, .events = POLLIN };

		if (poll(&p, 1, 100) <= 0)
			break;
		child_hear(c, ear, 0);
		if (c->hear >= 0 && c->held == had && p.revents == POLLHUP)
			break;
	}
	c->line[c->held] = '\0';
	if (c->held > 0)	/* the last line, without its end */
		ear->line(ear->arg, c->line);
	c->held = 0;
	(void)close(hear);
}

int
child_run(struct children *c, const struct child_ear *ear)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
	struct sigaction act = { .sa_handler = child_asked }, was[4];
	size_t i;

	if (c->r < 0)
		return c->r;
	c->first = -1;
	(void)sigemptyset(&act.sa_mask);
	for (i = 0; i < 4; i++) {
		/* after SIGCHLD, restart interrupted writes: stdio would drop the text */
		act.sa_flags = ends[i] == SIGCHLD ? SA_RESTART : 0;
		(void)sigaction(ends[i], NULL, &was[i]);
		if (was[i].sa_handler != SIG_IGN)	/* under nohup, go on after HUP */
			(void)sigaction(ends[i], &act, NULL);
	}
	child_start(c);
	if (c->r < 0 && c->group != 0)
		(void)kill(-c->group, SIGTERM);
	child_watch(c, ear);
	for (i = 0; i < 4; i++)
		(void)sigaction(ends[i], &was[i], NULL);
	if (child_signal != 0)
		(void)raise(child_signal);
	return c->r < 0 ? c->r : c->first >= 0;
}
