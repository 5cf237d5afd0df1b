/*
 * Which shards a spool admits.  Devices are not trusted: every number of a shard that
 * ends up in a sum, a weight or a name has a bound here.  A shard beyond a bound is
 * refused with a receipt before it is written, so every accepted shard can be averaged.
 */
#ifndef ACE_ADMIT_H
#define ACE_ADMIT_H

#include <stddef.h>
#include <stdint.h>

#include "format/receipt.h"
#include "format/schema.h"

struct checks;
struct err;
struct inbox;
struct kern;
struct reader;

/* Upper bounds of the limits.  A million shards of that weight, with values of
 * VALUES_MOST, have a sum in f32; so have weights that are numbers of samples. */
#define ADMIT_WEIGHT_MOST 1e12
#define ADMIT_STEP_MOST (UINT64_C(1) << 62)
#define ADMIT_SAMPLES_MOST (UINT64_C(1) << 40)

struct admit {
	const struct schema *schema;	/* shards of this model only, or NULL */
	/* limits, one line for each in the file DIR/limits */
	unsigned kinds;			/* bits 1 << SHARD_x */
	int differences;		/* 1: differences to a history, too */
	double weight;			/* most allowed, as the next ones */
	uint64_t contributors;
	uint64_t ahead;			/* steps after the last closed one */
	uint64_t stale;			/* for inbox.max_stale */
	uint64_t shard;			/* bytes on the wire */
	uint64_t quota;			/* bytes of a device in open steps */
	uint64_t open;			/* open steps with shards of a device */
	uint64_t out;			/* bytes of averages that a device is
					 * given again in a day */
	double silence, idle, time;	/* seconds: without a byte within a shard,
					 * and between two shards; without a
					 * whole shard; 0: no limit */
	uint64_t clients, each;		/* connections: of all, of one device */
};

/* admit_defaults(a, e): set the limits of a spool that has no file of limits.
 * admit_read(a, s, device, e): read the file of limits, for connections of the device;
 * NULL: of any device.  -ERR_USAGE: a line is wrong.
 * admit_init(s, e): write the file with all defaults; -ERR_REFUSED: it exists. */
int admit_defaults(struct admit *a, struct err *e);
int admit_read(struct admit *a, const struct inbox *s, const char *device,
    struct err *e);
int admit_init(const struct inbox *s, struct err *e);

/* admit_refuse(r, fmt, ...): set the verdict in r to `invalid', with this reason.  If r
 * was refused before, the first reason stays. */
void admit_refuse(struct receipt *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* admit_head(a, sh, sc, r): check the shard's head, and refuse it in r if a bound is
 * exceeded. */
void admit_head(const struct admit *a, const struct shard *sh,
    const struct schema *sc, struct receipt *r);
/* admit_values(k, t, first, x, n, r): check the values x[n], which are those of tensor t
 * from index `first' on. */
void admit_values(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct receipt *r);
/* admit_note(a, c, in, r, e): check the annotation that `in' stands at. */
int admit_note(const struct admit *a, struct checks *c, const struct reader *in,
    struct receipt *r, struct err *e);

/* admit_out(a, s, device, bytes, e): count bytes of averages that the device is
 * given again: for a question, or for a shard that came twice, which cost the device
 * nothing.  DIR/device/DEVICE.given holds the day and the bytes of that day.
 * -ERR_REFUSED: the device has reached its limit. */
int admit_out(const struct admit *a, const struct inbox *s, const char *device,
    uint64_t bytes, struct err *e);

#endif
