/*
 * The memory of the rule `center': the center c, from which distances are measured, and for
 * each device k a decaying mean u_k / m_k of its shards.  A device can hide in the noise of
 * one step, but not in the mean of many.
 *
 * The center is the aggregate of the previous step.  It takes 4 bytes per value in memory,
 * and so does the aggregate that is being computed.
 *
 *   u_k = B u_k + (1 - B) S g~_k     m_k = B m_k + (1 - B)    if k counts in the step
 *   u_k = B u_k                      m_k = B m_k              if not
 *   far2_k = || u_k / m_k - u_c / m_c ||^2,   B = 0.9
 *
 * g~_k = c + min(1, 3 s) (g_k - c), with s the scale of the center rule, so that one step
 * adds at most three radii.  u_c and m_c are the same sums over the centers.  S is the
 * count-sketch of sync/sketch.h: 1 KiB per device for a model of any size.  A device that
 * is new or was away for long has little mass m_k and much noise, so its weight is small at
 * first.  Karimireddy, He and Jaggi (ICML 2021) show that robust rules need history; they
 * use the momentum of honest devices.  Sketches at the aggregator are our method.
 *
 * A device that knew the sketch's places (its hash functions) could send values that cancel
 * in it.  The places depend only on the norms of all shards of the first step.  So a device
 * that cannot see the other shards cannot know the places, and the same input gives the
 * same bytes.
 *
 *	center_begin -> center_device for each -> center_group, center_add for each group
 *	-> robust_judge -> center_judge -> center_make for each group -> center_commit
 *
 * For a spool, two files store the memory after the last step and after the previous step,
 * since a step that is repeated after a kill must begin with the same memory.  The first
 * shard of a file is the center, the second the array of struct center_row.
 */
#ifndef ACE_CENTER_H
#define ACE_CENTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/statedir.h"
#include "format/shard.h"
#include "sync/robust.h"
#include "sync/sketch.h"

struct err;
struct schema;

/* A device's id as numbers of 16 bits, which floats hold exactly. */
struct center_id {
	float v[SHARD_ID / 2];
};

struct center_row {		/* floats only, so that it is stored as in memory */
	struct center_id device;
	float mass, u[SKETCH_M];
};

struct center_rows {
	struct center_row *row;	/* row[0]: the centers; the others sorted by device */
	size_t n, cap;
};

struct center {
	struct statedir dir;		/* dir.dir NULL: no files */
	enum io_sync sync;
	int newest;			/* 0 or 1: which of the two files has the last step */
	int bad;			/* 1: the error is in a file, not in a shard */
	int begun;			/* 1: a step of `model' has begun */
	int known;			/* 1: center and places are known */
	float *values;			/* one allocation for `center' and `made' */
	float *center, *made;		/* f32[]: aggregates of the step before, of this step */
	size_t cap;
	uint64_t seed;			/* seed of the sketch's places */
	unsigned char model[16];	/* id of the current schema */
	struct center_rows last, next;	/* rows after the step before; after this step */
	struct sketch now;		/* sketches of this step's shards and of the center */
	struct center_id *device;	/* [k] of each contribution to this step */
	size_t k, device_cap;
};
#define CENTER_INIT { .dir = STATE_INIT, .newest = 1 }

/* center_keep(p, dir, sync, e): store the memory in files in the directory dir. */
int center_keep(struct center *p, const char *dir, enum io_sync sync, struct err *e);
/* center_begin(p, sh, sc, k, e): begin the step of shard sh, with k contributions to the
 * model sc.  In the first step, and after a step of another model, read the memory of an
 * earlier step with the model sc from the files; if there is none, set p->known to 0.
 * After an error of a file p->bad is 1. */
int center_begin(struct center *p, const struct shard *sh, const struct schema *sc,
    size_t k, struct err *e);
/* center_device(p, i, sh): set the device of contribution i, whose shard is sh. */
void center_device(struct center *p, size_t i, const struct shard *sh);
/* center_group(p, group, n, e): begin a group of n values.
 * center_add(p, i, x): add the values x[n] of contribution i, or, with i == k, of the
 * center. */
int center_group(struct center *p, uint32_t group, size_t n, struct err *e);
void center_add(struct center *p, size_t i, const float *x);
/* center_judge(p, t, e): after robust_judge, apply robust_past with the distances over many
 * steps, unless p->known is 0. */
int center_judge(struct center *p, struct robust_step *t, struct err *e);
/* center_of(p, first): return the center's values from index `first' on; NULL: zeros.
 * center_make(p, first, y, n): set n values of this step's aggregate from index `first'
 * on; values that are not set are 0. */
const float *center_of(const struct center *p, uint64_t first);
void center_make(struct center *p, uint64_t first, const float *y, size_t n);
/* center_commit(p, sh, sc, e): end the step, and store the memory if there are files. */
int center_commit(struct center *p, const struct shard *sh, const struct schema *sc,
    struct err *e);
void center_release(struct center *p);

#endif
