/*
 * What every program that reads or writes streams has in common: its options,
 * its input, its output, its provenance line.
 */
#ifndef ACE_FILTER_H
#define ACE_FILTER_H

#include "base/cli.h"
#include "format/reader.h"
#include "format/writer.h"

struct err;

/* Rows for a program's table: how much it reads, and of which model; how it
 * writes; when what it keeps is on disk; by how many threads it codes or
 * decodes. */
extern const struct opt filter_opts_max[], filter_opts_in[];
extern const struct opt filter_opts_file[], filter_opts_out[];
extern const struct opt filter_opts_sync[], filter_opts_threads[];
#define FILTER_OPTS_IN OPT_SHARED(filter_opts_in)
#define FILTER_OPTS_OUT OPT_SHARED(filter_opts_out)
#define FILTER_OPT_SYNC OPT_SHARED(filter_opts_sync)
#define FILTER_OPT_THREADS OPT_SHARED(filter_opts_threads)

struct filter {
	const struct cli *cli;	/* the program's, whom to speak for */
	const char *tool;	/* its name in the provenance line, */
	char **argv;		/* and its words there: so many, */
	int words;		/* or 0: those before the operands */
	const char *output;
	int no_provenance, omit_schema;
	int mute;		/* nothing goes to standard output */
	enum io_sync sync;
	int events;		/* where they go (pipe/event.h); 0: nowhere */
	unsigned threads;
	/* how inputs are opened: io_open, or source_io, with which come
	 * libarchive and the time that it takes to load */
	int (*open)(struct io **out, const char *path, struct err *e);
	struct reader_opts in;
	struct schema schema;	/* from --schema */
	struct memories *later;	/* what stages of one process save together, or
				 * NULL: each when it has it */
};

/* filter_line(tool, argc, argv, out): the provenance line of a program that was
 * called with these words, of which the first is its name. */
enum { FILTER_LINE = 1024 };
void filter_line(const char *tool, int argc, char *const *argv,
    char out[FILTER_LINE]);

void filter_init(struct filter *f, const struct cli *c, char **argv);
void filter_release(struct filter *f);

/* filter_schema: takes --schema, whose FILE it reads: an opt_set of struct
 * filter. */
int filter_schema(void *f, const struct opt *row, const char *path,
    struct err *e);

/* filter_in: opens the input.  While it waits for input, the program also ends,
 * silently with status 4, when standard output is a pipe that nobody reads. */
int filter_in(struct filter *f, struct reader **r, const char *path,
    struct err *e);
int filter_out(const struct filter *f, struct writer **w, struct err *e);
/* filter_both: filter_in and filter_out.  When the input cannot be opened, a
 * pipe that the shards would have gone to gets a stream that says aborted, so
 * that the next program need not complain too. */
int filter_both(struct filter *f, struct reader **r, struct writer **w,
    const char *path, struct err *e);
/* filter_piped(f): the descriptor of standard output if shards are written
 * there, so that it is no use to go on when nobody reads it; else -1. */
int filter_piped(const struct filter *f);

/* filter_shard(r, w, e): begins in w the shard that r stands at; hands the
 * provenance on. */
int filter_shard(const struct reader *r, struct writer *w, struct err *e);

/* filter_loose(r, w, changed): from now on frames that stand between r's shards
 * are copied to w.  changed: values are not what they were, so that only those
 * are copied whose type says that they are still true.  To be called once, when
 * both are open. */
void filter_loose(struct reader *r, struct writer *w, int changed);

/* filter_copy(r, w, e): copies the shard that r stands at to w, to its verified
 * end, each payload unchanged. */
int filter_copy(struct reader *r, struct writer *w, struct err *e);
/* filter_rest(r, w, e): the same from behind the shard's beginning, which is
 * written already. */
int filter_rest(struct reader *r, struct writer *w, struct err *e);
/* filter_copy_file, filter_copy_fd: the same of every shard in a file; fd is
 * read from its beginning and stays the caller's. */
int filter_copy_file(const char *path, const struct reader_opts *o,
    struct writer *w, struct err *e);
int filter_copy_fd(int fd, const struct reader_opts *o, struct writer *w,
    struct err *e);

/* filter_end(w, r, e): how a filter ends.  r >= 0: writes the end of the
 * stream and commits the output.  r < 0: writes an end that is marked aborted.
 * Returns r, or the first error. */
int filter_end(struct writer *w, int r, struct err *e);

/* filter_abort(w, e): the end that is marked aborted.  The last of a pipeline says
 * for all of them that one before it failed: e is without a word where w is a
 * pipe and the stream that was read came aborted through one. */
void filter_abort(struct writer *w, struct err *e);

#endif
