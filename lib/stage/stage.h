/*
 * A stage: what a program does to a shard, between a reader and a writer.
 *
 *   begin   a shard begins
 *   data    some of its groups, in rising order
 *   note    an annotation
 *   end     the shard is whole; sums of its values
 *   finish  the stream is whole; abort: it failed
 *
 * A stage passes on what it gets to the next one, changes it, or holds it back
 * until it knows more.  A function that is NULL passes on.  A program is a
 * reader, one stage and a writer; ace-step is a reader, five stages and a
 * writer, and gives the same bytes as five programs in a pipe.
 */
#ifndef ACE_STAGE_H
#define ACE_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "format/reader.h"

struct err;
struct writer;

/* A shard as it comes to a stage; what it points to stays until the next one
 * begins. */
struct stage_shard {
	const struct shard *shard;
	const struct schema *schema;
	const struct reader *in;	/* that the chain began with; it stands
					 * at this shard, for messages */
	const char *provenance;		/* of all programs before */
};

/*
 * Some groups.  As they came in a frame of the input (whole: pass them on as
 * they are), or made by a stage: then n is 1 and x f32[nx] its values, which are
 * also what the record's body is, in this machine's order of bytes.
 */
struct stage_data {
	const struct record *rec;
	size_t n;
	const float *x;
	size_t nx;
	const struct reader *whole;	/* stands at the frame; or NULL */
	int cut;		/* what becomes of it should go on at once */
};

struct stage_note {
	uint32_t type;
	const unsigned char *p;
	size_t n;
	const struct reader *whole;	/* as above */
};

struct stage {
	int (*begin)(struct stage *s, const struct stage_shard *sh,
	    struct err *e);
	int (*data)(struct stage *s, const struct stage_data *d, struct err *e);
	int (*note)(struct stage *s, const struct stage_note *n, struct err *e);
	int (*end)(struct stage *s, const struct shard_sums *sums,
	    struct err *e);
	int (*finish)(struct stage *s, struct err *e);
	void (*abort)(struct stage *s);
	void (*free)(struct stage *s);
	struct stage *next;
};

/* To the first of s and those after it that has such a function. */
int stage_begin(struct stage *s, const struct stage_shard *sh, struct err *e);
int stage_data(struct stage *s, const struct stage_data *d, struct err *e);
int stage_note(struct stage *s, const struct stage_note *n, struct err *e);
int stage_end(struct stage *s, const struct shard_sums *sums, struct err *e);
int stage_finish(struct stage *s, struct err *e);

/* stage_make(s, type, p, n, e): an annotation of our own. */
int stage_make(struct stage *s, uint32_t type, const unsigned char *p, size_t n,
    struct err *e);
/* stage_values(s, g, x, n, e): group g is x f32[n]. */
int stage_values(struct stage *s, uint32_t g, const float *x, size_t n,
    struct err *e);

/* stage_read(d, i, in, x, cap, n, e): the values of record i, f32[*n]: in *x,
 * which points to where they are already or to buf f32[cap]. */
int stage_read(const struct stage_data *d, size_t i, const struct reader *in,
    float *buf, size_t cap, const float **x, size_t *n, struct err *e);

/*
 * stage_run(in, s, lines, e): all of in through s and the stages after it, to
 * the end: finished when in ended well, aborted otherwise.  lines: provenance
 * to stand after in's, for stages that are programs of their own; or NULL.
 */
int stage_run(struct reader *in, struct stage *s, const char *lines,
    struct err *e);

/* stage_free(s): s and those after it; NULL is nothing. */
void stage_free(struct stage *s);

#endif
