/*
 * What all reports on streams share: where they are written, how a shard is
 * named and how a table of tensors is laid out.  A report is text, for people
 * and diff(1) (the same stream gives the same bytes), or JSON, one document a
 * line.
 */
#ifndef ACE_REPORT_H
#define ACE_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "report/emit.h"
#include "report/walk.h"

struct err;
struct io;
struct cli;
struct kern;
struct pick;

struct report {
	FILE *f;
	const struct kern *kern;
	const char *file;	/* the operand, to be shown; NULL: only one */
	const char *glob;	/* --tensor */
	const struct cli *cli;	/* the program; its long work has a bar */
	const struct pick *pick;	/* only these shards; NULL: all */
	int verbose, quiet, stats;
	int as_json;
	int width, utf8;	/* of the terminal, for what is drawn */
	double tolerance;	/* an NMSE up to this is no difference */
	struct emit json;
	uint64_t shard;		/* number of the current shard, from 1 */
	int listed;		/* some shard was, a blank line goes between */
	int fresh;		/* the head of its stream was not shown yet */
	int wname, wshape, wnum;	/* widths of a table's columns */
};

/* report_init: prepares a report as text, written to f. */
void report_init(struct report *p, FILE *f, const struct kern *k);

/* A file being reported on; io lives as long as r. */
struct report_in {
	struct io *io;
	struct reader *r;
};
/* report_take(in, io, o, e): reports on io, which report_close frees. */
int report_take(struct report_in *in, struct io *io,
    const struct reader_opts *o, struct err *e);
int report_open(struct report_in *in, const char *path,
    const struct reader_opts *o, struct err *e);
void report_close(struct report_in *in);

/* report_next(p, r, e): goes to the next shard that p->pick wants and shows the
 * receipts before it.  Returns 1, 0 at the end of the input, or -ERR_x. */
int report_next(struct report *p, struct reader *r, struct err *e);

/* report_flush(p, e): flushes the report; -ERR_SYS if it cannot be written. */
int report_flush(struct report *p, struct err *e);

/* Prints a heading such as "shard 1 'edge1/42'", with the file's name before it
 * when there are several files.  The caller prints the rest of the line. */
void report_heading(const struct report *p, const struct shard *s);
/* JSON: opens the shard's object with the members that identify it. */
void report_object(struct report *p, const struct shard *s);

/* A codec's name. */
const char *report_codec(unsigned c, char buf[16]);
/* Prints a file's name without control characters, which a terminal obeys. */
void report_path(const struct report *p, const char *name);
/* Sets the widths of the columns to fit the tensors that p->glob names. */
void report_columns(struct report *p, const struct schema *sc);
/* Prints a name, left aligned, in wname columns of the terminal. */
void report_name(const struct report *p, const char *name);
/* report_chars(s): how many columns of a terminal s takes, nearly: characters,
 * not bytes. */
int report_chars(const char *s);
/* "24x8"; "scalar" for rank 0. */
const char *report_shape(const struct schema_tensor *t, char buf[200]);
/* "f32", "q8:3,topk:5", "-" when nothing was sent. */
const char *report_codecs(const struct tally *y, char buf[512]);
/* JSON members of a tensor that every report gives. */
void report_tensor(struct report *p, const struct schema_tensor *t);
void report_tally(struct report *p, const struct tally *y);

/* report_fail(p, k, e): to be called after the error k.  In JSON it closes what
 * is open and adds the message.  Returns k. */
int report_fail(struct report *p, int k, const struct err *e);

#endif
