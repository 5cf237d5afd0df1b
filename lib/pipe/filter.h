/*
 * The parts shared by all programs that read or write streams: options, input, output,
 * provenance line.
 */
#ifndef ACE_FILTER_H
#define ACE_FILTER_H

#include "base/cli.h"
#include "format/reader.h"
#include "format/writer.h"

struct err;

/* Option rows.  max: --max-elements; in: that and --schema; file: --output; out: that and --omit;
 * sync: --sync, for the files of a state or a spool; threads: --threads. */
extern const struct opt filter_opts_max[], filter_opts_in[];
extern const struct opt filter_opts_file[], filter_opts_out[];
extern const struct opt filter_opts_sync[], filter_opts_threads[];
/* Option rows for a struct shard: its device and its run. */
extern const struct opt filter_opts_of[];
#define FILTER_OPTS_IN OPT_SHARED(filter_opts_in)
#define FILTER_OPTS_OUT OPT_SHARED(filter_opts_out)
#define FILTER_OPT_SYNC OPT_SHARED(filter_opts_sync)
#define FILTER_OPT_THREADS OPT_SHARED(filter_opts_threads)

struct filter {
	const struct cli *cli;	/* command line of the program, for messages */
	const char *tool;	/* provenance line: the program's name */
	char **argv;		/* provenance line: the words of the command line */
	int words;		/* how many of argv; 0: those before the operands */
	const char *output;	/* NULL: standard output */
	int no_provenance, omit_schema;	/* 1: leave out these parts of the stream */
	int mute;		/* 1: no stream is written to standard output */
	enum io_sync sync;
	int events;		/* descriptor for events (pipe/event.h); 0: none */
	unsigned threads;	/* 0: one per processor, at most 4 */
	/* opens inputs: io_open, or source_io in programs that are linked with libarchive */
	int (*open)(struct io **out, const char *path, struct err *e);
	struct reader_opts in;
	struct schema schema;	/* from --schema */
};

/* Write the provenance line of a program called with these words, the first of which is
 * its name. */
enum { FILTER_LINE = 1024 };
void filter_line(const char *tool, int argc, char *const *argv,
    char out[FILTER_LINE]);

void filter_init(struct filter *f, const struct cli *c, char **argv);
void filter_release(struct filter *f);

/* Set the schema of f, a struct filter, from the FILE of --schema. */
int filter_schema(void *f, const struct opt *row, const char *path, struct err *e);

/* Open the input. While it waits for input, the program also ends, as by SIGPIPE, if
 * standard output is a pipe without a reader. */
int filter_in(struct filter *f, struct reader **r, const char *path, struct err *e);
int filter_out(const struct filter *f, struct writer **w, struct err *e);
/* Call filter_in and filter_out. If the input cannot be opened and standard output is a pipe,
 * write an aborted stream there, so that the next program need not report the error, too. */
int filter_both(struct filter *f, struct reader **r, struct writer **w,
    const char *path, struct err *e);
/* Return the descriptor of standard output if shards are written there: once it has no
 * reader, the program should end. Otherwise return -1. */
int filter_piped(const struct filter *f);

/* Begin in w the shard at which r stands, and pass on the provenance. */
int filter_shard(const struct reader *r, struct writer *w, struct err *e);

/* Copy the shard at which r stands to w, up to its verified end, with unchanged payloads. */
int filter_copy(struct reader *r, struct writer *w, struct err *e);
/* Copy the rest of r's shard, whose beginning is already written to w, up to its end. */
int filter_rest(struct reader *r, struct writer *w, struct err *e);
/* Copy every shard of a file. filter_copy_fd reads fd from its beginning; the caller still
 * closes fd. */
int filter_copy_file(const char *path, const struct reader_opts *o,
    struct writer *w, struct err *e);
int filter_copy_fd(int fd, const struct reader_opts *o, struct writer *w,
    struct err *e);

/* End a filter. r >= 0: write the end of the stream and commit the output. r < 0, an error:
 * write an end marked aborted. Return 0, or the first error. */
int filter_end(struct writer *w, int r, struct err *e);

/* Write an end marked aborted. Only the last program of a pipeline reports that an
 * earlier one failed: e becomes quiet if w is a pipe and the input was an aborted stream
 * from a pipe. */
void filter_abort(struct writer *w, struct err *e);

#endif
