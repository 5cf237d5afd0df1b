#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "base/pack.h"
#include "base/room.h"
#include "base/sandbox.h"
#include "base/version.h"

enum {
	CLI_MAX = 64,		/* options of one program */
	CLI_PATHS = 256,	/* files of one command line that are each
				 * allowed alone */
	CLI_SANDBOX = CLI_LONG + 1000
};

static const struct cli_opt cli_common[] = {
	{ 'q', "quiet", NULL, "say nothing but errors" },
	{ 'v', "verbose", NULL, "say what was decided" },
	{ CLI_SANDBOX, "sandbox", "WHEN",
	    "auto, require or off (default auto)" },
	{ 'h', "help", NULL, "print this and exit" },
	{ 'V', "version", NULL, "print the version and exit" },
	{ 0, NULL, NULL, NULL }
};

static void
cli_help_one(const struct cli_opt *o)
{
	char left[64];
	int n = 0;

	if (o->key < CLI_LONG)
		n = snprintf(left, sizeof(left), "-%c, ", o->key);
	else
		n = snprintf(left, sizeof(left), "    ");
	(void)snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", o->name,
	    o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
	(void)printf("  %-28s %s\n", left, o->help);
}

/* The two calls a program is best known by, the last that --help says. */
static void
cli_help_examples(const char *s)
{
	size_t n;

	(void)printf("\nExamples:\n");
	for (; *s != '\0'; s += n + (s[n] != '\0')) {
		n = strcspn(s, "\n");
		(void)printf("    %.*s\n", (int)n, s);
	}
}

static void
cli_help(const struct cli *c)
{
	const struct cli_command *k = c->command;
	const struct cli_opt *o = k != NULL ? k->opt : c->opt;

	if (k != NULL)
		(void)printf("usage: %s %s %s\n\n%s.\n\n", c->prog, k->name,
		    k->usage, k->about);
	else
		(void)printf("usage: %s %s\n\n%s\n\n", c->prog, c->usage,
		    c->about);
	for (k = c->commands; c->command == NULL && k != NULL &&
	    k->name != NULL; k++)
		(void)printf("  %-12s %s\n", k->name, k->about);
	if (c->command == NULL && c->commands != NULL)
		(void)printf("\n%s COMMAND --help says more.\n\n", c->prog);
	for (; o->key != 0; o++)
		cli_help_one(o);
	for (o = cli_common; o->key != 0; o++)
		cli_help_one(o);
	(void)printf("\nExit status: 0 done, 1 the answer is no, 2 usage, "
	    "3 bad data, 4 the system failed, 5 refused.\nSee %s(1).\n", c->prog);
	if (c->command == NULL && c->examples != NULL)
		cli_help_examples(c->examples);
}

static void
cli_version(const struct cli *c)
{
	(void)printf("%s (ace) %s\n%s\n", c->prog, ACE_VERSION, pack_versions());
	if (c->loops() != NULL)
		(void)printf("loops %s\n", c->loops());
}

/* getopt_long accepts any unique prefix; scripts written against one would
 * break when an option is added, so only whole names pass. */
static int
cli_whole(const char *word, const struct option *lo, struct err *e)
{
	size_t n = strcspn(word, "=");

	for (; lo->name != NULL; lo++)
		if (strlen(lo->name) == n && strncmp(lo->name, word, n) == 0)
			return 0;
	return err_set(e, ERR_USAGE, "unknown option '--%.*s'", (int)n, word);
}

struct cli_table {
	char letters[2 * CLI_MAX + 3];
	struct option longs[CLI_MAX + 1];
};

static void
cli_add(struct cli_table *t, const struct cli_opt *o, size_t *nl, size_t *ns)
{
	for (; o->key != 0 && *nl < CLI_MAX; o++) {
		t->longs[*nl].name = o->name;
		t->longs[*nl].has_arg = o->arg != NULL ? required_argument :
		    no_argument;
		t->longs[*nl].flag = NULL;
		t->longs[(*nl)++].val = o->key;
		if (o->key >= CLI_LONG)
			continue;
		t->letters[(*ns)++] = (char)o->key;
		if (o->arg != NULL)
			t->letters[(*ns)++] = ':';
	}
}

/* word: the argument in which getopt_long found k. */
static int
cli_bad(int k, const char *word, struct err *e)
{
	const char *why = k == ':' ? "needs a value" : "is unknown";

	if (strncmp(word, "--", 2) != 0)
		return err_set(e, ERR_USAGE, "option '-%c' %s", optopt, why);
	return err_set(e, ERR_USAGE, "option '%.*s' %s",
	    (int)strcspn(word, "="), word, k == ':' ? why : "takes no value");
}

/* A descriptor that came closed stays of no use: the first file we open must
 * not become standard output. */
static void
cli_standard(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

/* ---- the sandbox ---- */

struct cli_paths {
	struct sandbox box;
	size_t n;
	struct {
		const char *path;
		enum sandbox_how how;
	} at[CLI_PATHS];
};

/* What the option k was given, if that is a path. */
static void
cli_path(struct cli_paths *p, const struct cli_opt *o, int k, const char *arg)
{
	for (; o->key != 0 && o->key != k; o++)
		;
	if (o->arg == NULL || p->n == CLI_PATHS)
		return;
	p->at[p->n].path = arg;
	if (strcmp(o->arg, "DIR") == 0)
		p->at[p->n++].how = SANDBOX_DIR;
	else if (strcmp(o->arg, "FILE") == 0)
		p->at[p->n++].how = k == 'o' ? SANDBOX_WRITE : SANDBOX_READ;
	else if (strcmp(o->arg, "ARCHIVE") == 0) {
		p->at[p->n++].how = SANDBOX_WRITE;
		if (p->n == CLI_PATHS)
			return;
		p->at[p->n].path = arg;
		p->at[p->n++].how = SANDBOX_READ;
	}
}

/* Operands are read. Where there are very many of them, each stands for the
 * directory it is in: they are seldom in more than one. */
static int
cli_operands(struct sandbox *box, char **path, int n, struct err *e)
{
	char last[PATH_MAX] = "", dir[PATH_MAX];
	int i, k, r = 0;

	for (i = 0; i < n && r == 0; i++) {
		if (n <= CLI_PATHS) {
			r = sandbox_allow(box, path[i], SANDBOX_READ, e);
			continue;
		}
		k = snprintf(dir, sizeof(dir), "%s", path[i]);
		if (k < 0 || (size_t)k >= sizeof(dir))
			continue;
		while (k > 0 && dir[k - 1] != '/')
			k--;
		dir[k] = '\0';
		if (i > 0 && strcmp(dir, last) == 0)
			continue;
		r = sandbox_allow(box, k > 0 ? dir : ".", SANDBOX_READ, e);
		memcpy(last, dir, sizeof(last));
	}
	return r;
}

static int
cli_confine(struct cli *c, struct cli_paths *p, char **operand, int n,
    struct err *e)
{
	const char *temp = getenv("TMPDIR");
	struct sandbox *box = &p->box;
	size_t i;
	int r;

	if (c->sandbox == SANDBOX_OFF || c->open) {
		(void)snprintf(c->confined, sizeof(c->confined), "%s", c->open ?
		    "none, this starts other programs" : "off");
		cli_say(c, 2, "sandbox: %s", c->confined);
		return 0;
	}
	sandbox_begin(box);
	if (temp == NULL || temp[0] == '\0')
		temp = "/tmp";
	/* in /usr is the locale */
	if ((r = sandbox_allow(box, temp, SANDBOX_TEMP, e)) < 0 ||
	    (r = sandbox_allow(box, "/usr", SANDBOX_READ, e)) < 0)
		return r;
	for (i = 0; i < p->n; i++)
		if ((r = sandbox_allow(box, p->at[i].path, p->at[i].how,
		    e)) < 0)
			return r;
	if ((r = cli_operands(box, operand, n, e)) < 0 ||
	    (r = sandbox_enter(box, (enum sandbox_want)c->sandbox,
	    c->confined, sizeof(c->confined), e)) < 0)
		return r;
	cli_say(c, 2, "sandbox: %s", c->confined);
	return 0;
}

int
cli_parse(struct cli *c, int argc, char **argv, cli_set *set, void *o,
    struct err *e)
{
	static const char *const wants[] = { "auto", "require", "off", NULL };
	const struct cli_opt *opt = c->command != NULL ? c->command->opt :
	    c->opt;
	struct cli_paths paths = { .n = 0 };
	struct cli_table t;
	size_t nl = 0, ns = 0;
	int k, r;

	memset(&t, 0, sizeof(t));
	t.letters[ns++] = '+';
	t.letters[ns++] = ':';
	cli_add(&t, opt, &nl, &ns);
	cli_add(&t, cli_common, &nl, &ns);
	optind = 0;
	opterr = 0;
	cli_standard();
	for (;;) {
		int at = optind != 0 ? optind : 1;

		if (at < argc && strncmp(argv[at], "--", 2) == 0 &&
		    argv[at][2] != '\0' &&
		    (r = cli_whole(argv[at] + 2, t.longs, e)) < 0)
			return r;
		k = getopt_long(argc, argv, t.letters, t.longs, NULL);
		if (k == -1)
			break;
		if (k == '?' || k == ':')
			return cli_bad(k, argv[at], e);
		if (k == 'h') {
			cli_help(c);
			return 1;
		} else if (k == 'V') {
			cli_version(c);
			return 1;
		} else if (k == 'q') {
			c->quiet = 1;
		} else if (k == 'v') {
			c->verbose++;
		} else if (k == CLI_SANDBOX) {
			if ((r = num_choice(&c->sandbox, optarg, wants,
			    "--sandbox", e)) < 0)
				return r;
		} else {
			if ((r = set(o, k, optarg, e)) < 0)
				return r;
			cli_path(&paths, opt, k, optarg);
		}
	}
	c->first = optind;
	room_look();
	return cli_confine(c, &paths, argv + optind, argc - optind, e);
}

int
cli_command(struct cli *c, int argc, char **argv, cli_set *set, void *o,
    struct err *e)
{
	const struct cli_command *k;
	int r;

	if (argc < 2 || argv[1][0] == '-') {
		r = cli_parse(c, argc, argv, NULL, o, e);
		return r != 0 ? r : err_set(e, ERR_USAGE, "which command is "
		    "missing");
	}
	for (k = c->commands; k->name != NULL; k++)
		if (strcmp(k->name, argv[1]) == 0)
			break;
	if (k->name == NULL)
		return err_set(e, ERR_USAGE, "command '%s' is unknown", argv[1]);
	c->command = k;
	r = cli_parse(c, argc - 1, argv + 1, set, o, e);
	c->first++;		/* the operands stand one further in argv */
	return r;
}

int
cli_exit(const struct cli *c, int r, const struct err *e)
{
	/* only --help and text reports use stdio; data goes through io */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		if (errno != EPIPE)
			(void)fprintf(stderr, "%s: '<stdout>': %s\n", c->prog,
			    strerror(errno));
		return r < 0 ? -r : ERR_SYS;
	}
	if (r >= 0)
		return 0;
	if (e->code != ERR_OK && !e->quiet)
		(void)fprintf(stderr, "%s: %s\n", c->prog, ERR_MSG(e));
	if (r == -ERR_USAGE)
		(void)fprintf(stderr, "Try '%s%s%s --help'.\n", c->prog,
		    c->command != NULL ? " " : "",
		    c->command != NULL ? c->command->name : "");
	return -r;
}

int
cli_main(struct cli *c, int argc, char **argv, cli_set *set, cli_run *run,
    void *o)
{
	struct err e = ERR_INIT;
	int r = c->commands != NULL ?
	    cli_command(c, argc, argv, set, o, &e) :
	    cli_parse(c, argc, argv, set, o, &e);
	char **path = argv + c->first;
	size_t n = c->first < argc ? (size_t)(argc - c->first) : 0;

	if (r == 0 && n > 1 && (c->command != NULL ? c->command->one : c->one))
		r = err_set(&e, ERR_USAGE, "one FILE at most, not also '%s'",
		    path[1]);
	if (r == 0)
		r = run(o, path, n, &e);
	return cli_exit(c, r, &e);
}

void
cli_say(const struct cli *c, int level, const char *fmt, ...)
{
	va_list ap;

	if (c == NULL || (level == 0 ? c->quiet : c->verbose < level))
		return;
	(void)fprintf(stderr, "%s: ", c->prog);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
}
