#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/lz4_block.h"
#include "base/memlimit.h"
#include "base/sandbox.h"
#include "base/temp.h"
#include "base/version.h"

enum { CLI_MAX = 128 };		/* limit on rows of options */

/* The parser's state: the options of a program or command, and those given so far. */
struct cli_line {
	struct cli *c;
	struct opt_place opt[CLI_MAX];	/* [n] all options, with those of every program */
	unsigned char given[CLI_MAX];	/* [n] 1: the option is on the command line */
	size_t n;
	size_t paths;		/* number of paths below */
	struct {
		const char *path;
		enum sandbox_how how;
		/* option whose function is called later, to read the file; or NULL */
		const struct opt_place *late;
	} *path;		/* the paths in options' values, at most two per word */
};

/* Return the first row with this name of n bytes or, if name is NULL, with this letter; NULL
 * if there is none. */
static const struct opt_place *
cli_find(const struct cli_line *l, int letter, const char *name, size_t n)
{
	const struct opt_place *p;

	for (p = l->opt; p < l->opt + l->n; p++)
		if (name == NULL ? p->row->letter == letter :
		    strlen(p->row->name) == n && strncmp(p->row->name, name, n) == 0)
			return p;
	return NULL;
}

static int
cli_first(const struct cli_line *l, const struct opt_place *p)
{
	const char *name = p->row->name;

	return cli_find(l, 0, name, strlen(name)) == p;
}

/* ---- printing ---- */

enum { CLI_WIDE = 80 };		/* columns of --help */

/* Print the words of s, wrapped at CLI_WIDE.  The cursor is in column `at'; further lines
 * begin in column `in'. */
static void
cli_wrap(const char *s, int at, int in)
{
	const char *end;
	int n;

	for (; *s != '\0'; s += n, s += strspn(s, " \n")) {
		n = (int)strcspn(s, " \n");
		/* do not break a bracket that would end before the middle of the line if
		 * it began in column `in' */
		end = *s == '[' ? strchr(s, ']') : NULL;
		if (end != NULL && end - s < CLI_WIDE / 2 - in)
			n = (int)(end - s) + (int)strcspn(end, " \n");
		if (at > in && at + 1 + n > CLI_WIDE) {
			(void)printf("\n%*s", in, "");
			at = in;
		} else if (at > in) {
			(void)putchar(' ');
			at++;
		}
		(void)printf("%.*s", n, s);
		at += n;
	}
	(void)putchar('\n');
}

static void
cli_help_one(const struct opt *o)
{
	char left[64], text[256];
	int n = 0;

	opt_says(o, text, sizeof(text));
	if (text[0] == '\0')
		return;
	if (o->letter != 0)
		n = snprintf(left, sizeof(left), "-%c, ", o->letter);
	else
		n = snprintf(left, sizeof(left), "    ");
	(void)snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", o->name,
	    o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
	if (printf("  %-28s", left) > 30)
		(void)printf("\n%30s", "");
	(void)putchar(' ');
	cli_wrap(text, 31, 31);
}

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
cli_help(const struct cli_line *l)
{
	const struct cli *c = l->c;
	const struct cli_command *k = c->command;
	const struct opt_place *p;
	char about[256];
	int at;

	at = printf("usage: %s%s%s", c->prog, k != NULL ? " " : "", k != NULL ?
	    k->name : "");
	cli_wrap(k != NULL ? k->usage : c->usage, at, 4);
	(void)putchar('\n');
	(void)snprintf(about, sizeof(about), "%s%s", k != NULL ? k->about :
	    c->about, k != NULL ? "." : "");
	cli_wrap(about, 0, 0);
	(void)putchar('\n');
	for (k = c->commands; c->command == NULL && k != NULL &&
	    k->name != NULL; k++) {
		(void)printf("  %-12s ", k->name);
		cli_wrap(k->about, 15, 15);
	}
	if (c->command == NULL && c->commands != NULL)
		(void)printf("\n%s COMMAND --help describes a command.\n\n", c->prog);
	for (p = l->opt; p < l->opt + l->n; p++)
		if (cli_first(l, p))
			cli_help_one(p->row);
	(void)printf("\nExit status: 0 done, 1 the answer is no, 2 usage, "
	    "3 bad data,\n4 the system failed, 5 refused. See %s(1).\n", c->prog);
	if (c->command == NULL && c->examples != NULL)
		cli_help_examples(c->examples);
}

static void
cli_version(const struct cli_line *l)
{
	const struct cli *c = l->c;

	(void)printf("%s (ace) %s\nxxhash %s, lz4 %s\n", c->prog, ACE_VERSION,
	    hash_version(), lz4_block_version());
	if (c->kernels() != NULL)
		(void)printf("kernels %s\n", c->kernels());
}

/* Print commands and options, one per line, with tabs (opt_row), and before them "bare" if
 * c->bare. After a command, print only its options. */
static void
cli_rows(const struct cli_line *l)
{
	const struct cli_command *k = l->c->command != NULL ? NULL : l->c->commands;
	const struct opt_place *p;

	if (k != NULL && l->c->bare)
		(void)printf("bare\n");
	for (; k != NULL && k->name != NULL; k++)
		(void)printf("command\t%s\t%s\n", k->name, k->about);
	for (p = l->opt; p < l->opt + l->n; p++)
		if (cli_first(l, p))
			opt_row(p->row);
}

/* ---- the options that every program has ---- */

static int
cli_louder(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct cli *c = arg;

	c->verbose++;
	return 0;
}

static int
cli_print(void *arg, const struct opt *row, const char *val, struct err *e)
{
	const struct cli_line *l = ((struct cli *)arg)->line;

	if (row->value == 'h')
		cli_help(l);
	else if (row->value == 'V')
		cli_version(l);
	else
		cli_rows(l);
	return 1;
}

static const char *const cli_wants[] = { "auto", "require", "off", NULL };
static const struct opt cli_common[] = {
	{ 'q', "quiet", NULL, "say nothing but errors", OPT_FLAG(struct cli, quiet) },
	{ 'v', "verbose", NULL, "say what was decided", OPT_CALL(cli_louder) },
	{ 0, "sandbox", "WHEN", NULL,
	    OPT_WORD(struct cli, sandbox, cli_wants), .def = "auto" },
	{ 'h', "help", NULL, "print this and exit", OPT_CALL(cli_print),
	    .value = 'h' },
	{ 'V', "version", NULL, "print the version and exit",
	    OPT_CALL(cli_print), .value = 'V' },
	{ 0, "help-rows", NULL, NULL, OPT_CALL(cli_print), .value = 'R' },
	OPT_END
};

/* Open /dev/null in place of closed standard descriptors, or the next opened file would get
 * their numbers. Open it so that reading 0 and writing 1 or 2 fails. */
static void
cli_standard(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

/* Catch SIGXFSZ, so that write fails for a file above the limit (ulimit -f). Unlike
 * SIG_IGN, a handler is not inherited by programs that we start. */
static void
cli_too_large(int sig)
{
}

/* ---- the sandbox ---- */

/* Record the path in an option's value, so that the sandbox allows it. */
static void
cli_path(struct cli_line *l, enum opt_right right, const char *path)
{
	static const enum sandbox_how how[] = { [OPT_READ] = SANDBOX_READ,
	    [OPT_WRITE] = SANDBOX_WRITE, [OPT_DIR] = SANDBOX_DIR };

	if (right == OPT_REPLACE) {
		cli_path(l, OPT_WRITE, path);
		right = OPT_READ;
	}
	if (right == OPT_NONE)
		return;
	l->path[l->paths].path = path;
	l->path[l->paths++].how = how[right];
}

/* The program will replace path: let the sandbox write in the directory of its target. */
static int
cli_replaced(struct sandbox *box, const char *path, struct err *e)
{
	char target[TEMP_PATH], *slash;
	const int r = temp_folder(path, target, e);

	if (r < 0)
		return r;
	slash = strrchr(target, '/');
	if (slash != NULL)
		slash[slash == target] = '\0';
	return sandbox_allow(box, slash != NULL ? target : ".", SANDBOX_DIR, e);
}

static int
cli_confine(struct cli_line *l, char **operand, int n, struct err *e)
{
	struct cli *c = l->c;
	const char *temp = getenv("TMPDIR");
	struct sandbox *box = &l->c->box;
	char says[80];
	size_t i;
	int r;

	if (c->sandbox == SANDBOX_OFF || c->open) {
		cli_say(c, 2, "sandbox: %s", c->open ?
		    "none, since this program starts others" : "off");
		return 0;
	}
	sandbox_begin(box);
	if (c->serves)
		box->stages |= SANDBOX_STARTS;
	if (c->replaces)
		box->stages |= SANDBOX_OWNERS;
	if (temp == NULL || temp[0] == '\0')
		temp = "/tmp";
	/* /usr has the locale's files */
	if ((r = sandbox_allow(box, temp, SANDBOX_TEMP, e)) < 0 ||
	    (r = sandbox_allow(box, "/usr", SANDBOX_READ, e)) < 0)
		return r;
	for (i = 0; i < l->paths; i++)
		if ((r = sandbox_allow(box, l->path[i].path, l->path[i].how,
		    e)) < 0)
			return r;
	for (i = 0; c->replaces && i < (size_t)n; i++)
		if ((r = cli_replaced(box, operand[i], e)) < 0)
			return r;
	for (i = 0; i < (size_t)n; i++)
		if ((r = sandbox_allow(box, operand[i], c->models ?
		    SANDBOX_LINKS : SANDBOX_READ, e)) < 0)
			return r;
	if ((r = sandbox_enter(box, (enum sandbox_want)c->sandbox,
	    says, sizeof(says), e)) < 0)
		return r;
	cli_say(c, !box->partial ? 2 : !c->serves, "sandbox: %s", says);
	return 0;
}

/* ---- the command line ---- */

/* Mark every row with the name of `first' as given, since parts of a program may share
 * options.  late 0: also set these rows to val. */
static int
cli_set(struct cli_line *l, const struct opt_place *first, const char *val, int late,
    struct err *e)
{
	const struct opt_place *p;
	int r = 0;

	for (p = first; p < l->opt + l->n && r == 0; p++)
		if (strcmp(p->row->name, first->row->name) == 0) {
			l->given[p - l->opt] = 1;
			r = late ? 0 : opt_take(p, val, e);
		}
	return r;
}

/* Take the option `first' with the value val.  Its function, if it reads a file, is called
 * later, in the sandbox. */
static int
cli_take(struct cli_line *l, const struct opt_place *first, const char *val,
    struct err *e)
{
	const struct opt *o = first->row;
	const int late = o->type == OPT_IS_CALL && o->right == OPT_READ;
	const int r = cli_set(l, first, val, late, e);

	if (r != 0)
		return r;
	cli_path(l, o->right, val);
	if (late)
		l->path[l->paths - 1].late = first;
	return l->c->heard != NULL && first->base != l->c ?
	    l->c->heard(l->c->own, o, val, e) : 0;
}

/* Parse "--name", "--name=value" or "--name value". next: the word after `word', or NULL. Refuse
 * abbreviations: a new option could make them ambiguous. Return the number of words used, 0 if
 * the program ends now, or an error < 0. */
static int
cli_long(struct cli_line *l, const char *word, const char *next, struct err *e)
{
	const int n = (int)strcspn(word, "=");
	const struct opt_place *p = cli_find(l, 0, word + 2, (size_t)n - 2);
	const char *val = word[n] == '=' ? word + n + 1 : NULL;
	int r, words = 1;

	if (p == NULL)
		return err_set(e, ERR_USAGE, "option '%.*s' is unknown", n, word);
	if (p->row->arg == NULL && val != NULL)
		return err_set(e, ERR_USAGE, "option '%.*s' takes no value", n, word);
	if (p->row->arg != NULL && val == NULL) {
		if (next == NULL)
			return err_set(e, ERR_USAGE, "option '%s' needs a value",
			    word);
		val = next;
		words = 2;
	}
	r = cli_take(l, p, val, e);
	return r < 0 ? r : r > 0 ? 0 : words;
}

/* Parse "-q", "-qoFILE" or "-qo FILE". Return as cli_long does. */
static int
cli_short(struct cli_line *l, const char *word, const char *next, struct err *e)
{
	const struct opt_place *p;
	const char *val;
	int r;

	for (word++; *word != '\0'; word++) {
		if ((p = cli_find(l, *word, NULL, 0)) == NULL)
			return err_set(e, ERR_USAGE, "option '-%.*s' is unknown",
			    (int)bytes_utf8((unsigned char)*word), word);
		val = p->row->arg == NULL ? NULL : word[1] != '\0' ? word + 1 : next;
		if (p->row->arg != NULL && val == NULL)
			return err_set(e, ERR_USAGE, "option '-%c' needs a value",
			    *word);
		if ((r = cli_take(l, p, val, e)) != 0)
			return r < 0 ? r : 0;
		if (val != NULL)
			return val == next ? 2 : 1;
	}
	return 1;
}

/* Swap the first n words and the r words after them. */
static void
cli_behind(char **words, int n, int r)
{
	char *first;

	for (; r > 0; r--, words++) {
		first = words[n];
		memmove(words + 1, words, (size_t)n * sizeof(*words));
		words[0] = first;
	}
}

/* Parse options up to "--" or, unless c->mixed, the first operand. Move operands after the
 * options, and set c->first. Return 0, 1 if the program ends now, as after --help, or an error
 * < 0. */
static int
cli_options(struct cli_line *l, int argc, char **argv, struct err *e)
{
	const char *word, *next;
	int i, r, passed = 0;	/* passed: number of operands before argv[i] */

	for (i = 1; i < argc; i += r) {
		word = argv[i];
		next = i + 1 < argc ? argv[i + 1] : NULL;
		if (word[0] != '-' || word[1] == '\0') {
			if (!l->c->mixed)
				break;
			passed++;
			r = 1;
			continue;
		}
		if (strcmp(word, "--") == 0)
			r = 1;
		else
			r = word[1] == '-' ? cli_long(l, word, next, e) :
			    cli_short(l, word, next, e);
		if (r <= 0)
			return r < 0 ? r : 1;
		cli_behind(argv + i - passed, passed, r);
		if (strcmp(word, "--") == 0) {
			i++;
			break;
		}
	}
	l->c->first = i - passed;
	/* refuse operands that look like options, except after -- */
	for (r = i; r < argc && !l->c->mixed && strcmp(argv[i - 1], "--") != 0; r++)
		if (argv[r][0] == '-' && argv[r][1] != '\0')
			return err_set(e, ERR_USAGE, "option '%.40s' follows operand "
			    "'%.40s': put options first; if '%.40s' is a file, write ./ before "
			    "its name", argv[r], argv[i], argv[r]);
	return 0;
}

/* Refuse an option that needs another one (row->with) if that one is missing. */
static int
cli_lonely(const struct cli_line *l, struct err *e)
{
	size_t i, k;

	for (i = 0; i < l->n; i++) {
		if (!l->given[i] || l->opt[i].row->with == NULL)
			continue;
		for (k = 0; k < l->n; k++)
			if (l->given[k] && strcmp(l->opt[k].row->name,
			    l->opt[i].row->with) == 0)
				break;
		if (k == l->n)
			return err_set(e, ERR_USAGE, "--%s needs --%s",
			    l->opt[i].row->name, l->opt[i].row->with);
	}
	return 0;
}

int
cli_parse(struct cli *c, int argc, char **argv, struct err *e)
{
	const struct opt *own = c->command != NULL ? c->command->opt : c->opt;
	struct cli_line l = { .c = c };
	size_t i;
	int r;

	l.path = alloc_get((size_t)argc, 2 * sizeof(*l.path), e);
	r = l.path != NULL ? 0 : -ERR_SYS;
	c->line = &l;
	cli_standard();
	(void)signal(SIGXFSZ, cli_too_large);
	(void)signal(SIGCHLD, SIG_DFL);		/* ignored, it would hide how children end */
	l.n = opt_list(l.opt, 0, CLI_MAX, own, c->own, c->shared);
	l.n = opt_list(l.opt, l.n, CLI_MAX, cli_common, c, NULL);
	for (i = 0; i < l.n && r == 0; i++)
		if (l.opt[i].row->def != NULL)
			r = opt_take(&l.opt[i], l.opt[i].row->def, e);
	if (r == 0)
		r = cli_options(&l, argc, argv, e);
	if (r == 0)
		r = cli_lonely(&l, e);
	c->line = NULL;
	if (r == 0) {
		memlimit_look();
		r = cli_confine(&l, argv + c->first, argc - c->first, e);
	}
	for (i = 0; i < l.paths && r == 0; i++)
		if (l.path[i].late != NULL)
			r = cli_set(&l, l.path[i].late, l.path[i].path, 0, e);
	alloc_free(l.path);
	return r;
}

int
cli_command(struct cli *c, int argc, char **argv, struct err *e)
{
	const struct cli_command *k;
	int r;

	for (k = c->commands; k->name != NULL && argc > 1; k++)
		if (strcmp(k->name, argv[1]) == 0)
			break;
	if (argc < 2 || argv[1][0] == '-' || (c->bare && k->name == NULL)) {
		r = cli_parse(c, argc, argv, e);
		if (r == -ERR_USAGE && !c->bare &&
		    strstr(e->text, "' is unknown") != NULL)
			(void)err_after(e, r, " here: options of a command follow it");
		return r != 0 || c->bare ? r : err_set(e, ERR_USAGE, "expected a command "
		    "as the first word: --help lists the commands");
	}
	if (k->name == NULL)
		return err_set(e, ERR_USAGE, "command '%s' is unknown", argv[1]);
	c->command = k;
	r = cli_parse(c, argc - 1, argv + 1, e);
	c->first++;		/* operands start one word later in argv */
	return r;
}

int
cli_exit(const struct cli *c, int r, const struct err *e)
{
	/* text, such as --help and reports, is written by stdio; data by io */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		if (errno != EPIPE)
			(void)fprintf(stderr, "%s: '<stdout>': %s\n", c->prog,
			    strerror(errno));
		return r < 0 ? -r : ERR_SYS;
	}
	if (r >= 0)
		return 0;
	if (e->code != ERR_OK && !e->quiet && c->failed != NULL)
		c->failed(c, e);
	if (e->code != ERR_OK && !e->quiet)
		(void)fprintf(stderr, "%s: %s\n", c->prog, ERR_MSG(e));
	if (r == -ERR_USAGE && !e->quiet)
		(void)fprintf(stderr, "Try '%s%s%s --help'.\n", c->prog,
		    c->command != NULL ? " " : "",
		    c->command != NULL ? c->command->name : "");
	return -r;
}

int
cli_main(struct cli *c, int argc, char **argv, cli_run *run, void *o)
{
	struct err e = ERR_INIT;
	int r;
	char **path;
	size_t n;

	if (c->own == NULL)
		c->own = o;
	r = c->commands != NULL ? cli_command(c, argc, argv, &e) :
	    cli_parse(c, argc, argv, &e);
	path = argv + c->first;
	n = c->first < argc ? (size_t)(argc - c->first) : 0;

	if (r == 0 && c->kernels != NULL && c->kernels() == NULL)
		r = err_set(&e, ERR_USAGE, "ACE_KERNEL=%s: this processor or build "
		    "has no kernels of that name: unset ACE_KERNEL", getenv("ACE_KERNEL"));
	if (r == 0 && n > 1 && (c->command != NULL ? c->command->one : c->one))
		r = err_set(&e, ERR_USAGE, "found %zu files, '%.80s', '%.80s'%s, but at most one "
		    "is read", n, path[0], path[1], n > 2 ? " and so on" : "");
	if (r == 0)
		r = (c->command != NULL ? c->command->run : run)(o, path, n, &e);
	return cli_exit(c, r, &e);
}

void
cli_say(const struct cli *c, int level, const char *fmt, ...)
{
	char text[PATH_MAX + ERR_LINE];
	va_list ap;

	if (c == NULL || c->quiet || c->verbose < level)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	bytes_clean(text);	/* a file's name may have control characters */
	(void)fprintf(stderr, "%s: %s\n", c->prog, text);
}

int
cli_columns(int fd, int *rows)
{
	struct winsize w = { .ws_col = 0 };

	if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &w) < 0)
		return 0;
	if (rows != NULL)
		*rows = w.ws_row;
	return w.ws_col > 0 ? w.ws_col : 80;
}
