/*
 * The parts that all reports on streams share: output, fields, and names of shards. A
 * report is text for people and diff(1) (the same stream gives the same bytes), a table
 * with tabs, or JSON, one document per line.
 */
#ifndef ACE_REPORT_H
#define ACE_REPORT_H

#include "format/shard.h"
#include "report/render.h"
#include "report/walk.h"

struct err;
struct io;
struct cli;
struct kern;
struct pick;

struct report {
	struct render s;	/* the output and its form */
	const struct kern *kern;
	const struct io *io;	/* the input, for its size and name */
	const char *file;	/* file name, printed with each shard; NULL: only one file */
	const char *glob;	/* --tensor */
	const struct cli *cli;	/* the program, to show its progress; NULL: show none */
	const struct pick *pick;	/* which shards to report; NULL: all */
	int picked, named;	/* 1: a shard was selected; a tensor matched */
	int verbose, quiet;
	double tolerance;	/* NMSE up to which values do not differ, see stats_diff */
	uint64_t shard;		/* number of the current shard, from 1 */
	/* 1: something was printed: the next part needs a blank line before it */
	int begun;
	int fresh;		/* 1: no shard of this stream was printed yet */
	char run[SHARD_NAME + 1];	/* the run whose heading was printed last */
};

/* Reports that may contain a field. */
enum {
	REPORT_ID = 1,		/* JSON: members of every document of a shard */
	REPORT_LIST = 2, REPORT_MORE = 4,	/* a shard in detail; more with -v */
	REPORT_HEAD = 8, REPORT_TAIL = 16,	/* JSON: before and after a shard's tensors */
	REPORT_BRIEF = 32,	/* one line per shard */
	REPORT_TABLE = 128, REPORT_OBJECT = 256, /* one line per shard, with tabs; in JSON */
	REPORT_PLACE = 512,	/* with tabs, one line per tensor */
	REPORT_NAMED = 1024,	/* name of a tensor */
	REPORT_SHAPED = 2048,	/* JSON: type, kind, shape */
	REPORT_TENSOR = 4096,	/* bytes of a tensor, as a line */
	REPORT_TALLY = 8192,	/* bytes of a tensor, in JSON */
	REPORT_STATS = 16384,	/* statistics of values, as a line */
	REPORT_VALUES = 64,	/* statistics of values, in JSON */
	REPORT_DIFF = 32768	/* how values differ */
};
/* Data that a row may lack: a valid end of the shard, the policy's bandwidth, the policy's
 * interval. */
enum { REPORT_ENDED = 1, REPORT_LINKED = 2, REPORT_PACED = 4 };

/* Data of a row: of a shard, and of one of its tensors or all together. */
struct report_row {
	const char *file;
	uint64_t nth;
	const char *run, *device, *kind;
	struct shard shard;	/* the shard's header; the reader owns its memory */
	struct shard_end end;
	unsigned char schema[16];
	uint32_t group_size;
	/* in reports with one line per shard: its bytes; with glob the bytes of the bodies of
	 * these tensors */
	uint64_t bytes;
	double bits, norm;	/* in the same reports: bits per element; L2 norm */
	double bandwidth, interval;	/* from the shard's policy: bit/s; steps */
	const char *error;

	const struct schema_tensor *tensor;	/* NULL: all of them */
	const char *name, *dtype, *schema_kind;
	char shape[200], groups[64];
	struct tally tally;
	double bits_each;	/* walk_bits of tally */
	float min, max, max_abs;
	double mean, std, l2;
	uint64_t zeros, nan, inf;
	uint64_t differ;
	double largest, nmse, cosine;
};

extern const struct render_field report_fields[];

/* Prepare a report as text, written to f. */
void report_init(struct report *p, FILE *f, const struct kern *k);

/* Return 1 if p->pick selects the shard at which r stands; set p->picked and p->named. */
int report_wants(struct report *p, const struct reader *r);
/* Go to the next shard that p->pick selects. If p->pick is NULL, print the receipts before
 * it, unless p->quiet. Return 1, 0 at the end of the input, or -ERR_x. */
int report_next(struct report *p, struct reader *r, struct err *e);

/* Flush the report. Return -ERR_SYS if it cannot be written. */
int report_flush(struct report *p, struct err *e);

/* Set x to the current shard of r, without a tensor. x is valid until r moves on. */
void report_shard(const struct report *p, struct report_row *x,
    const struct reader *r);
/* Set the tensor of x to t, NULL for the total, with its tally y. */
void report_tensor(struct report_row *x, const struct schema_tensor *t,
    const struct tally *y);

/* Print the fields of x that belong to one of the reports `in' (REPORT_ bits), as render_row
 * does; in text and tables also end the line. */
void report_put(struct report *p, unsigned in, const struct report_row *x,
    unsigned have);
/* Print the column names of the reports `in'; in text, fit them to the terminal. */
void report_head(struct report *p, unsigned in);

/* Print a heading such as "shard 1 'edge1/42'", with the file's name first if there are
 * several. The caller prints the rest of the line. */
void report_heading(const struct report *p, const struct report_row *x);
/* JSON: open the shard's object with the members that identify it. */
void report_object(struct report *p, const struct report_row *x);

/* Fit the column widths to the tensors that p->glob matches. */
void report_columns(struct report *p, const struct schema *sc);

/* After error k: in JSON, close the open objects and add the message. Return k. */
int report_fail(struct report *p, int k, const struct err *e);

#endif
