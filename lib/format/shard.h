/* The metadata of a shard before its data (frame SHRD) and after it (frame SEND). */
#ifndef ACE_SHARD_H
#define ACE_SHARD_H

#include <stdint.h>

#include "base/alloc.h"
#include "format/text.h"

struct err;

enum shard_kind {
	SHARD_GRADIENT = 0, SHARD_DELTA = 1, SHARD_SUM = 2, SHARD_MEAN = 3,
	SHARD_RESIDUAL = 4, SHARD_MODEL = 5, SHARD_HISTORY = 6, SHARD_NKIND = 7
};

#define SHARD_ERROR_FEEDBACK ((uint32_t)1)	/* the residual was added (ACE-Sync, eq. 7) */
#define SHARD_CLIPPED ((uint32_t)4)
/* differences to a history or a model; 2 and 8 are reserved */
#define SHARD_PREDICTED ((uint32_t)16)

/* Well-known keys of a shard. */
#define SHARD_KEY_RUN "run"		/* name of the run, whose hash is the id `run' */
#define SHARD_KEY_DEVICE "device"	/* name of the device, whose hash is the id `device' */
#define SHARD_KEY_STAMP "residual"	/* digest of the residual that was added */
#define SHARD_KEY_NORM "model.norm"	/* || theta || of the gradient's model */
#define SHARD_KEY_MODEL "model.digest"	/* digest of the model that the gradient is for */
#define SHARD_KEY_COMPUTE "compute.seconds"	/* time to compute the step's gradient */

/* keys of shards with SHARD_PREDICTED: how to restore the values; the history's digest */
#define SHARD_KEY_PREDICT "predict"
#define SHARD_KEY_HISTORY "history"
#define SHARD_PREDICT_PATCH "patch"	/* a patch of a model (mODL) */

enum { SHARD_ID = 16, SHARD_DIGEST = 16, SHARD_NAME = 255,
	SHARD_KEY_BYTES = 40 };		/* bytes of run, device and step */
/* The largest incarnation that ace-recv accepts. A new one of a device ends all earlier ones. */
#define SHARD_INCARNATIONS UINT32_C(2147483647)

struct shard {
	unsigned char run[SHARD_ID];	/* XXH3-128 of the name; if it was never set, zeros */
	unsigned char device[SHARD_ID];	/* XXH3-128 of the name; if it was never set, zeros */
	uint64_t step;
	uint64_t base_version;		/* version of the model that the gradient is for */
	unsigned char schema_id[16];
	double weight;			/* weight in an average, > 0 */
	uint64_t samples;		/* training samples seen; 0: not stated */
	uint32_t kind, flags;		/* kind: enum shard_kind; flags: bits, see above */
	uint32_t contributors;		/* devices with values in the shard; 0 only if unchecked */
	uint32_t incarnation;		/* number of the device's state; a newer one is larger */
	struct text_kv kv;
};

/* Set weight and contributors to 1 and all other members to zero. */
void shard_init(struct shard *s);
int shard_copy(struct shard *to, const struct shard *from, struct err *e);
void shard_release(struct shard *s);

/* Set the run or device: its id (shard_id) and the key that holds its name; a name "" removes
 * the key. -ERR_USAGE if the name has more than SHARD_NAME bytes or is not text_clean. */
int shard_set_run(struct shard *s, const char *name, struct err *e);
int shard_set_device(struct shard *s, const char *name, struct err *e);
/* Return 1 if s is of this run and this device. */
int shard_is_of(const struct shard *s, const unsigned char *run,
    const unsigned char *device);
/* Set the run and device of s to those of `from'. */
int shard_same(struct shard *s, const struct shard *from, struct err *e);
const char *shard_run(const struct shard *s);		/* the name, or "(none)" */
const char *shard_device(const struct shard *s);
/* Return 1 if the shard turns one model into another (mODL). */
int shard_is_patch(const struct shard *s);

/* Return XXH3-64 over run, device and step. shard_key_of computes it from the payload of
 * SHRD, which begins with these fields. */
uint64_t shard_key(const struct shard *s);
uint64_t shard_key_of(const unsigned char *p, size_t n);

const char *shard_kind_name(unsigned kind);	/* "gradient", ... */
extern const char *const shard_kinds[];	/* names of the kinds, for num_choice */

int shard_encode(const struct shard *s, struct buf *out, struct err *e);
int shard_decode(struct shard *s, const unsigned char *p, size_t n, struct err *e);

/* Sums over the decoded values that were sent. Add the groups in rising order. */
struct shard_sums {
	uint64_t nonzero, dropped;	/* dropped: non-finite values set to zero */
	double sum, sumsq;		/* of x; of x^2 */
	float max_abs;			/* largest |x| */
};

/* Add a group by the statistics of its values. */
struct kern_stat;
void shard_sums_put(struct shard_sums *s, const struct kern_stat *t);

enum { SHARD_COMPLETE = 0, SHARD_ABORTED = 1 };

struct shard_end {
	uint32_t n_data, n_records;	/* numbers of DATA frames and of records */
	uint64_t raw, wire;		/* bytes of the values as f32; bytes of the bodies */
	unsigned char digest[SHARD_DIGEST];	/* see reader_digest_add */
	struct shard_sums sums;
	uint32_t status;		/* SHARD_COMPLETE or SHARD_ABORTED */
};
enum { SHARD_END_SIZE = 80 };

void shard_end_encode(const struct shard_end *s, unsigned char out[80]);
int shard_end_decode(struct shard_end *s, const unsigned char *p, size_t n,
    struct err *e);

/* Set id to the XXH3-128 of the name of a run or device. */
void shard_id(const char *name, unsigned char id[SHARD_ID]);
/* Write the digest as 32 hexadecimal digits and a NUL. */
void shard_hex(const unsigned char digest[16], char out[33]);

/* Return 1 if the gradient was computed on the model of the shard's own step, which is not 0.
 * The device then has received all earlier averages, though it may not have sent a shard for
 * each. */
static inline int
shard_is_abreast(const struct shard *s)
{
	return s->step != 0 && s->base_version == s->step;
}

/* Return 1 for the kinds that combine shards of devices: mean, sum and delta. */
static inline int
shard_is_average(const struct shard *s)
{
	return s->kind == SHARD_MEAN || s->kind == SHARD_SUM || s->kind == SHARD_DELTA;
}

#endif
