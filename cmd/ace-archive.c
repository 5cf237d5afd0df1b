/*
 * ace-archive: the shards of a run in an archive (tar, zip, 7z, cpio), and out
 * of it again.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "kern/kern.h"
#include "pipe/program.h"
#include "pipe/pick.h"
#include "stage/stage_archive.h"

enum { OPT_FORMAT = CLI_LONG, OPT_INTO };

#define OUT \
	{ OPT_FORMAT, "format", "NAME", \
	    "tar, tar.zst, zip ... (default as FILE is named)" }, \
	PICK_OPTS, \
	{ FILTER_MAX, "max-elements", "N", \
	    "refuse larger models (default 68719476736)" }

static const struct cli_opt create_opt[] = {
	OUT,
	{ 'o', "output", "ARCHIVE", "write ARCHIVE, whole or not at all" },
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

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct stage_archive_opts *o = arg;

	switch (key) {
	case OPT_FORMAT:
		o->format = val;
		return 0;
	case OPT_INTO:
		o->into = val;
		return 0;
	default:
		return pick_set(&o->pick, key, val, e);
	}
}

static int
create(void *arg, char **path, size_t n, struct err *e)
{
	char *in[] = { NULL };

	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	return n != 0 ? stage_archive_create(arg, path, n, e) :
	    stage_archive_create(arg, in, 1, e);
}

static int
append(void *arg, char **path, size_t n, struct err *e)
{
	struct stage_archive_opts *o = arg;

	if (o->f->output == NULL || strcmp(o->f->output, "-") == 0)
		return err_set(e, ERR_USAGE, "append to what? (-o ARCHIVE)");
	o->append = 1;
	return create(arg, path, n, e);
}

static int
list(void *arg, char **path, size_t n, struct err *e)
{
	(void)n;
	return kern_get(e) == NULL ? -ERR_USAGE :
	    stage_archive_list(arg, *path, stdout, e);
}

static int
extract(void *arg, char **path, size_t n, struct err *e)
{
	const struct stage_archive_opts *o = arg;

	(void)n;
	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	if (o->into == NULL)
		return err_set(e, ERR_USAGE, "into which folder? (--into DIR)");
	return stage_archive_extract(o, *path, e);
}

static const struct cli_command commands[] = {
	{ "create", "[-o FILE] [options] [FILE...]",
	    "Shards of files, folders, spools and archives into a new one",
	    create_opt, set, create, 0 },
	{ "append", "-o ARCHIVE [options] [FILE...]",
	    "The same, behind what is in the archive", append_opt, set,
	    append, 0 },
	{ "list", "[options] [FILE]", "A line for each shard", list_opt, set,
	    list, 1 },
	{ "extract", "--into DIR [options] [FILE]",
	    "Each shard as a file in a folder", extract_opt, set, extract, 1 },
	{ NULL, NULL, NULL, NULL, NULL, NULL, 0 }
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-archive",
			.usage = "COMMAND [options] [FILE...]",
			.about = "Keeps the shards of runs in archives.",
			.examples = "ace-archive create -o run.tar.gz spool\n"
			    "ace-archive list run.tar.gz\n",
			.opt = options,
			.commands = commands
		}
	};
	struct stage_archive_opts o = { .f = &p.f, .pick = PICK_INIT };

	return program_main(&p, argc, argv, &o);
}
