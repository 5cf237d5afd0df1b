#include <zstd.h>
#include <zstd_errors.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/fd.h"
#include "files/zst.h"

enum {
	ZST_LEVEL = 1,		/* the level that the other programs use */
	ZST_HEAD = 18		/* limit on the bytes of a frame's header */
};
#define ZST_MAGIC 0xfd2fb528u

struct zst_in {
	ZSTD_DCtx *d;
	int fd;
	const char *name;
	uint64_t at, left;	/* position and length of the input not read yet */
	ZSTD_inBuffer in;
	int done;		/* 1: the frame has ended */
	unsigned char packed[ZST_PIECE], p[ZST_PIECE];
};

struct zst_out {
	ZSTD_CCtx *c;
	int fd;
	const char *name;
	uint64_t at;
	unsigned char p[ZST_PIECE];
};

/* ---- reading ---- */

/* Read more of the file when all input is used. */
static int
zst_fill(struct zst_in *z, struct err *e)
{
	size_t n = z->left < ZST_PIECE ? (size_t)z->left : ZST_PIECE;
	int r;

	if (z->in.pos < z->in.size || n == 0)
		return 0;
	if ((r = fd_read_all(z->fd, (off_t)z->at, z->packed, n, z->name, e)) < 0)
		return r;
	z->at += n;
	z->left -= n;
	z->in = (ZSTD_inBuffer){ z->packed, n, 0 };
	return 0;
}

static int
zst_wide(struct err *e)
{
	return err_set(e, ERR_DATA, "limit: the zstd frame has a window larger than "
	    "%d MiB", 1 << (ZST_WINDOW - 20));
}

static int
zst_truncated(struct err *e)
{
	return err_set(e, ERR_DATA, "truncated: the zstd frame is incomplete");
}

/* Return the window of a frame of `says' bytes (RFC 8878, 3.1.1.1.2). The library
 * checks it only if a frame exceeds its buffers. */
static uint64_t
zst_window(const unsigned char *head, uint64_t says)
{
	const uint64_t base = 1ull << (10 + (head[5] >> 3));

	return (head[4] & 0x20) != 0 ? says : base + base / 8 * (head[5] & 7);
}

/* Read the first bytes of the input and check the frame's header. */
static int
zst_head(struct zst_in *z, struct err *e)
{
	uint64_t says;
	int r = zst_fill(z, e);

	if (r < 0)
		return r;
	/* skippable frames have another magic number */
	if (z->in.size < 4 || bytes_le32(z->packed) != ZST_MAGIC)
		return err_set(e, ERR_DATA, "corrupt: the data is not a zstd frame");
	says = ZSTD_getFrameContentSize(z->packed, z->in.size);
	if (says == ZSTD_CONTENTSIZE_ERROR)
		return z->in.size < ZST_HEAD ? zst_truncated(e) : err_set(e,
		    ERR_DATA, "corrupt: the head of the zstd frame is not valid");
	return zst_window(z->packed, says) > 1ull << ZST_WINDOW ? zst_wide(e) : 0;
}

static int
zst_bad(size_t code, struct err *e)
{
	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_memory_allocation:
		return err_set(e, ERR_SYS, "out of memory");
	case ZSTD_error_frameParameter_windowTooLarge:
		return zst_wide(e);
	default:
		return err_set(e, ERR_DATA, "corrupt: zstd frame: %s",
		    ZSTD_getErrorName(code));
	}
}

/* Unpack the next *n bytes to z->p, as many as fit or until the frame ends. */
static int
zst_some(struct zst_in *z, size_t *n, struct err *e)
{
	ZSTD_outBuffer out = { z->p, sizeof(z->p), 0 };
	size_t k, in, was;
	int r;

	while (out.pos < out.size && !z->done) {
		if ((r = zst_fill(z, e)) < 0)
			return r;
		in = z->in.pos;
		was = out.pos;
		k = ZSTD_decompressStream(z->d, &out, &z->in);
		if (ZSTD_isError(k))
			return zst_bad(k, e);
		z->done = k == 0;
		if (!z->done && out.pos == was && z->in.pos == in && z->left == 0)
			return zst_truncated(e);
	}
	*n = out.pos;
	return 0;
}

int
zst_unpack(int fd, uint64_t at, uint64_t n, const char *name, zst_put_fn *put,
    void *arg, struct err *e)
{
	struct zst_in *z = alloc_get(1, sizeof(*z), e);
	size_t k = 0;
	int r = 0;

	if (z == NULL)
		return -ERR_SYS;
	z->fd = fd;
	z->at = at;
	z->left = n;
	z->name = name;
	if ((z->d = ZSTD_createDCtx()) == NULL || ZSTD_isError(
	    ZSTD_DCtx_setParameter(z->d, ZSTD_d_windowLogMax, ZST_WINDOW)))
		r = err_set(e, ERR_SYS, "out of memory");
	if (r == 0)
		r = zst_head(z, e);
	while (r == 0 && !z->done)
		if ((r = zst_some(z, &k, e)) == 0)
			r = put(arg, z->p, k, e);
	if (r == 0 && (z->in.pos < z->in.size || z->left > 0))
		r = err_set(e, ERR_DATA, "corrupt: bytes follow the zstd frame");
	(void)ZSTD_freeDCtx(z->d);
	alloc_free(z);
	return r;
}

/* ---- writing ---- */

int
zst_create(struct zst_out **out, int fd, const char *name, struct err *e)
{
	struct zst_out *z = alloc_get(1, sizeof(*z), e);

	*out = NULL;
	if (z == NULL)
		return -ERR_SYS;
	z->fd = fd;
	z->name = name;
	if ((z->c = ZSTD_createCCtx()) == NULL) {
		alloc_free(z);
		return err_set(e, ERR_SYS, "out of memory");
	}
	*out = z;
	return 0;
}

int
zst_begin(struct zst_out *z, uint64_t at, uint64_t size, struct err *e)
{
	z->at = at;
	if (ZSTD_isError(ZSTD_CCtx_reset(z->c, ZSTD_reset_session_only)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(z->c, ZSTD_c_compressionLevel,
	    ZST_LEVEL)) || ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(z->c, size)))
		return err_set(e, ERR_SYS, "zstd cannot be set up");
	return 0;
}

static int
zst_put(struct zst_out *z, const void *p, size_t n, ZSTD_EndDirective how,
    struct err *e)
{
	ZSTD_inBuffer in = { p, n, 0 };
	ZSTD_outBuffer out;
	size_t left;
	int r;

	do {
		out = (ZSTD_outBuffer){ z->p, sizeof(z->p), 0 };
		left = ZSTD_compressStream2(z->c, &out, &in, how);
		if (ZSTD_isError(left))
			return err_set(e, ERR_SYS, "zstd: %s",
			    ZSTD_getErrorName(left));
		if ((r = fd_write_at(z->fd, (off_t)z->at, z->p, out.pos, z->name,
		    e)) < 0)
			return r;
		z->at += out.pos;
	} while (how == ZSTD_e_end ? left > 0 : in.pos < in.size);
	return 0;
}

int
zst_write(struct zst_out *z, const void *p, size_t n, struct err *e)
{
	return zst_put(z, p, n, ZSTD_e_continue, e);
}

int
zst_finish(struct zst_out *z, uint64_t *end, struct err *e)
{
	int r = zst_put(z, NULL, 0, ZSTD_e_end, e);

	*end = z->at;
	return r;
}

void
zst_free(struct zst_out *z)
{
	if (z == NULL)
		return;
	(void)ZSTD_freeCCtx(z->c);
	alloc_free(z);
}
