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
 * until it knows more.  A program is a reader, one stage and a writer; ace-step is a reader, five stages and a
 * writer, and gives the same bytes as five programs in a pipe.
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
 * Some groups of a shard, in one of two forms.  From the input: rec[n] are the
 * records of one frame, and whole is the reader that stands at that frame,
 * which can be passed on as it is.  Made by a stage: whole is NULL, n is 1,
 * x f32[nx] are the group's values and stat their statistics; the record's body
 * is those same values, in this machine's order of bytes.
 */
struct stage_data {
	const struct record *rec;
	size_t n;
	const float *x;
	size_t nx;
	const struct kern_stat *stat;
	const struct reader *whole;	/* stands at the frame; or NULL */
	int cut;		/* the frame was cut off early, to be passed
				 * on at once: so should what is made of it */
};

struct stage_note {
	uint32_t type;
	const unsigned char *p;
	size_t n;
	const struct reader *whole;	/* as in stage_data */
};

/* What a stage does with the values.  Where it changes them, frames between the
 * shards are passed on only if their type says that they are still true.  Where
 * it passes them on unchanged, they are not copied from pipe to pipe, and where
 * it does not even read them, they are not verified there. */
enum stage_values { STAGE_CHANGES, STAGE_READS, STAGE_IGNORES };

/* A kind of stage.  Functions that are NULL pass on, or have nothing to do. */
struct stage_kind {
	size_t size;		/* of its struct, which begins with a stage */
	enum stage_values values;
	/* make: begins with zeros.  o, its options, and f, the program's, must
	 * live as long as the stage; `free' also follows a make that fails. */
	int (*make)(struct stage *s, void *o, const struct filter *f, struct err *e);
	int (*begin)(struct stage *s, const struct stage_shard *sh, struct err *e);
	int (*data)(struct stage *s, const struct stage_data *d, struct err *e);
	int (*note)(struct stage *s, const struct stage_note *n, struct err *e);
	int (*end)(struct stage *s, const struct shard_sums *sums, struct err *e);
	int (*finish)(struct stage *s, struct err *e);
	void (*abort)(struct stage *s, struct err *e);
	void (*free)(struct stage *s);		/* what it holds */
	/* to: where it writes, which it frees; of one that is the last only */
	void (*to)(struct stage *s, struct writer *w);
};

struct stage {
	const struct stage_kind *kind;
	struct stage *next;
};

/* stage_new(out, k, o, f, e): a stage of that kind. */
int stage_new(struct stage **out, const struct stage_kind *k, void *o,
    const struct filter *f, struct err *e);

/* Each of these calls the function of that name of the first stage, beginning
 * with s, that has one.  A stage calls them with its s->next. */
int stage_begin(struct stage *s, const struct stage_shard *sh, struct err *e);
int stage_data(struct stage *s, const struct stage_data *d, struct err *e);
int stage_note(struct stage *s, const struct stage_note *n, struct err *e);
int stage_end(struct stage *s, const struct shard_sums *sums, struct err *e);
int stage_finish(struct stage *s, struct err *e);

/* stage_make(s, type, p, n, e): gives s an annotation that did not come from
 * the input. */
int stage_make(struct stage *s, uint32_t type, const unsigned char *p, size_t n,
    struct err *e);
/* stage_values(s, g, x, n, stat, cut, e): gives s group g, whose values are
 * x f32[n], with these statistics; cut: as in stage_data. */
int stage_values(struct stage *s, uint32_t g, const float *x, size_t n,
    const struct kern_stat *stat, int cut, struct err *e);

/* stage_read(d, i, in, buf, cap, v, e): the values of record i, where they are
 * already or in buf f32[cap], and their statistics. */
struct stage_seen {
	const float *x;		/* f32[n] */
	size_t n;
	struct kern_stat stat;
};
int stage_read(const struct stage_data *d, size_t i, const struct reader *in,
    float *buf, size_t cap, struct stage_seen *v, struct err *e);

/*
 * stage_run(in, s, w, lines, e): sends all of `in' through s and the stages after
 * it, then calls finish, or abort where something failed.  w: where receipts go,
 * which are no stage's business; NULL: nowhere.  lines: provenance that is to
 * stand after that of `in', where the stages stand for several programs; or NULL.
 */
int stage_run(struct reader *in, struct stage *s, struct writer *w,
    const char *lines, struct err *e);

/* stage_free(s): s and those after it; NULL is nothing. */
void stage_free(struct stage *s);

/* stage_pass(f, s, lines, path, e): sends all of path (NULL: standard input)
 * through s and those after it to f's output; lines as in stage_run.  They stay
 * the caller's. */
int stage_pass(struct filter *f, struct stage *s, const char *lines,
    const char *path, struct err *e);

/* stage_program(k, o, c, argc, argv): a program that is one stage, with options
 * o, from its command line to its exit status. */
int stage_program(const struct stage_kind *k, void *o, const struct cli *c,
    int argc, char **argv);

#endif
