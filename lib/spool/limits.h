/*
 * The limits of a spool: which shards it admits, how many and how large.  Devices are
 * not trusted: every number of a shard that ends up in a sum, a weight or a name has a
 * bound.  A shard beyond a bound is refused with a receipt, or its device has to send it
 * again later, so every accepted shard can be averaged.
 */
#ifndef ACE_LIMITS_H
#define ACE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "format/receipt.h"
#include "format/schema.h"

struct checks;
struct closed;
struct err;
struct spool;
struct kern;
struct reader;

/* Upper bounds of the limits.  A sum of a million shards of LIMITS_WEIGHT_MOST and
 * VALUES_MOST (format/values.h) fits into f32, also if weights count samples. */
#define LIMITS_WEIGHT_MOST 1e12
/* The least weight of any shard: the products of a smaller one would lose digits in f64. */
#define LIMITS_WEIGHT_LEAST 1e-30
#define LIMITS_STEP_MOST (UINT64_C(1) << 62)
#define LIMITS_SAMPLES_MOST (UINT64_C(1) << 40)

/* A shard above the limit of size is read to its end, so that its device gets the reason,
 * unless it is larger than LIMITS_BEYOND times the limit.  The reconstruction of a
 * difference must not be larger, either. */
enum { LIMITS_BEYOND = 8 };

struct limits {
	const struct schema *schema;	/* shards of this model only, or NULL */
	/* the limits, as in the file DIR/limits */
	double weight;			/* most weight of one shard */
	uint64_t contributors;		/* most contributors of one shard */
	uint64_t ahead;			/* most steps that a shard is after the last closed step */
	uint64_t shard;			/* most bytes of one shard in the stream */
	uint64_t open;			/* most open steps with shards of one device */
	double silence, idle, time;	/* most seconds without a byte within a shard; without one
					 * between shards; for a shard or until the device has
					 * read an answer; 0: no limit */
	uint64_t clients, each;		/* most connections: of all devices; of one device */
};

/* limits_read(a, s, device, e): set the limits for connections of the device, or of any
 * device if it is NULL, by the file of limits.  Without a file they are the defaults.
 * -ERR_USAGE: a line is wrong.
 * limits_init(s, e): write the file with all defaults; -ERR_REFUSED: it exists. */
int limits_read(struct limits *a, const struct spool *s, const char *device,
    struct err *e);
int limits_init(const struct spool *s, struct err *e);

/* limits_refuse(r, fmt, ...): set the verdict in r to `invalid', with this reason.  If r
 * was refused before, the first reason stays. */
void limits_refuse(struct receipt *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* limits_because(r, e): refuse the shard with the text of the error e as the reason, and
 * return 0.  Only if e is an ERR_SYS, which is not about the shard, return -ERR_SYS. */
int limits_because(struct receipt *r, struct err *e);

/* limits_head(a, sh, sc, r): refuse the shard in r if its head exceeds a bound or breaks a rule
 * (checks_shard), its kind cannot be averaged or its model is not a->schema. */
void limits_head(const struct limits *a, const struct shard *sh,
    const struct schema *sc, struct receipt *r);
/* limits_values(k, t, first, x, n, r): check that the values x[n] of tensor t, which begin at
 * index `first', are finite and bounded, and else refuse the shard in r. */
void limits_values(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct receipt *r);
/* limits_note(a, c, in, r, e): check the annotation in the frame that `in' read last, unless
 * r is a refusal already; refuse the shard in r if the annotation is wrong. */
int limits_note(const struct limits *a, struct checks *c, const struct reader *in,
    struct receipt *r, struct err *e);

/* limits_room(a, s, sh, sc, e): check that the spool has room for the shard, of schema sc.
 * Return 0, or 1 if the shard's step is closed: then the spool does not keep the shard, and it
 * needs no room.  -ERR_REFUSED: the step is too far ahead, or the device has too many
 * open steps, or too many differences in them, whose reconstructions the spool keeps as f32.
 * The connection then ends without a verdict, and the device sends the shard again later.  A
 * verdict would have to be stored, since the device keeps the values of a refused shard for a
 * later one, and the same bytes must not be accepted then.  So a device that invents steps
 * could fill the disk with verdicts. */
int limits_room(const struct limits *a, const struct spool *s, const struct shard *sh,
    const struct schema *sc, struct err *e);
/* limits_took(s, sh, d, e): put the shard's step on the device's list of open steps.  Call it
 * before the device's first file in that step is made.  d is the state of the run. */
int limits_took(const struct spool *s, const struct shard *sh, const struct closed *d,
    struct err *e);

#endif
