/*
 * The trainer's ends of the pipes: a shard out, the aggregate in, models in
 * files.  All of it through the installed header; a trainer in any language
 * needs no more than this.
 */
#ifndef TRAIN_LINK_H
#define TRAIN_LINK_H

#include <aceg.h>

#include "train_model.h"

struct link {
	const struct model *m;
	const size_t *order;	/* of the tensors; NULL: the model's */
	const char *device, *run;
	double compute;		/* seconds for the next shard; < 0: untold */
	char digest[20];	/* of what all devices have alike; "": untold */
	const char *record;	/* directory for a copy of each shard, or NULL */
	const char *apply;	/* file to read aggregates from, "-" stdin */
	struct ace_writer *out;
	struct ace_reader *in;
	int fd;			/* of apply, or -1 */
	uint64_t rounds;	/* whose aggregates have come */
};

/* What the policy says with an aggregate. */
struct link_word {
	size_t interval;	/* 0: nothing */
	size_t delay;
	int delayed;		/* delay is said */
	char cuts[1024];	/* "": nothing, or longer */
};

/* Starts the stream of shards on descriptor out.  group: values per group, 0
 * for the default. */
int link_open(struct link *l, int out, uint32_t group, struct ace_error *e);

/* The shard as a file of l->record, if there is one; the same again after being
 * killed. */
int link_record(const struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples, const float *x, struct ace_error *e);

/* One shard of m->n values, recorded before it leaves; version: the averages in the model it is of. */
int link_send(struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples, const float *x, struct ace_error *e);

/* The same bit by bit: the head, each tensor in the link's order, the end.
 * flush: what there is goes out at once. */
int link_begin(struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples, struct ace_error *e);
int link_tensor(struct link *l, size_t tensor, const float *x, int flush,
    struct ace_error *e);
int link_end(struct link *l, struct ace_error *e);

/*
 * The aggregate of this round into x f32[n]; -3 if it is of a later round or of
 * another model.  Those of earlier rounds are passed over: who was killed and
 * sends again is answered again.  A sum is divided by its weight.  The file is
 * opened at the first call: with named pipes the other end opens only after our
 * first shard.
 */
int link_receive(struct link *l, uint64_t round, float *x,
    struct link_word *word, struct ace_error *e);

/*
 * The next shard of l->apply, opened at the first call, for a device that joins:
 * of kind model, it and the nx - 1 of kind history behind it into x; another one
 * of kind history is not for who joins, any other is an average.  *s is what the
 * first says.  1, 0 at the end.
 */
int link_feedback(struct link *l, struct ace_shard *s, float *const *x, size_t nx,
    float *average, struct link_word *word, struct ace_error *e);

/* Ends our stream, closes descriptor out, and wants the other to have ended
 * too. */
int link_close(struct link *l, int out, struct ace_error *e);
void link_release(struct link *l);

/* nx arrays f32[m->n] as a stream: a shard as s says, the others of kind
 * history.  The file is replaced whole, on disk, or not at all. */
int link_save(const char *file, const struct model *m, struct ace_shard s,
    const float *const *x, size_t nx, struct ace_error *e);
/* The first nx of them, and in s what the first says.  How many there were: -3 if
 * fewer than least. */
int link_load(const char *file, const struct model *m, struct ace_shard *s,
    float *const *x, size_t nx, size_t least, struct ace_error *e);

#endif
