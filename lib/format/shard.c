#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "format/shard.h"
#include "kern/kern.h"

enum { SHARD_FIXED = 88 };

const char *const shard_kinds[SHARD_NKIND + 1] = { "gradient", "delta", "sum",
	"mean", "residual", "model", "history", NULL };

const char *
shard_kind_name(unsigned kind)
{
	return kind < SHARD_NKIND ? shard_kinds[kind] : "?";
}

void
shard_init(struct shard *s)
{
	memset(s, 0, sizeof(*s));
	s->weight = 1;
	s->contributors = 1;
}

int
shard_copy(struct shard *to, const struct shard *from, struct err *e)
{
	struct shard s = *from;
	int r;

	s.kv = (struct text_kv)TEXT_KV_INIT;
	if ((r = text_copy(&s.kv, &from->kv, e)) < 0)
		return r;
	shard_release(to);
	*to = s;
	return 0;
}

void
shard_release(struct shard *s)
{
	text_release(&s->kv);
	shard_init(s);
}

void
shard_id(const char *name, unsigned char id[SHARD_ID])
{
	hash_128(name, strlen(name), id);
}

static int
shard_set_name(struct shard *s, unsigned char id[16], const char *key,
    const char *name, struct err *e)
{
	size_t n = strlen(name);

	if (n > SHARD_NAME || !text_clean(name, n))
		return err_set(e, ERR_USAGE, "%s name '%.64s%s': expected at most %d "
		    "bytes of UTF-8 without control characters", key, name,
		    n > 64 ? "..." : "", SHARD_NAME);
	shard_id(name, id);
	return text_set(&s->kv, key, n != 0 ? name : NULL, e);
}

int
shard_set_run(struct shard *s, const char *name, struct err *e)
{
	return shard_set_name(s, s->run, SHARD_KEY_RUN, name, e);
}

int
shard_set_device(struct shard *s, const char *name, struct err *e)
{
	return shard_set_name(s, s->device, SHARD_KEY_DEVICE, name, e);
}

int
shard_is_of(const struct shard *s, const unsigned char *run,
    const unsigned char *device)
{
	return memcmp(s->run, run, SHARD_ID) == 0 &&
	    memcmp(s->device, device, SHARD_ID) == 0;
}

int
shard_same(struct shard *s, const struct shard *from, struct err *e)
{
	int r = text_set(&s->kv, SHARD_KEY_RUN, text_get(&from->kv, SHARD_KEY_RUN), e);

	if (r == 0)
		r = text_set(&s->kv, SHARD_KEY_DEVICE,
		    text_get(&from->kv, SHARD_KEY_DEVICE), e);
	memcpy(s->run, from->run, SHARD_ID);
	memcpy(s->device, from->device, SHARD_ID);
	return r;
}

const char *
shard_run(const struct shard *s)
{
	const char *name = text_get(&s->kv, SHARD_KEY_RUN);

	return name != NULL ? name : "(none)";
}

int
shard_is_patch(const struct shard *s)
{
	const char *how = text_get(&s->kv, SHARD_KEY_PREDICT);

	return how != NULL && strcmp(how, SHARD_PREDICT_PATCH) == 0;
}

const char *
shard_device(const struct shard *s)
{
	const char *name = text_get(&s->kv, SHARD_KEY_DEVICE);

	return name != NULL ? name : "(none)";
}

uint64_t
shard_key_of(const unsigned char *p, size_t n)
{
	return hash_64(p, n < SHARD_KEY_BYTES ? n : SHARD_KEY_BYTES);
}

uint64_t
shard_key(const struct shard *s)
{
	unsigned char b[SHARD_KEY_BYTES];

	memcpy(b, s->run, 16);
	memcpy(b + 16, s->device, 16);
	bytes_set64(b + 32, s->step);
	return shard_key_of(b, sizeof(b));
}

/* Optional fields of 8 bytes follow the fixed part in the order of their bits in the word
 * at byte 76. A field whose value is zero is left out. */
enum {
	SHARD_VERSION = 1 << 0, SHARD_SAMPLES = 1 << 3, SHARD_INCARNATION = 1 << 7,
	SHARD_FIELDS = SHARD_VERSION | SHARD_SAMPLES | SHARD_INCARNATION,
	SHARD_MORE = 3 * 8
};

static uint32_t
shard_put_fields(const struct shard *s, unsigned char *p, size_t *n)
{
	const struct { uint32_t bit; uint64_t v; } field[] = {
		{ SHARD_VERSION, s->base_version }, { SHARD_SAMPLES, s->samples },
		{ SHARD_INCARNATION, s->incarnation }
	};
	uint32_t bits = 0;
	size_t i;

	*n = 0;
	for (i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
		if (field[i].v == 0)
			continue;
		bits |= field[i].bit;
		bytes_set64(p + *n, field[i].v);
		*n += 8;
	}
	return bits;
}

int
shard_encode(const struct shard *s, struct buf *out, struct err *e)
{
	unsigned char b[SHARD_FIXED + SHARD_MORE];
	size_t at = out->n, more;
	uint64_t w;
	int r;

	memset(b, 0, sizeof(b));
	memcpy(b, s->run, 16);
	memcpy(b + 16, s->device, 16);
	bytes_set64(b + 32, s->step);
	memcpy(b + 40, s->schema_id, 16);
	memcpy(&w, &s->weight, sizeof(w));
	bytes_set64(b + 56, w);
	bytes_set32(b + 64, s->kind);
	bytes_set32(b + 68, s->flags);
	bytes_set32(b + 72, s->contributors);
	bytes_set32(b + 76, shard_put_fields(s, b + SHARD_FIXED, &more));
	if ((r = buf_put(out, b, SHARD_FIXED + more, e)) < 0 ||
	    (r = text_encode(&s->kv, out, e)) < 0)
		return r;
	bytes_set32(out->p + at + 80, (uint32_t)(out->n - at - SHARD_FIXED - more));
	return 0;
}

/* Return 1 if the value of key, a name, has a valid length and id is its hash, or if key is absent
 * and id is zero or the hash of "". */
static int
shard_named(const struct shard *s, const unsigned char id[16], const char *key)
{
	static const unsigned char zero[SHARD_ID];
	const char *name = text_get(&s->kv, key);
	unsigned char want[16];

	if (name != NULL && strlen(name) > SHARD_NAME)
		return 0;
	shard_id(name != NULL ? name : "", want);
	return memcmp(id, want, SHARD_ID) == 0 ||
	    (name == NULL && memcmp(id, zero, SHARD_ID) == 0);
}

static void
shard_take16(struct bytes *b, unsigned char out[16])
{
	const unsigned char *p = bytes_take(b, 16);

	if (p != NULL)
		memcpy(out, p, 16);
}

/* Read an optional field of 1 to `most' if its bit is set; else return 0. A zero is not written,
 * so that each shard has exactly one encoding. */
static uint64_t
shard_take(struct bytes *b, uint32_t bit, uint64_t most)
{
	uint64_t v = 0;

	if (bit != 0 && ((v = bytes_next64(b)) == 0 || v > most))
		b->bad = 1;
	return v;
}

int
shard_decode(struct shard *s, const unsigned char *p, size_t n, struct err *e)
{
	struct bytes b = BYTES(p, n);
	uint32_t kv_len, bits;
	const char *bad;
	int r;

	shard_release(s);
	shard_take16(&b, s->run);
	shard_take16(&b, s->device);
	s->step = bytes_next64(&b);
	shard_take16(&b, s->schema_id);
	s->weight = bytes_f64(&b);
	s->kind = bytes_next32(&b);
	s->flags = bytes_next32(&b);
	s->contributors = bytes_next32(&b);
	bits = bytes_next32(&b);
	kv_len = bytes_next32(&b);
	if (!bytes_zero(&b, 4) || b.bad)
		return err_set(e, ERR_DATA, "corrupt: the fields of frame SHRD are damaged");
	if ((bits & ~(uint32_t)SHARD_FIELDS) != 0)
		return err_set(e, ERR_DATA, "unsupported: frame SHRD has unknown fields "
		    "%#lx: a newer release of ace may read it",
		    (unsigned long)(bits & ~(uint32_t)SHARD_FIELDS));
	s->base_version = shard_take(&b, bits & SHARD_VERSION, UINT64_MAX);
	s->samples = shard_take(&b, bits & SHARD_SAMPLES, UINT64_MAX);
	s->incarnation = (uint32_t)shard_take(&b, bits & SHARD_INCARNATION, UINT32_MAX);
	if (b.bad || n - b.at != kv_len)
		return err_set(e, ERR_DATA, "corrupt: the fields of frame SHRD are damaged");
	if (!isfinite(s->weight) || s->weight <= 0)
		return err_set(e, ERR_DATA, "corrupt: the shard's weight %g is not a "
		    "finite number above 0", s->weight);
	if (s->kind >= SHARD_NKIND)
		return err_set(e, ERR_DATA, "unsupported: shard kind %lu is unknown: a "
		    "newer release of ace may read it", (unsigned long)s->kind);
	if ((r = text_decode(&s->kv, p + b.at, kv_len, e)) < 0)
		return r;
	bad = !shard_named(s, s->run, SHARD_KEY_RUN) ? SHARD_KEY_RUN :
	    !shard_named(s, s->device, SHARD_KEY_DEVICE) ? SHARD_KEY_DEVICE : NULL;
	return bad == NULL ? 0 : err_set(e, ERR_DATA, "corrupt: the id of the %s does not match "
	    "its name, or the name has more than %d bytes", bad, SHARD_NAME);
}

void
shard_end_encode(const struct shard_end *s, unsigned char p[80])
{
	uint64_t u;

	memset(p, 0, SHARD_END_SIZE);
	bytes_set32(p, s->n_data);
	bytes_set32(p + 4, s->n_records);
	bytes_set64(p + 8, s->sums.nonzero);
	bytes_set64(p + 16, s->raw);
	bytes_set64(p + 24, s->wire);
	memcpy(p + 32, s->digest, 16);
	memcpy(&u, &s->sums.sum, 8);
	bytes_set64(p + 48, u);
	memcpy(&u, &s->sums.sumsq, 8);
	bytes_set64(p + 56, u);
	bytes_set32(p + 64, bytes_u32(s->sums.max_abs));
	bytes_set32(p + 68, s->status);
	bytes_set64(p + 72, s->sums.dropped);
}

int
shard_end_decode(struct shard_end *s, const unsigned char *p, size_t n, struct err *e)
{
	struct bytes b = BYTES(p, n);

	memset(s, 0, sizeof(*s));
	s->n_data = bytes_next32(&b);
	s->n_records = bytes_next32(&b);
	s->sums.nonzero = bytes_next64(&b);
	s->raw = bytes_next64(&b);
	s->wire = bytes_next64(&b);
	shard_take16(&b, s->digest);
	s->sums.sum = bytes_f64(&b);
	s->sums.sumsq = bytes_f64(&b);
	s->sums.max_abs = bytes_f32(bytes_next32(&b));
	s->status = bytes_next32(&b);
	s->sums.dropped = bytes_next64(&b);
	if (b.bad || b.at != n || s->status > SHARD_ABORTED)
		return err_set(e, ERR_DATA, "corrupt: the fields of frame SEND are damaged");
	return 0;
}

void
shard_hex(const unsigned char digest[16], char out[33])
{
	int i;

	for (i = 0; i < 16; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

void
shard_sums_put(struct shard_sums *s, const struct kern_stat *t)
{
	s->nonzero += t->nonzero;
	s->sum += t->sum;
	s->sumsq += t->sumsq;
	if (t->max_abs > s->max_abs)
		s->max_abs = t->max_abs;
}
