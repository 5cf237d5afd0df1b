#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/num.h"
#include "base/temp.h"
#include "files/dtype.h"
#include "files/format.h"
#include "files/zst.h"
#include "model/delta.h"
#include "pipe/scratch.h"

#define DELTA_FILE "model-00000-of-00001.safetensors"
#define DELTA_SCRATCH "the changes of a model"

enum {
	DELTA_PIECE = 1 << 20,
	DELTA_SUM = 33		/* size of a checksum as text with its 0 */
};

const char *const delta_codings[] = { "xor", "overwrite", NULL };

/* ---- checksums ---- */

struct delta_sum {
	int adler;
	struct hash_sum *x;
	uint32_t a, b;
};

static int
delta_sum_begin(struct delta_sum *s, int adler, struct err *e)
{
	s->adler = adler;
	s->a = 1;
	s->b = 0;
	if (s->x == NULL && (s->x = hash_sum_new(e)) == NULL)
		return -ERR_SYS;
	hash_sum_reset(s->x);
	return 0;
}

/* Adler-32 (RFC 1950): add so few bytes between two modulo operations that 32 bits cannot
 * overflow. */
static void
delta_sum_add(struct delta_sum *s, const unsigned char *p, size_t n)
{
	enum { PRIME = 65521, MOST = 5552 };
	size_t i, k;

	if (!s->adler) {
		hash_sum_add(s->x, p, n);
		return;
	}
	for (; n > 0; p += k, n -= k) {
		k = n < MOST ? n : MOST;
		for (i = 0; i < k; i++) {
			s->a += p[i];
			s->b += s->a;
		}
		s->a %= PRIME;
		s->b %= PRIME;
	}
}

/* Format the checksum as the Python writers do: XXH3-128 has its upper half first. */
static void
delta_sum_text(const struct delta_sum *s, char text[DELTA_SUM])
{
	unsigned char h[16];

	hash_sum_get(s->x, h);
	if (s->adler)
		(void)snprintf(text, DELTA_SUM, "%08lx",
		    (unsigned long)(s->b << 16 | s->a));
	else
		(void)snprintf(text, DELTA_SUM, "%016llx%016llx",
		    (unsigned long long)bytes_le64(h + 8),
		    (unsigned long long)bytes_le64(h));
}

/* ---- the metadata of a directory ---- */

struct about {
	struct delta_head *h;
	int version, base, sum;		/* 1: the value is valid; < 0: it is unsupported */
	char packed[32];		/* compression_format, or empty */
};

static int
about_coding(struct about *a, const char *value, struct err *e)
{
	a->h->is = 1;
	for (a->h->coding = 0; delta_codings[a->h->coding] != NULL; a->h->coding++)
		if (strcmp(value, delta_codings[a->h->coding]) == 0)
			return 0;
	return err_set(e, ERR_DATA, "unsupported: delta_encoding is '%.32s', "
	    "expected xor or overwrite", value);
}

static int
about_pair(void *arg, const char *key, const char *value, struct err *e)
{
	struct about *a = arg;

	if (strcmp(key, "delta_encoding") == 0)
		return about_coding(a, value, e);
	if (strcmp(key, "version") == 0)
		a->version = num_u64(&a->h->version, value, 0, UINT64_MAX, key,
		    e) == 0;
	else if (strcmp(key, "base_version") == 0)
		a->base = num_u64(&a->h->base, value, 0, UINT64_MAX, key, e) == 0;
	else if (strcmp(key, "compression_format") == 0)
		(void)snprintf(a->packed, sizeof(a->packed), "%.31s", value);
	else if (strcmp(key, "checksum_format") == 0) {
		a->h->adler = strcmp(value, "adler32") == 0;
		a->sum = a->h->adler || strcmp(value, "xxh3-128") == 0 ? 1 :
		    strcmp(value, "blake3") == 0 ? -2 : -1;
	}
	err_clear(e);
	return 0;
}

/* Check the metadata of a directory of changes; that of a whole model is not checked. */
static int
about_right(const struct about *a, struct err *e)
{
	if (!a->h->is)
		return 0;
	if (!a->version || !a->base)
		return err_set(e, ERR_DATA, "corrupt: %s is absent or is not a whole "
		    "number", a->version ? "base_version" : "version");
	if (a->h->base >= a->h->version)
		return err_set(e, ERR_DATA, "corrupt: base_version %llu is not before "
		    "version %llu", (unsigned long long)a->h->base,
		    (unsigned long long)a->h->version);
	if (strcmp(a->packed, "zstd") != 0)
		return err_set(e, ERR_DATA, "unsupported: compression_format is %s, "
		    "expected zstd", a->packed[0] != '\0' ? a->packed : "absent");
	if (a->sum == -2)
		return err_set(e, ERR_DATA, "unsupported: checksum_format is blake3, "
		    "expected xxh3-128 or adler32");
	if (a->sum != 1)
		return err_set(e, ERR_DATA, "unsupported: checksum_format is absent or "
		    "neither xxh3-128 nor adler32");
	return 0;
}

int
delta_head(const char *path, struct delta_head *h, struct err *e)
{
	struct about a = { .h = h };
	char *index = alloc_path(path, MODEL_INDEX, e);
	int r = 0;

	*h = (struct delta_head){ 0 };
	if (index == NULL)
		return -ERR_SYS;
	if (access(index, F_OK) == 0 && (r = safetensors_index(index,
	    NULL, about_pair, &a, e)) == 0)
		r = about_right(&a, e);
	r = r < 0 ? err_file(e, r, index) : 0;
	alloc_free(index);
	return r;
}

/* ---- the model that a difference makes ---- */

struct make {
	const struct delta_head *h;
	const struct model *old;
	struct model d;			/* model whose files are the directory's frames */
	char (*sum)[DELTA_SUM];	/* checksum of each tensor of d */
	uint32_t file;			/* file of d whose checksums are being read */
	struct model *new;
	int fd;				/* the file of unpacked bytes */
	uint64_t at;			/* bytes written to fd */
	struct delta_sum is;
	/* the tensor being made: */
	struct model_span span;		/* its old bytes that come next */
	uint64_t all, done;		/* its bytes; those written to fd */
	struct scratch frame;		/* for overwrite: its unpacked frame */
	/* ZST_PIECE bytes each: of the tensor; positions and their values */
	unsigned char *p, *pos, *val;
};

static int
make_sum(void *arg, const char *key, const char *value, struct err *e)
{
	struct make *k = arg;
	ssize_t i = model_find(&k->d, key);

	if (i < 0 || k->d.place[i].file != k->file)
		return 0;
	if (k->sum[i][0] != '\0' || strlen(value) >= DELTA_SUM)
		return err_set(e, ERR_DATA, "corrupt: tensor '%.160s' has %s", key,
		    k->sum[i][0] != '\0' ? "two checksums" : "too long a checksum");
	memcpy(k->sum[i], value, strlen(value) + 1);
	return 0;
}

static int
make_sums(struct make *k, struct err *e)
{
	const struct format_opts o = { .group_size = SCHEMA_GROUP, .bits = 1,
	    .pair = make_sum, .arg = k };
	struct format_source *src;
	int r = 0;

	k->sum = alloc_get(k->d.schema.n, sizeof(*k->sum), e);
	if (k->sum == NULL)
		return -ERR_SYS;
	for (k->file = 0; k->file < k->d.nfiles && r == 0; k->file++)
		if ((r = format_open(&src, FORMAT_SAFETENSORS,
		    k->d.file[k->file].path, &o, e)) == 0)
			format_close(src);
	return r;
}

/* Read the next n old bytes of the tensor into k->p. */
static int
make_old(struct make *k, size_t n, struct err *e)
{
	k->span.bytes = n;
	return model_read(k->old, &k->span, k->p, e);
}

/* Write the changed bytes in k->p to the file of unpacked bytes. */
static int
make_put(struct make *k, struct err *e)
{
	const size_t n = k->span.bytes;

	delta_sum_add(&k->is, k->p, n);
	k->span.at += n;
	k->done += n;
	k->at += n;
	return fd_write_at(k->fd, (off_t)(k->at - n), k->p, n, DELTA_SCRATCH, e);
}

static int
make_length(const struct make *k, struct err *e)
{
	return err_set(e, ERR_DATA, k->h->coding == DELTA_XOR ? "corrupt: the unpacked "
	    "frame is not as long as its tensor" : "corrupt: the frame is not as long "
	    "as its positions and bytes");
}

/* Take the next n bytes of an xor frame. */
static int
make_xor(void *arg, const unsigned char *x, size_t n, struct err *e)
{
	struct make *k = arg;
	size_t i;
	int r;

	if (n > k->all - k->done)
		return make_length(k, e);
	if ((r = make_old(k, n, e)) < 0)
		return r;
	for (i = 0; i < n; i++)
		k->p[i] ^= x[i];
	return make_put(k, e);
}

/* Store the next n bytes of an overwrite frame. */
static int
make_frame(void *arg, const unsigned char *x, size_t n, struct err *e)
{
	struct make *k = arg;
	uint64_t at;

	/* a longer frame has more positions than the tensor has bytes */
	return k->frame.n + n > 4 + 5 * k->all ? make_length(k, e) :
	    scratch_put(&k->frame, x, n, &at, e);
}

/* The positions in an overwrite frame, and the bytes for them. */
struct marks {
	uint64_t n, i;		/* number of positions; of positions read so far */
	uint64_t at;		/* the current position; UINT64_MAX: after the last one */
	unsigned char val;	/* the byte for this position */
};

/* Read the next position, which must be at least `least', and its byte. */
static int
marks_next(struct make *k, struct marks *m, uint64_t least, struct err *e)
{
	enum { SOME = ZST_PIECE / 4 };	/* positions read together */
	const size_t n = m->n - m->i < SOME ? (size_t)(m->n - m->i) : SOME;
	const size_t i = m->i % SOME;
	int r;

	m->at = UINT64_MAX;
	if (n == 0)
		return 0;
	if (i == 0 && ((r = scratch_get(&k->frame, 4 + 4 * m->i, k->pos, 4 * n,
	    e)) < 0 || (r = scratch_get(&k->frame, 4 + 4 * m->n + m->i, k->val, n,
	    e)) < 0))
		return r;
	m->i++;
	m->at = bytes_le32(k->pos + 4 * i);
	m->val = k->val[i];
	return m->at >= least && m->at < k->all ? 0 : err_set(e, ERR_DATA,
	    "corrupt: position %llu %s", (unsigned long long)m->at,
	    m->at >= k->all ? "is beyond the tensor" : "is not after the one before");
}

/* Make the tensor of an overwrite frame. */
static int
make_marks(struct make *k, struct err *e)
{
	struct marks m = { 0, 0, 0, 0 };
	unsigned char b[4];
	size_t n;
	int r;

	if (k->frame.n < sizeof(b))
		return make_length(k, e);
	if ((r = scratch_get(&k->frame, 0, b, sizeof(b), e)) < 0)
		return r;
	m.n = bytes_le32(b);
	if (m.n > k->all)
		return err_set(e, ERR_DATA, "corrupt: the frame has %llu positions, but its "
		    "tensor %llu bytes", (unsigned long long)m.n, (unsigned long long)k->all);
	if (k->frame.n != 4 + 5 * m.n)
		return make_length(k, e);
	r = marks_next(k, &m, 0, e);
	while (r == 0 && k->done < k->all) {
		n = k->all - k->done < ZST_PIECE ? (size_t)(k->all - k->done) :
		    ZST_PIECE;
		r = make_old(k, n, e);
		while (r == 0 && m.at < k->done + n) {
			k->p[m.at - k->done] = m.val;
			r = marks_next(k, &m, m.at + 1, e);
		}
		if (r == 0)
			r = make_put(k, e);
	}
	return r;
}

/* Unpack tensor i of the directory, which is tensor t of the model. */
static int
make_bytes(struct make *k, size_t i, size_t t, struct err *e)
{
	const int xor = k->h->coding == DELTA_XOR;
	const struct model_place *f = &k->d.place[i];
	const struct model_file *file = &k->d.file[f->file];
	const struct schema_tensor *old = &k->old->schema.t[t];
	int r;

	k->span = (struct model_span){ .file = k->old->place[t].file,
	    .at = k->old->place[t].at };
	k->all = dtype_bytes(old->dtype, old->numel);
	k->done = 0;
	scratch_clear(&k->frame);
	r = zst_unpack(file->fd, f->at, k->d.schema.t[i].numel, file->path,
	    xor ? make_xor : make_frame, k, e);
	if (r == 0 && !xor)
		r = make_marks(k, e);
	return r == 0 && k->done < k->all ? make_length(k, e) : r;
}

static int
make_tensor(struct make *k, size_t i, struct err *e)
{
	const struct schema_tensor *c = &k->d.schema.t[i];
	const ssize_t t = model_find(k->old, c->name);
	const uint64_t begin = k->at;
	char is[DELTA_SUM];
	int r;

	if (t < 0)
		return err_set(e, ERR_DATA, "mismatch: the tensor is absent from "
		    "'%s'", k->old->path);
	if (c->dtype != SCHEMA_U8)
		return err_set(e, ERR_DATA, "corrupt: the frame has dtype %s, "
		    "expected bytes (U8)", schema_dtype_name(c->dtype));
	if (k->sum[i][0] == '\0')
		return err_set(e, ERR_DATA, "corrupt: the tensor has no checksum");
	if ((r = delta_sum_begin(&k->is, k->h->adler, e)) < 0 ||
	    (r = make_bytes(k, i, (size_t)t, e)) < 0)
		return r;
	delta_sum_text(&k->is, is);
	if (strcmp(is, k->sum[i]) != 0)
		return err_set(e, ERR_DATA, "corrupt: the result's checksum is %s, "
		    "expected %s: the file is damaged, or is for another model than "
		    "'%s'", is, k->sum[i], k->old->path);
	k->new->place[t].file = (uint32_t)k->old->nfiles;
	k->new->place[t].at = begin;
	return 0;
}

/* List the old model's files, then the file of unpacked bytes. */
static int
make_files(struct make *k, const char *path, struct err *e)
{
	const size_t n = k->old->nfiles;
	struct model *m = k->new;
	size_t i;

	if ((m->file = alloc_get(n + 1, sizeof(*m->file), e)) == NULL) {
		(void)close(k->fd);
		return -ERR_SYS;
	}
	for (i = 0; i < n; i++) {
		m->file[i] = k->old->file[i];
		m->file[i].lent = 1;
	}
	m->file[n] = (struct model_file){ .made = 1, .fd = k->fd,
	    .path = alloc_dup(path, e) };
	m->nfiles = n + 1;
	return m->file[n].path != NULL ? 0 : -ERR_SYS;
}

static int
make_model(struct make *k, const char *path, struct err *e)
{
	const size_t n = k->old->schema.n;
	struct model *m = k->new;
	int r;

	m->path = path;
	m->dir = k->old->dir;
	if ((r = temp_open(&k->fd, e)) < 0 || (r = make_files(k, path, e)) < 0 ||
	    (r = schema_copy(&m->schema, &k->old->schema, e)) < 0)
		return r;
	if ((m->place = alloc_get(n, sizeof(*m->place), e)) == NULL)
		return -ERR_SYS;
	if (n > 0)
		memcpy(m->place, k->old->place, n * sizeof(*m->place));
	if ((k->p = alloc_raw(3, ZST_PIECE, e)) == NULL)
		return -ERR_SYS;
	k->pos = k->p + ZST_PIECE;
	k->val = k->pos + ZST_PIECE;
	return 0;
}

int
delta_open(struct model *m, const struct model *old, const char *path,
    const struct delta_head *h, struct err *e)
{
	struct make k = { .h = h, .old = old, .d = MODEL_INIT, .new = m, .fd = -1,
	    .frame = SCRATCH_INIT(DELTA_PIECE) };
	size_t i;
	int r;

	if ((r = model_open(&k.d, path, e)) == 0 && (r = make_sums(&k, e)) == 0)
		r = make_model(&k, path, e);
	for (i = 0; i < k.d.schema.n && r == 0; i++)
		if ((r = make_tensor(&k, i, e)) < 0)
			(void)err_after(e, r, ", tensor '%.160s' of '%s'",
			    k.d.schema.t[i].name, path);
	if (r == 0)
		r = model_same(&k.d, e);
	alloc_free(k.p);
	alloc_free(k.sum);
	scratch_release(&k.frame);
	hash_sum_free(k.is.x);
	model_close(&k.d);
	if (r < 0)
		model_close(m);
	return r;
}

/* ---- writing ---- */

struct delta {
	const struct model *m;
	int fd;
	uint64_t at;		/* end of the last frame in fd */
	struct zst_out *z;
	struct delta_sum is;
	struct schema frames;	/* tensors that changed */
	char (*sum)[DELTA_SUM];	/* [frames.n] checksums of the new bytes */
	size_t cap;
	/* the tensor being written */
	uint64_t done, all;	/* bytes written so far; bytes in all */
	int changed;
	unsigned char *p;	/* DELTA_PIECE bytes */
};

int
delta_create(struct delta **out, const struct model *m, int fd, struct err *e)
{
	struct delta *d = alloc_get(1, sizeof(*d), e);
	int r;

	*out = NULL;
	if (d == NULL) {
		(void)close(fd);
		return -ERR_SYS;
	}
	d->m = m;
	d->fd = fd;
	d->frames = (struct schema)SCHEMA_INIT;
	r = zst_create(&d->z, fd, DELTA_SCRATCH, e);
	if (r == 0 && (d->p = alloc_raw(DELTA_PIECE, 1, e)) == NULL)
		r = -ERR_SYS;
	if (r < 0)
		delta_free(d);
	else
		*out = d;
	return r;
}

static int
delta_begin(struct delta *d, const struct model_span *s, struct err *e)
{
	const struct schema_tensor *t = &d->m->schema.t[s->tensor];
	int r;

	d->done = 0;
	d->changed = 0;
	d->all = dtype_bytes(t->dtype, t->numel);
	if ((r = delta_sum_begin(&d->is, 0, e)) < 0)
		return r;
	return zst_begin(d->z, d->at, d->all, e);
}

static int
delta_xor(struct delta *d, const unsigned char *old, const unsigned char *new,
    size_t all, struct err *e)
{
	size_t i, n, k;
	int r = 0;

	for (i = 0; i < all && r == 0; i += n) {
		n = all - i < DELTA_PIECE ? all - i : DELTA_PIECE;
		for (k = 0; k < n; k++)
			d->p[k] = old[i + k] ^ new[i + k];
		r = zst_write(d->z, d->p, n, e);
	}
	return r;
}

/* End a tensor. If it did not change, the next tensor overwrites its frame. */
static int
delta_tensor(struct delta *d, const struct model_span *s, struct err *e)
{
	struct schema_tensor t = { .dtype = SCHEMA_U8, .ndim = 1 };
	uint64_t end;
	int r;

	if (!d->changed)
		return 0;
	if ((r = zst_finish(d->z, &end, e)) < 0 ||
	    (r = alloc_grow(&d->sum, &d->cap, d->frames.n + 1, sizeof(*d->sum),
	    e)) < 0)
		return r;
	delta_sum_text(&d->is, d->sum[d->frames.n]);
	t.name = d->m->schema.t[s->tensor].name;
	t.dim[0] = end - d->at;
	d->at = end;
	return schema_add(&d->frames, &t, e);
}

int
delta_group(struct delta *d, const struct model_span *s,
    const unsigned char *old, const unsigned char *new, struct err *e)
{
	int r = d->done == d->all ? delta_begin(d, s, e) : 0;

	if (r < 0)
		return r;
	delta_sum_add(&d->is, new, s->bytes);
	if ((r = delta_xor(d, old, new, s->bytes, e)) < 0)
		return r;
	d->changed |= memcmp(old, new, s->bytes) != 0;
	d->done += s->bytes;
	return d->done == d->all ? delta_tensor(d, s, e) : 0;
}

/* Write "NAME":"TEXT" for each tensor: TEXT is `file' or, if NULL, the checksum. */
static int
place_pairs(const struct delta *d, const char *file, struct buf *b, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < d->frames.n && r == 0; i++)
		if ((r = buf_puts(b, i > 0 ? "," : "", e)) == 0 &&
		    (r = safetensors_quote(b, d->frames.t[i].name, e)) == 0 &&
		    (r = buf_puts(b, ":", e)) == 0)
			r = safetensors_quote(b, file != NULL ? file : d->sum[i],
			    e);
	return r;
}

/* Write the header of the file, metadata first. */
static int
place_head(const struct delta *d, struct buf *b, struct err *e)
{
	uint64_t at = 0;
	size_t i;
	int r;

	if ((r = buf_puts(b, "        {\"__metadata__\":{", e)) < 0 ||
	    (r = place_pairs(d, NULL, b, e)) < 0)
		return r;
	for (i = 0; i < d->frames.n && r == 0; i++)
		if ((r = buf_puts(b, i > 0 ? "," : "},", e)) == 0)
			r = safetensors_put_tensor(b, &d->frames.t[i], SCHEMA_U8,
			    &at, e);
	if (r == 0 && (r = buf_puts(b, "}", e)) == 0)
		r = buf_puts(b, &"        "[b->n % 8 != 0 ? b->n % 8 : 8], e);
	if (r == 0)
		bytes_set64(b->p, b->n - 8);
	return r;
}

static int
place_index(const struct delta *d, uint64_t version, uint64_t base, struct buf *b,
    struct err *e)
{
	char text[256];
	int r;

	(void)snprintf(text, sizeof(text), "{\"metadata\":{\"version\":\"%06llu\","
	    "\"base_version\":\"%06llu\",\"delta_encoding\":\"xor\","
	    "\"compression_format\":\"zstd\",\"checksum_format\":\"xxh3-128\"},"
	    "\"weight_map\":{", (unsigned long long)version,
	    (unsigned long long)base);
	return (r = buf_puts(b, text, e)) < 0 ||
	    (r = place_pairs(d, DELTA_FILE, b, e)) < 0 ? r : buf_puts(b, "}}\n", e);
}

/* Write a file that has the text in b and then bytes of the frames. Empty b. */
static int
place_file(struct delta *d, const char *dir, const char *name, struct buf *b,
    uint64_t frames, struct err *e)
{
	char *path = alloc_path(dir, name, e);
	struct io *io = NULL;
	uint64_t at;
	size_t n;
	int r = path != NULL ? io_create(&io, path, 1, e) : -ERR_SYS;

	if (r == 0)
		r = io_write(io, b->p, b->n, e);
	for (at = 0; at < frames && r == 0; at += n) {
		n = frames - at < DELTA_PIECE ? (size_t)(frames - at) : DELTA_PIECE;
		if ((r = fd_read_all(d->fd, (off_t)at, d->p, n, DELTA_SCRATCH,
		    e)) == 0)
			r = io_write(io, d->p, n, e);
	}
	if (r == 0)
		r = io_commit(io, IO_SYNC_FULL, e);
	b->n = 0;
	io_free(io);
	alloc_free(path);
	return r;
}

int
delta_place(struct delta *d, const char *dir, uint64_t version, uint64_t base,
    struct err *e)
{
	struct buf b = BUF_INIT;
	struct delta_head is;
	char *index, *single;
	int r, made;

	if (!(made = mkdir(dir, 0777) == 0) && errno != EEXIST)
		return err_sys(e, "'%s'", dir);
	if ((r = delta_head(dir, &is, e)) < 0)
		return r;
	index = alloc_path(dir, MODEL_INDEX, e);
	single = index != NULL ? alloc_path(dir, MODEL_SINGLE, e) : NULL;
	if (single == NULL)
		r = -ERR_SYS;
	else if (access(single, F_OK) == 0 || (access(index, F_OK) == 0 &&
	    (!is.is || is.version != version)))
		r = err_set(e, ERR_REFUSED, "'%s' holds another version or a whole "
		    "model: give a new directory", dir);
	alloc_free(index);
	alloc_free(single);
	if (r == 0 && d->frames.n > 0 && (r = schema_finish(&d->frames, e)) == 0 &&
	    (r = place_head(d, &b, e)) == 0)
		r = place_file(d, dir, DELTA_FILE, &b, d->at, e);
	if (r == 0 && (r = place_index(d, version, base, &b, e)) == 0)
		r = place_file(d, dir, MODEL_INDEX, &b, 0, e);
	buf_release(&b);
	return r == 0 && made ? io_sync_path(dir, e) : r;
}

void
delta_free(struct delta *d)
{
	if (d == NULL)
		return;
	zst_free(d->z);
	hash_sum_free(d->is.x);
	schema_release(&d->frames);
	alloc_free(d->sum);
	alloc_free(d->p);
	(void)close(d->fd);
	alloc_free(d);
}
