/*
 * What a spool lets in.  Devices are not trusted: every number of a shard that
 * ends up in a sum, a weight or a name has a bound here, and a shard that is
 * outside of one is refused, with a receipt, before it is on the disk.  So what
 * is accepted can be aggregated.
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

/* What no limit goes beyond.  A million shards of that weight, with values of
 * VALUES_MOST, have a sum in f32; so have weights that are their samples. */
#define ADMIT_WEIGHT_MOST 1e12
#define ADMIT_STEP_MOST (UINT64_C(1) << 62)
#define ADMIT_SAMPLES_MOST (UINT64_C(1) << 40)

struct admit {
	const struct schema *schema;	/* shards of this model only, or NULL */
	/* limits, a line each in the file DIR/limits */
	unsigned kinds;			/* bits 1 << SHARD_x */
	int differences;		/* 1: those to a history, too */
	double weight;			/* this and the next: the most */
	uint64_t contributors;
	uint64_t ahead;			/* steps after the last closed one */
	uint64_t stale;			/* for inbox.max_stale */
	uint64_t shard;			/* bytes on the wire */
	uint64_t quota;			/* bytes that a device has in open steps */
	uint64_t open;			/* open steps that it has shards in */
	uint64_t out;			/* bytes of aggregates that it is given
					 * again in a day */
	double silence, idle, time;	/* seconds: without a byte in a shard,
					 * and between two; without a shard;
					 * 0: any */
	uint64_t clients, each;		/* connections, and those of a device */
};

/* admit_defaults(a, e): the limits of a spool without a file.
 * admit_read(a, s, device, e): those that its file has, for connections of the
 * device; NULL: of anybody.  -ERR_USAGE: a line is wrong.
 * admit_init(s, e): makes the file, with all defaults; -ERR_REFUSED: it is there. */
int admit_defaults(struct admit *a, struct err *e);
int admit_read(struct admit *a, const struct inbox *s, const char *device,
    struct err *e);
int admit_init(const struct inbox *s, struct err *e);

/* admit_refuse(r, fmt, ...): the verdict in r becomes `invalid', with this
 * reason, unless it has been refused before: then the first reason stays. */
void admit_refuse(struct receipt *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* admit_head(a, sh, sc, r): checks what the shard's head says; refuses in r. */
void admit_head(const struct admit *a, const struct shard *sh,
    const struct schema *sc, struct receipt *r);
/* admit_values(k, t, first, x, n, r): checks n values of tensor t, from its
 * first-th on. */
void admit_values(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct receipt *r);
/* admit_note(a, c, in, r, e): checks the annotation that `in' stands at. */
int admit_note(const struct admit *a, struct checks *c, const struct reader *in,
    struct receipt *r, struct err *e);

/* admit_out(a, s, run, device, bytes, e): the device is given so many bytes again that
 * all devices were given already: for a question, or a shard that came twice, which
 * cost nothing.  DIR/RUN/device/DEVICE.given is the day and how many they are on it.
 * -ERR_REFUSED: it has had as many as it may. */
int admit_out(const struct admit *a, const struct inbox *s, const char *run,
    const char *device, uint64_t bytes, struct err *e);

/* admit_run(s, want, run, e): -ERR_DATA when this is no run that is wanted, or
 * when several would do and the spool has another one of them (inbox_fits). */
int admit_run(const struct inbox *s, const char *want, const char *run,
    struct err *e);

#endif
