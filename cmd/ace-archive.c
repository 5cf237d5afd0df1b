/*
 * ace-archive: the shards of a run in an archive (tar, zip, 7z, cpio), and out
 * of it again.
 */
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "pipe/pick.h"
#include "stage/stage_archive.h"

enum { OPT_FORMAT = CLI_LONG, OPT_FILTER, OPT_INTO };

#define OUT \
	{ OPT_FORMAT, "format", "NAME", \
	    "tar, zip, 7z or cpio (default as FILE is named)" }, \
	{ OPT_FILTER, "filter", "NAME", \
	    "pack with it, or none (default as FILE is named)" }, \
	PICK_OPTS, \
	{ FILTER_MAX, "max-elements", "N", \
	    "refuse larger models (default 68719476736)" }

static const struct cli_opt create_opt[] = {
	OUT,
	{ 'o', "output", "FILE", "write FILE, whole or not at all" },
	{ FILTER_FORCE, "force", NULL, "write binary to a terminal" },
	{ 0, NULL, NULL, NULL }
};
static const struct cli_opt append_opt[] = {
	OUT,
	{ 'o', "output", "ARCHIVE", "the archive that grows (needed)" },
	{ 0, NULL, NULL, NULL }
};
static const struct cli_opt list_opt[] = {
	PICK_OPTS,
	{ FILTER_MAX, "max-elements", "N",
	    "refuse larger models (default 68719476736)" },
	{ 0, NULL, NULL, NULL }
};
static const struct cli_opt extract_opt[] = {
	{ OPT_INTO, "into", "DIR", "the folder to make the files in (needed)" },
	PICK_OPTS,
	{ FILTER_MAX, "max-elements", "N",
	    "refuse larger models (default 68719476736)" },
	{ 0, NULL, NULL, NULL }
};
static const struct cli_opt options[] = { { 0, NULL, NULL, NULL } };

struct opts {
	struct filter f;
	struct stage_archive_opts a;
	char **path;		/* the operands */
	size_t n;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const formats[] = { "tar", "zip", "7z", "cpio",
	    NULL };
	static const char *const filters[] = { "none", "gzip", "bzip2", "xz",
	    "zstd", "lz4", "compress", NULL };
	struct opts *o = arg;
	int i, r;

	switch (key) {
	case OPT_FORMAT:
		if (num_choice(&i, val, formats, "--format", e) < 0)
			return -ERR_USAGE;
		o->a.format = formats[i];
		return 0;
	case OPT_FILTER:
		if (num_choice(&i, val, filters, "--filter", e) < 0)
			return -ERR_USAGE;
		o->a.filter = filters[i];
		return 0;
	case OPT_INTO:
		o->a.into = val;
		return 0;
	default:
		if ((r = pick_set(&o->a.pick, key, val, e)) == 0)
			r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

static int
create(void *arg, const char *path, struct err *e)
{
	struct opts *o = arg;
	char *in[] = { NULL };

	(void)path;
	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	return o->n != 0 ? stage_archive_create(&o->a, o->path, o->n, e) :
	    stage_archive_create(&o->a, in, 1, e);
}

static int
append(void *arg, const char *path, struct err *e)
{
	struct opts *o = arg;

	if (o->f.output == NULL || strcmp(o->f.output, "-") == 0)
		return err_set(e, ERR_USAGE, "append to what? (-o ARCHIVE)");
	o->a.append = 1;
	return create(arg, path, e);
}

static int
one(const struct opts *o, struct err *e)
{
	return o->n <= 1 ? 0 : err_set(e, ERR_USAGE, "one FILE, not also '%s'",
	    o->path[1]);
}

static int
list(void *arg, const char *path, struct err *e)
{
	struct opts *o = arg;
	int r = one(o, e);

	if (r == 0 && kern_get(e) == NULL)
		r = -ERR_USAGE;
	return r < 0 ? r : stage_archive_list(&o->a, path, stdout, e);
}

static int
extract(void *arg, const char *path, struct err *e)
{
	struct opts *o = arg;
	int r = one(o, e);

	if (r == 0 && kern_get(e) == NULL)
		r = -ERR_USAGE;
	if (r == 0 && o->a.into == NULL)
		r = err_set(e, ERR_USAGE, "into which folder? (--into DIR)");
	return r < 0 ? r : stage_archive_extract(&o->a, path, e);
}

static const struct cli_command commands[] = {
	{ "create", "[-o FILE] [options] [FILE...]",
	    "Shards of files, folders, spools and archives into a new one",
	    create_opt, set, create },
	{ "append", "-o ARCHIVE [options] [FILE...]",
	    "The same, behind what is in the archive", append_opt, set,
	    append },
	{ "list", "[options] [FILE]", "A line for each shard", list_opt, set,
	    list },
	{ "extract", "--into DIR [options] [FILE]",
	    "Each shard as a file in a folder", extract_opt, set, extract },
	{ NULL, NULL, NULL, NULL, NULL, NULL }
};

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-archive",
		.usage = "COMMAND [options] [FILE...]",
		.about = "Keeps the shards of runs in archives.",
		.examples = "ace-archive create -o run.tar.gz spool\n"
		    "ace-archive list run.tar.gz\n",
		.opt = options,
		.commands = commands,
		.loops = kern_name
	};
	struct opts o = { .a = { .cli = &c, .f = &o.f, .pick = PICK_INIT } };
	struct err e = ERR_INIT;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_command(&c, argc, argv, &o, &e);
	o.n = (size_t)(argc - c.first);
	o.path = argv + c.first;
	if (r == 0)
		r = c.command->run(&o, o.n != 0 ? o.path[0] : NULL, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
