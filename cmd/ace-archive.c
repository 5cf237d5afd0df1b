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

static const char *const formats[] = { "tar", "tar.gz", "tar.bz2", "tar.xz",
	"tar.zst", "tar.lz4", "tar.Z", "cpio", "cpio.gz", "cpio.bz2", "cpio.xz",
	"cpio.zst", "cpio.lz4", "cpio.Z", "zip", "7z", NULL };

static const struct opt pick_opt[] = {
	OPT_PART(pick_opts, struct stage_archive_opts, pick),
	OPT_SHARED(filter_opts_max),
	OPT_END
};
static const struct opt out_opt[] = {
	{ 0, "format", "NAME", "tar, tar.zst, zip ... (default as FILE is named)",
	    OPT_TEXT(struct stage_archive_opts, format), .words = formats },
	OPT_ROWS(pick_opt),
	OPT_END
};
static const struct opt new_opt[] = {
	{ 'o', "output", "ARCHIVE", "write ARCHIVE, whole or not at all",
	    OPT_PATH(struct filter, output, OPT_REPLACE) },
	OPT_ROWS(filter_opts_force),
	OPT_END
};
static const struct opt old_opt[] = {
	{ 'o', "output", "ARCHIVE", "the archive that grows (needed)",
	    OPT_PATH(struct filter, output, OPT_REPLACE) },
	OPT_END
};
static const struct opt create_opt[] = {
	OPT_ROWS(out_opt), OPT_SHARED(new_opt), OPT_END
};
static const struct opt append_opt[] = {
	OPT_ROWS(out_opt), OPT_SHARED(old_opt), OPT_END
};
static const struct opt extract_opt[] = {
	{ 0, "into", "DIR", "the folder to make the files in (needed)",
	    OPT_PATH(struct stage_archive_opts, into, OPT_DIR) },
	OPT_ROWS(pick_opt),
	OPT_END
};

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
	    create_opt, create, 0 },
	{ "append", "-o ARCHIVE [options] [FILE...]",
	    "The same, behind what is in the archive", append_opt,
	    append, 0 },
	{ "list", "[options] [FILE]", "A line for each shard", pick_opt,
	    list, 1 },
	{ "extract", "--into DIR [options] [FILE]",
	    "Each shard as a file in a folder", extract_opt, extract, 1 },
	{ NULL, NULL, NULL, NULL, NULL, 0 }
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
			.commands = commands
		}
	};
	struct stage_archive_opts o = { .f = &p.f, .pick = PICK_INIT };

	return program_main(&p, argc, argv, &o);
}
