/*
 * The trainer's side of the pipes: write shards, read averages, store models in files.
 * It uses only the installed header aceg.h.
 */
#ifndef TRAIN_LINK_H
#define TRAIN_LINK_H

#include <aceg.h>

#include "train_model.h"

struct link {
	const struct model *m;
	const size_t *order;	/* order in which tensors are sent; NULL: the model's */
	const char *device, *run;
	double compute;		/* computing time to write into the next shard, s; < 0: none */
	char digest[20];	/* digest of what all devices share; "": none */
	const char *record;	/* directory for a copy of each shard, or NULL */
	const char *apply;	/* file to read averages from; "-": standard input */
	struct ace_writer *out;
	struct ace_reader *in;
	int fd;			/* descriptor of apply; -1: not open */
	uint64_t rounds;	/* 1 + the last round that link_receive has read; 0: none */
};

/* The policy's decisions that come with an average. */
struct link_word {
	size_t interval;	/* local steps per round; 0: not decided */
	size_t delay;
	int delayed;		/* 1: delay is decided */
	char cuts[1024];	/* "": not decided, or too long */
};

/* Start the stream of shards on descriptor out. group: values per group, 0 for the
 * default. */
int link_open(struct link *l, int out, uint32_t group, struct ace_error *e);

/* Store the shard in the directory l->record as ROUND.aceg, unless l->record is NULL; send
 * nothing. */
int link_record(const struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples, const float *x, struct ace_error *e);

/* Call link_record, then send the shard. version: number of averages in the model; x
 * f32[m->n]. */
int link_send(struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples, const float *x, struct ace_error *e);

/* Send a shard in parts: the header, each tensor in the link's order, the end.  tensor: its
 * index in the model; x f32[m->n]: all values.  flush 1: send buffered bytes now. */
int link_begin(struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples, struct ace_error *e);
int link_tensor(struct link *l, size_t tensor, const float *x, int flush,
    struct ace_error *e);
int link_end(struct link *l, struct ace_error *e);

/* Read the average of this round into x f32[m->n], and the policy's decisions into *word;
 * divide a sum by its weight.  Return -3 if it is missing, of a later round or of another
 * model.  Skip earlier rounds, which come again after this device was restarted.  The first
 * call opens the file, since the other end of a named pipe opens only after our first shard. */
int link_receive(struct link *l, uint64_t round, float *x,
    struct link_word *word, struct ace_error *e);

/* Read the next shard of l->apply for a device that joins; the first call opens the file.
 * Read a shard of kind model, and the nx - 1 shards of kind history after it, into x; read
 * any other shard into average, even one of kind history, which the caller ignores.  Set
 * *s to the first shard's header.  Return 1, or 0 at the end. */
int link_feedback(struct link *l, struct ace_shard *s, float *const *x, size_t nx,
    float *average, struct link_word *word, struct ace_error *e);

/* End our stream and close descriptor out.  Then wait until the other stream ends, if it was
 * opened; fail if it has another average. */
int link_close(struct link *l, int out, struct ace_error *e);
void link_release(struct link *l);

/* Write nx arrays f32[m->n] as a stream: the first as a shard with header s, the others as
 * shards of kind history.  The file is replaced atomically and synced. */
int link_save(const char *file, const struct model *m, struct ace_shard s,
    const float *const *x, size_t nx, struct ace_error *e);
/* Read up to nx arrays, and the first shard's header into s. Return the number of arrays
 * read, or -3 if it is below `least'. */
int link_load(const char *file, const struct model *m, struct ace_shard *s,
    float *const *x, size_t nx, size_t least, struct ace_error *e);

#endif
