/*
 * A stage is what a program does to a shard, between a reader and a writer.
 *
 *   begin   a shard begins
 *   data    some of its groups, in rising order
 *   note    an annotation
 *   end     the shard is whole; sums of its values
 *   finish  the stream is whole; abort: it failed
 *
 * A stage passes on what it gets, changes it, or holds it back until it knows more.
 * A program is a reader, one stage and a writer.  ace-step is a reader, up to five
 * stages and a writer, and gives the same bytes as their programs in a pipe.
 */
#ifndef ACE_STAGE_H
#define ACE_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "format/reader.h"
#include "kern/kern.h"
#include "pipe/filter.h"

struct err;
struct stage;
struct writer;

/* A shard as it comes to a stage.  Its pointers are valid until the next shard begins. */
struct stage_shard {
	const struct shard *shard;
	const struct schema *schema;
	const struct reader *in;	/* the first stage's input, for stage_read and
					 * for messages about this shard */
	const char *provenance;		/* provenance of all earlier programs */
};

/*
 * Some groups of a shard, in one of two forms.  From the input: rec[n] are the records of
 * one frame, x is NULL, and `whole' is the reader that stands at this frame, so that the
 * frame can be passed on unchanged.  Made by a stage: `whole' is NULL, n is 1, x f32[nx] are
 * the group's values and stat their statistics; the record's body is the same values, in the
 * host's byte order.
 */
struct stage_data {
	const struct record *rec;
	size_t n;
	const float *x;
	size_t nx;
	const struct kern_stat *stat;
	const struct reader *whole;	/* the reader at the frame, or NULL */
	int cut;		/* 1: the frame ended early so that it is passed on
				 * immediately; pass on its result immediately, too */
};

struct stage_note {
	uint32_t type;
	const unsigned char *p;
	size_t n;
	const struct reader *whole;	/* the reader at the annotation's frame, or NULL */
};

/* What a stage does with the values.  If it only reads them, they go from pipe to pipe
 * without a copy.  If it ignores them, they are not verified. */
enum stage_values { STAGE_CHANGES, STAGE_READS, STAGE_IGNORES };

/* A kind of stage.  Any function may be NULL.  In place of a NULL from `begin' to `finish', the
 * next stage's function is called, so the last stage must have these five. */
struct stage_kind {
	size_t size;		/* bytes of its struct, which begins with a stage */
	enum stage_values values;	/* of a new stage; its `make' may change them */
	/* check: return 0, or -ERR_USAGE if options in o exclude each other or one is missing */
	int (*check)(const void *o, struct err *e);
	/* make: initialise a zeroed stage.  Its options o and the program's f must
	 * outlive it.  `free' is called even if make fails. */
	int (*make)(struct stage *s, void *o, const struct filter *f, struct err *e);
	int (*begin)(struct stage *s, const struct stage_shard *sh, struct err *e);
	int (*data)(struct stage *s, const struct stage_data *d, struct err *e);
	int (*note)(struct stage *s, const struct stage_note *n, struct err *e);
	int (*end)(struct stage *s, const struct shard_sums *sums, struct err *e);
	int (*finish)(struct stage *s, struct err *e);
	void (*abort)(struct stage *s, struct err *e);
	void (*free)(struct stage *s);		/* free its members */
	/* to: set the writer, which the stage frees; only for a last stage */
	void (*to)(struct stage *s, struct writer *w);
};

struct stage {
	const struct stage_kind *kind;
	enum stage_values values;
	struct stage *next;
};

/* Create a stage of kind k with options o; on an error *out is NULL. */
int stage_new(struct stage **out, const struct stage_kind *k, void *o,
    const struct filter *f, struct err *e);

/* Call the function begin, data, note, end or finish of the first stage from s on that
 * has one.  A stage that passes something on calls these with its s->next. */
int stage_begin(struct stage *s, const struct stage_shard *sh, struct err *e);
int stage_data(struct stage *s, const struct stage_data *d, struct err *e);
int stage_note(struct stage *s, const struct stage_note *n, struct err *e);
int stage_end(struct stage *s, const struct shard_sums *sums, struct err *e);
int stage_finish(struct stage *s, struct err *e);

/* Write the shard's name for messages, as in "shard 'edge1/42'", and return buf. */
const char *stage_name(const struct stage_shard *sh, char buf[160]);
#define STAGE_NAME(sh) stage_name((sh), (char[160]){ 0 })

/* Pass s an annotation that was made here instead of read from the input. */
int stage_make(struct stage *s, uint32_t type, const unsigned char *p, size_t n,
    struct err *e);
/* Pass s the values x f32[n] of group g with their statistics; cut: as in struct stage_data. */
int stage_values(struct stage *s, uint32_t g, const float *x, size_t n,
    const struct kern_stat *stat, int cut, struct err *e);

/* Set v to the values of record i, in place or decoded into buf f32[cap], with their
 * statistics.  stage_finite: refuse values that are not finite. */
struct stage_seen {
	const float *x;		/* f32[n] */
	size_t n;
	struct kern_stat stat;
};
int stage_read(const struct stage_data *d, size_t i, const struct reader *in,
    float *buf, size_t cap, struct stage_seen *v, struct err *e);
int stage_finite(const struct stage_data *d, size_t i, const struct reader *in,
    float *buf, size_t cap, struct stage_seen *v, struct err *e);

/*
 * Send all of `in' through s and the stages after it; then call finish, or abort after
 * an error.  w: the writer of receipts, which bypass the stages; NULL: drop them.
 * lines: provenance to append to that of `in', if the stages replace several programs;
 * or NULL.
 */
int stage_run(struct reader *in, struct stage *s, struct writer *w,
    const char *lines, struct err *e);

/* Free s and the stages after it; s may be NULL. */
void stage_free(struct stage *s);

/* Send all of path (NULL: standard input) through s and the stages after it to f's
 * output; lines: as in stage_run.  If the last stage cannot write, append one that can.
 * The caller then frees all of them by stage_free(s), also after an error. */
int stage_pass(struct filter *f, struct stage *s, const char *lines,
    const char *path, struct err *e);

/* Run a program that is one stage of kind k with options o.  Return its exit status. */
int stage_program(const struct stage_kind *k, void *o, const struct cli *c,
    int argc, char **argv);

#endif
