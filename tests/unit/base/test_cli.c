/* The command line: which words are options, and of which command. */
#include "base/cli.h"
#include "base/err.h"

#include "../test.h"

struct part {
	const char *state;
	int gap;
};

struct all {
	struct part one, two;
	const char *output, *seen;
	int a, b, times;
	uint64_t n;
};

struct common {
	int force;
};

static struct err e;

static int
count(void *arg, const struct opt *row, const char *val, struct err *err)
{
	struct all *o = arg;

	(void)row, (void)val, (void)err;
	o->times++;
	return 0;
}

static const struct opt part_rows[] = {
	{ 'S', "state", "DIR", "in DIR", OPT_PATH(struct part, state, OPT_DIR) },
	{ 0, "allow-gap", NULL, "gaps", OPT_FLAG(struct part, gap) },
	OPT_END
};
static const struct opt common_rows[] = {
	{ 0, "force", NULL, "write", OPT_FLAG(struct common, force) }, OPT_END
};
static const struct opt rows[] = {
	{ 'o', "output", "FILE", "to", OPT_PATH(struct all, output, OPT_WRITE) },
	{ 'a', "all", NULL, "a", OPT_FLAG(struct all, a) },
	{ 'b', "both", NULL, "b", OPT_FLAG(struct all, b) },
	{ 'n', "number", "N", "n", OPT_U64(struct all, n, 0, 99), .def = "7" },
	{ 0, "times", NULL, "times", OPT_CALL(count) },
	OPT_PART(part_rows, struct all, one),
	OPT_PART(part_rows, struct all, two),
	OPT_SHARED(common_rows),
	OPT_END
};

/* Remember the name of the last option. */
static int
heard(void *own, const struct opt *row, const char *val, struct err *err)
{
	struct all *o = own;

	(void)val, (void)err;
	o->seen = row->name;
	return 0;
}

static struct cli c;
static struct all o;
static struct common common;

/* Return cli_parse's result for words separated by spaces; no sandbox, which would confine
 * this test, too. */
static int
line(const char *words)
{
	static char text[128], *argv[16];
	int argc = 1;
	char *s;

	c = (struct cli){ .prog = "test", .opt = rows, .own = &o,
	    .shared = &common, .heard = heard, .open = 1 };
	memset(&o, 0, sizeof(o));
	common.force = 0;
	err_clear(&e);
	(void)snprintf(text, sizeof(text), "%s", words);
	argv[0] = (char []){ "test" };
	for (s = strtok(text, " "); s != NULL; s = strtok(NULL, " "))
		argv[argc++] = s;
	argv[argc] = NULL;
	return cli_parse(&c, argc, argv, &e);
}

static int
is(const char *s, const char *want)
{
	return s != NULL && strcmp(s, want) == 0;
}

TEST(test_forms)
{
	ok(line("-a -n 5 x y") == 0 && o.a && o.n == 5 && c.first == 4,
	    "letters, and where the operands begin");
	ok(line("-n5 -abo x") == 0 && o.n == 5 && o.a && o.b &&
	    is(o.output, "x"), "letters together, and a value behind them");
	ok(line("-abox") == 0 && is(o.output, "x") && c.first == 2,
	    "and in the same word");
	ok(line("--number=5 --output x") == 0 && o.n == 5 && is(o.output, "x"),
	    "names");
	ok(line("--output= -a") == -ERR_USAGE, "a path may not be empty");
	ok(line("-o -a") == 0 && is(o.output, "-a") && !o.a,
	    "a value may look like an option");
	ok(line("-a -") == 0 && c.first == 2, "a dash alone is an operand");
	ok(line("-a -- -b") == 0 && !o.b && c.first == 3, "two dashes end the options");
	ok(line("") == 0 && o.n == 7 && c.first == 1, "the default");
	ok(line("-q -vv --verbose") == 0 && c.quiet && c.verbose == 3,
	    "options that every program has");
	ok(line("--sandbox off") == 0 && c.sandbox == 2, "--sandbox");
	ok(line("--times --times") == 0 && o.times == 2, "an option that calls a function");
}

TEST(test_whose)
{
	ok(line("-S dir --allow-gap") == 0 && is(o.one.state, "dir") &&
	    is(o.two.state, "dir") && o.one.gap && o.two.gap,
	    "an option of two tables goes to both");
	ok(line("--force") == 0 && common.force, "an option that several commands share");
	ok(line("--force -b") == 0 && is(o.seen, "both"), "the last option is reported");
	ok(line("-b -q") == 0 && is(o.seen, "both"),
	    "but not options that every program has");
}

static void
refused(const char *words, const char *why)
{
	ok(line(words) == -ERR_USAGE && strcmp(ERR_MSG(&e), why) == 0,
	    "%s: %s", words, ERR_MSG(&e));
}

TEST(test_refused)
{
	refused("-z", "option '-z' is unknown");
	refused("-abz", "option '-z' is unknown");
	refused("-o", "option '-o' needs a value");
	refused("-abo", "option '-o' needs a value");
	refused("--output", "option '--output' needs a value");
	refused("--outp x", "option '--outp' is unknown");
	refused("--outputs x", "option '--outputs' is unknown");
	refused("--=x", "option '--' is unknown");
	refused("--all=1", "option '--all' takes no value");
	refused("--all=", "option '--all' takes no value");
	refused("-n 100", "--number '100' is not a whole number from 0 to 99");
	refused("-\303\251", "option '-\303\251' is unknown");
	refused("-a - -b", "option '-b' follows operand '-': put options "
	    "first; if '-b' is a file, write ./ before its name");
	refused("--sandbox of", "--sandbox 'of': expected auto, require or off");
}

static int
run(void *arg, char **path, size_t n, struct err *err)
{
	struct all *x = arg;

	(void)err;
	x->seen = n == 1 ? path[0] : NULL;
	return 0;
}

TEST(test_commands)
{
	static const struct cli_command commands[] = {
		{ "do", "", "Does", rows, run, 1 },
		{ NULL, NULL, NULL, NULL, NULL, 0 }
	};
	char *argv[] = { (char []){ "test" }, (char []){ "do" },
	    (char []){ "-a" }, (char []){ "x" }, (char []){ "y" }, NULL };
	const struct cli start = { .prog = "test", .commands = commands, .open = 1 };

	memset(&o, 0, sizeof(o));
	c = start;
	ok(cli_main(&c, 4, argv, NULL, &o) == 0 && o.a && is(o.seen, "x") &&
	    c.command == commands && c.first == 3,
	    "a command, its options and its operand");
	c = start;
	ok(cli_main(&c, 5, argv, NULL, &o) == ERR_USAGE, "more than one operand is refused");
	argv[1][0] = 'n';
	c = start;
	err_clear(&e);
	ok(cli_command(&c, 4, argv, &e) == -ERR_USAGE &&
	    is(ERR_MSG(&e), "command 'no' is unknown"), "%s", ERR_MSG(&e));
	c = start;
	err_clear(&e);
	ok(cli_command(&c, 1, argv, &e) == -ERR_USAGE &&
	    is(ERR_MSG(&e), "expected a command as the first word: --help lists the "
	    "commands"), "%s",
	    ERR_MSG(&e));
	/* if no command is required, another word is an operand */
	c = start;
	c.bare = 1;
	c.opt = rows;
	o.a = 0;
	ok(cli_main(&c, 2, argv, run, &o) == 0 && is(o.seen, "no") &&
	    c.command == NULL && c.first == 1, "an operand, and no command");
	argv[1][0] = 'd';
	c = start;
	c.bare = 1;
	ok(cli_main(&c, 4, argv, NULL, &o) == 0 && o.a &&
	    c.command == commands, "a command name is a command");
}
