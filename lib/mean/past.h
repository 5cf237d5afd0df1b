/*
 * What the rule `center' remembers of the steps before: the center, from which it
 * measures, and of each device what its shards had in common over the last steps, since
 * a device that hides in the noise of one step does not hide in the mean of many.
 *
 * The center is the aggregate of the step before: in memory, 4 bytes a value, and the
 * one that is being made beside it.
 *
 *   u_k = B u_k + (1 - B) S g~_k     m_k = B m_k + (1 - B)    who counts in the step
 *   u_k = B u_k                      m_k = B m_k              who does not
 *   far2_k = || u_k / m_k - u_c / m_c ||^2,   B = 0.9
 *
 * g~_k is c + min(1, 3 s) (g_k - c), s the scale that the center gives it, so that one
 * step says no more than three radii; u_c and m_c are the same of the centers, the
 * aggregates of the steps before.  S is the count-sketch of
 * sync/sketch.h: 1 KiB a device, whatever the size of the model.  So a device that
 * is new, or was away for long, is known by little, which is noise, and counts less
 * until it is known.  History as what robust rules need is of Karimireddy, He and
 * Jaggi (ICML 2021), who have it as the momentum of honest devices; that the one who
 * adds up keeps it, in sketches, is ours.
 *
 * Who knows the sketch's places can aim between them.  They depend on the norms of
 * all shards of the first step, and only on them, so that the same input gives the
 * same bytes and nobody knows them who does not see what the others send.
 *
 *	past_begin -> past_device of each -> past_group, past_add for each group
 *	-> past_repeats -> past_judge -> past_make for each group -> past_commit
 *
 * Of each shard that counted in one of the last PAST_STEPS averages the direction is
 * kept, too, as 32 sums of a second sketch, whose places are the same for ever: a
 * shard that points where another device's did is a copy of that, and is left out.
 *
 *	|| s(g) / ||s(g)|| - s(h) / ||s(h)|| || < min(0.0447, 0.1 r),  or 1e-6
 *
 * where r is the median distance of the directions of this step from their middle.
 * Honest shards differ by r or more, hence none is taken for a copy where all are
 * nearly the same.  Nor is one for what the other device sends again in this step.  Of shards
 * with few values other than zero any two may be parallel: these have to be equal.
 *
 * For a spool all of it is in files, too, so that a program that is started again goes
 * on with the same.  Of two files one is of the last step and the other of the one
 * before: a step that is made again after a kill has to begin where it began.  The first
 * shard of a file is the center, the second has a row for each device.
 */
#ifndef ACE_PAST_H
#define ACE_PAST_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "base/statedir.h"
#include "format/shard.h"
#include "sync/robust.h"
#include "sync/sketch.h"

struct err;
struct schema;

enum { PAST_STEPS = 32, PAST_SUMS = 32 };

/* The direction of a shard; norm 0: none.  In row[0] of past_rows the number of the
 * step, in words of 24 bits, in v[0 .. 2]. */
struct past_seen {
	float norm, v[PAST_SUMS];
};

struct past_row {
	unsigned char device[SHARD_ID];
	float mass, u[SKETCH_M];
	struct past_seen seen[PAST_STEPS];	/* the newest first */
};

struct past_one {		/* a contribution to the step at hand */
	unsigned char device[SHARD_ID];
	struct past_seen seen;
	unsigned char from[SHARD_ID];	/* of a copy: the device that it repeats, */
	uint64_t sent;			/* and the step in which that sent it */
};

struct past_rows {
	struct past_row *row;	/* row[0] is of the centers, the others by device */
	size_t n, cap;
};

struct past {
	struct statedir dir;		/* dir.dir NULL: no files */
	enum io_sync sync;
	int newest;			/* the file that was written last, 0 or 1 */
	int bad;			/* the files are: no shard is to blame */
	int begun;			/* a step of `model' was; */
	int known;			/* so that there are a center and places */
	float *values;			/* room for both of these: */
	float *center, *made;		/* f32[]: of the step before, of this one */
	size_t cap;
	uint64_t seed;			/* of the places */
	uint64_t step;			/* at hand */
	unsigned char model[16];
	struct past_rows last, next;
	struct sketch now;		/* of this step's shards, and of its center */
	struct sketch same;		/* of the shards, by the places of all steps */
	struct past_one *one;		/* [k] */
	double *tmp;			/* f64[k], to sort in */
	size_t k, one_cap, tmp_cap;
};
#define PAST_INIT { .dir = STATE_INIT, .newest = 1 }

/* past_keep(p, dir, sync): files in the directory dir, which becomes p's own. */
void past_keep(struct past *p, char *dir, enum io_sync sync);
/* past_begin(p, sh, sc, k, e): the step of shard sh, of k contributions to the model
 * sc, begins.  Nothing is known of another model than the step before, or in the
 * first step: then p->known is 0. */
int past_begin(struct past *p, const struct shard *sh, const struct schema *sc,
    size_t k, struct err *e);
/* past_device(p, i, sh): contribution i is this shard. */
void past_device(struct past *p, size_t i, const struct shard *sh);
/* past_group(p, group, n, e): what past_add is given next is the n values of this
 * group.  past_add(p, i, x): x[n] are those of contribution i, or, i being k, of the
 * center. */
int past_group(struct past *p, uint32_t group, size_t n, struct err *e);
void past_add(struct past *p, size_t i, const float *x);
/* past_repeats(p, t, e): before robust_judge: marks the contributions that repeat
 * what another device sent, which p->one names. */
int past_repeats(struct past *p, struct robust_step *t, struct err *e);
/* past_judge(p, t, e): behind robust_judge: robust_past by what is known. */
int past_judge(struct past *p, struct robust_step *t, struct err *e);
/* past_center(p, first): the center's values from the first of a group on, or NULL:
 * zeros.  past_make(p, first, y, n): the group's in this step's aggregate, which are
 * zeros otherwise. */
const float *past_center(const struct past *p, uint64_t first);
void past_make(struct past *p, uint64_t first, const float *y, size_t n);
/* past_commit(p, sh, sc, e): this step becomes the one before. */
int past_commit(struct past *p, const struct shard *sh, const struct schema *sc,
    struct err *e);
void past_release(struct past *p);

#endif
