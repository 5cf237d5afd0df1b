#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/at.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/io.h"
#include "format/shard.h"
#include "model/journal.h"

enum {
	JOURNAL_TEXT = 512,	/* limit on the bytes of marker and ready */
	JOURNAL_BLOCK = 128,	/* bytes: 64 pairs, with one bit each in redo */
	JOURNAL_BITS = 10,	/* bytes before the pairs of a block */
	JOURNAL_HEAD = 24 + MODEL_HASH	/* bytes of the head of a group */
};
#define JOURNAL_MAGIC UINT64_C(0x0135304f44455250)	/* "PREDO05" and a byte 1 */
#define JOURNAL_LAST UINT32_MAX			/* as a file's number: the journal ends here */

/* ---- marker and ready ---- */

int
journal_mark_read(const char *path, struct journal_mark *mark, struct err *e)
{
	char text[JOURNAL_TEXT + 1], hex[MODEL_HEX];
	const int r = io_text(path, text, sizeof(text), e);
	size_t i;

	if (r > 0 && (sscanf(text, "hash %32[0-9a-f]\nstep %" SCNu64
	    "\nstamp %" SCNx64 "\nwas %" SCNx64 "\ninode %" SCNu64
	    "\nnext %" SCNx64 "\n", hex, &mark->step, &mark->stamp, &mark->was,
	    &mark->inode, &mark->next) != 6 || strlen(hex) != MODEL_HEX - 1))
		return err_set(e, ERR_DATA, "corrupt: damaged marker file '%s': remove it", path);
	for (i = 0; r > 0 && i < MODEL_HASH; i++)
		(void)sscanf(hex + 2 * i, "%2hhx", &mark->hash[i]);
	return r;
}

int
journal_mark_write(const char *path, const struct journal_mark *mark,
    struct err *e)
{
	char text[JOURNAL_TEXT], hex[MODEL_HEX];

	shard_hex(mark->hash, hex);
	(void)snprintf(text, sizeof(text), "hash %s\nstep %" PRIu64 "\nstamp %"
	    PRIx64 "\nwas %" PRIx64 "\ninode %" PRIu64 "\nnext %" PRIx64
	    "\n", hex, mark->step, mark->stamp, mark->was, mark->inode, mark->next);
	return io_set_text(path, text, IO_SYNC_FULL, e);
}

/* ---- redo ---- */

static int
journal_file(struct journal *j, size_t i, struct err *e)
{
	const char *path = j->m->file[i].path;

	if (j->fd[i] < 0)
		j->fd[i] = openat(AT(path), O_RDWR | O_CLOEXEC);
	return j->fd[i] >= 0 ? 0 : err_sys(e, "'%s'", path);
}

int
journal_begin(struct journal *j, const char *path, const unsigned char *touched,
    struct err *e)
{
	size_t i;
	int r = io_create(&j->io, path, 1, e);

	for (i = 0; i < j->m->nfiles && r == 0; i++)
		if (touched[i])
			r = journal_file(j, i, e);
	return r;
}

/* Return a bit for each pair of bytes of a block: 1 where it changes. */
static inline uint64_t
journal_pairs(const unsigned char *old, const unsigned char *new)
{
	uint64_t pairs = 0;
	unsigned i;

	for (i = 0; i < JOURNAL_BLOCK / 2; i++)
		pairs |= (uint64_t)(bytes_le16(old + 2 * i) != bytes_le16(new + 2 * i)) << i;
	return pairs;
}

int
journal_group(struct journal *j, const struct model_span *span,
    const unsigned char *old, const unsigned char *new,
    const unsigned char after[MODEL_HASH], struct err *e)
{
	const size_t bytes = old == new ? 0 : span->bytes;
	const size_t blocks = (bytes + JOURNAL_BLOCK - 1) / JOURNAL_BLOCK;
	unsigned char was[JOURNAL_BLOCK] = { 0 }, is[JOURNAL_BLOCK] = { 0 };
	unsigned char head[JOURNAL_HEAD], *p;
	uint64_t pairs;
	size_t i;
	int r;

	j->set.n = 0;
	if ((r = buf_room(&j->set, blocks * (JOURNAL_BITS + JOURNAL_BLOCK), e)) < 0)
		return r;
	for (p = j->set.p, i = 0; i < blocks; i++) {
		if (bytes - i * JOURNAL_BLOCK < JOURNAL_BLOCK) {
			old = memcpy(was, old, bytes % JOURNAL_BLOCK);
			new = memcpy(is, new, bytes % JOURNAL_BLOCK);
		}
		if ((pairs = journal_pairs(old, new)) != 0) {
			bytes_set16(p, (uint16_t)i);
			bytes_set64(p + 2, pairs);
			p += JOURNAL_BITS;
		}
		for (; pairs != 0; pairs &= pairs - 1, p += 2)
			memcpy(p, new + 2 * __builtin_ctzll(pairs), 2);
		old += JOURNAL_BLOCK;
		new += JOURNAL_BLOCK;
	}
	j->set.n = (size_t)(p - j->set.p);
	bytes_set32(head, span->file);
	bytes_set32(head + 4, (uint32_t)j->set.n);
	bytes_set64(head + 8, span->at);
	bytes_set64(head + 16, span->bytes);
	memcpy(head + 24, after, MODEL_HASH);
	return (r = io_write(j->io, head, sizeof(head), e)) < 0 || j->set.n == 0 ? r :
	    io_write(j->io, j->set.p, j->set.n, e);
}

int
journal_end(struct journal *j, const struct journal_mark *makes, struct err *e)
{
	unsigned char last[JOURNAL_HEAD] = { 0 };
	int r;

	bytes_set32(last, JOURNAL_LAST);
	bytes_set64(last + 8, makes->step);
	memcpy(last + 16, makes->hash, MODEL_HASH);
	bytes_set64(last + 32, JOURNAL_MAGIC);
	if ((r = io_write(j->io, last, sizeof(last), e)) == 0)
		r = io_commit(j->io, IO_SYNC_FULL, e);
	journal_drop(j);
	return r;
}

void
journal_drop(struct journal *j)
{
	io_free(j->io);
	j->io = NULL;
	buf_release(&j->set);
}

static int
journal_strange(const struct io *f, const struct model *m, struct err *e)
{
	return err_set(e, ERR_REFUSED, "journal '%s' does not fit '%s': one of them was changed "
	    "after a patch was interrupted: put the former model back, or remove the journal and "
	    "copy the whole model again", io_name(f), m->path);
}

static int
journal_corrupt(const struct io *f, struct err *e)
{
	return err_set(e, ERR_DATA, "corrupt: journal '%s' is damaged: remove it, and "
	    "copy the whole model again", io_name(f));
}

static int
journal_get(struct io *f, void *p, size_t n, struct err *e)
{
	size_t got;
	const int r = io_read(f, p, n, &got, e);

	return r < 0 || got == n ? r : journal_corrupt(f, e);
}

/* Apply the changes set[len] to the n bytes at p, which has room for whole blocks.
 * Return 1, or 0 if the changes are corrupt. */
static int
journal_set(const unsigned char *set, size_t len, unsigned char *p, uint64_t n)
{
	const unsigned char *const end = set + len;
	uint64_t pairs;
	size_t at;

	while ((size_t)(end - set) >= JOURNAL_BITS) {
		at = (size_t)bytes_le16(set) * JOURNAL_BLOCK;
		pairs = bytes_le64(set + 2);
		set += JOURNAL_BITS;
		if (at >= n)
			return 0;
		for (; pairs != 0 && end - set >= 2; pairs &= pairs - 1, set += 2)
			memcpy(p + at + 2 * __builtin_ctzll(pairs), set, 2);
		if (pairs != 0)
			return 0;
	}
	return set == end;
}

/* Read the next group of the journal and apply its changes in memory; with write 1 write the
 * result.  If the result has another hash than the journal states, refuse it.  At the end of
 * the journal set *makes and return 1. */
static int
journal_next(struct journal *j, struct io *f, unsigned char *p, int write,
    struct journal_mark *makes, struct err *e)
{
	const struct model *m = j->m;
	unsigned char head[JOURNAL_HEAD], is[MODEL_HASH];
	uint64_t at, n;
	size_t len;
	uint32_t i;
	int fd, r;

	if ((r = journal_get(f, head, JOURNAL_HEAD, e)) < 0)
		return r;
	i = bytes_le32(head);
	len = bytes_le32(head + 4);
	at = bytes_le64(head + 8);
	n = bytes_le64(head + 16);
	if (i == JOURNAL_LAST) {
		*makes = (struct journal_mark){ .step = at };
		memcpy(makes->hash, head + 16, MODEL_HASH);
		return bytes_le64(head + 32) == JOURNAL_MAGIC ? 1 : journal_corrupt(f, e);
	}
	if (i >= m->nfiles || n > (uint64_t)MODEL_GROUP * 8 ||
	    at > m->file[i].size || n > m->file[i].size - at)
		return journal_strange(f, m, e);
	if (len > (n / JOURNAL_BLOCK + 1) * (JOURNAL_BITS + JOURNAL_BLOCK))
		return journal_corrupt(f, e);
	/* nothing to write; a killed process's redo was compared in a pass without `write' */
	if (write && (len == 0 || (r = journal_file(j, i, e)) < 0))
		return r;
	fd = write ? j->fd[i] : m->file[i].fd;
	j->set.n = 0;
	if ((r = fd_read_all(fd, (off_t)at, p, n, m->file[i].path, e)) < 0 ||
	    (r = buf_room(&j->set, len, e)) < 0 ||
	    (r = journal_get(f, j->set.p, len, e)) < 0)
		return r;
	if (!journal_set(j->set.p, len, p, n))
		return journal_corrupt(f, e);
	hash_128(p, (size_t)n, is);
	if (memcmp(is, head + 24, MODEL_HASH) != 0)
		return journal_strange(f, m, e);
	return write ? fd_write_at(fd, (off_t)at, p, n, m->file[i].path, e) : 0;
}

int
journal_apply(struct journal *j, struct io *f, int write,
    struct journal_mark *makes, struct err *e)
{
	const struct model *m = j->m;
	unsigned char *p = alloc_raw((size_t)MODEL_GROUP * 8, 1, e);
	size_t i;
	int r = p != NULL ? 0 : -ERR_SYS;

	while (r == 0)
		r = journal_next(j, f, p, write, makes, e);
	alloc_free(p);
	for (i = 0; r > 0 && write && i < m->nfiles; i++)
		if (j->fd[i] >= 0 && fsync(j->fd[i]) < 0)
			r = err_sys(e, "'%s'", m->file[i].path);
	return r < 0 ? r : io_seek(f, 0, e);
}
