#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arc.h"
#include "base/at.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "codec/exact.h"
#include "files/dtype.h"
#include "files/format.h"
#include "model/model.h"

#define MODEL_INDEX "model.safetensors.index.json"
#define MODEL_SINGLE "model.safetensors"

static const uint8_t forms[SCHEMA_NDTYPE] = {
	[SCHEMA_F32] = EXACT_F32, [SCHEMA_F16] = EXACT_F16,
	[SCHEMA_BF16] = EXACT_BF16, [SCHEMA_F64] = EXACT_F64,
	[SCHEMA_I32] = EXACT_INT32, [SCHEMA_I64] = EXACT_INT64,
	[SCHEMA_U8] = EXACT_INT8, [SCHEMA_BOOL] = EXACT_INT8,
	[SCHEMA_F8E4M3] = EXACT_F8E4M3, [SCHEMA_F8E5M2] = EXACT_F8E5M2,
	[SCHEMA_I8] = EXACT_INT8, [SCHEMA_I16] = EXACT_INT16,
	[SCHEMA_F8E8M0] = EXACT_INT8, [SCHEMA_F4] = EXACT_INT8,
	[SCHEMA_U16] = EXACT_INT16, [SCHEMA_U32] = EXACT_INT32,
	[SCHEMA_U64] = EXACT_INT64
};

/* ---- the files ---- */

/* Insert a file before file i, and take ownership of path, also after an error.  path NULL:
 * there was no memory for it. */
static int
file_add(struct model *m, size_t i, const char *name, char *path, struct err *e)
{
	size_t cap = m->nfiles;
	char *own = path != NULL ? alloc_dup(name, e) : NULL;
	int r = own != NULL ? 0 : -ERR_SYS;

	if (r == 0 && m->nfiles == MODEL_FILES)
		r = err_set(e, ERR_DATA, "limit: '%s' has more than %d files",
		    m->path, MODEL_FILES);
	if (r == 0)
		r = alloc_grow(&m->file, &cap, m->nfiles + 1, sizeof(*m->file), e);
	if (r < 0) {
		alloc_free(own);
		alloc_free(path);
		return r;
	}
	memmove(&m->file[i + 1], &m->file[i], (m->nfiles++ - i) * sizeof(*m->file));
	m->file[i] = (struct model_file){ .name = own, .path = path, .fd = -1 };
	return 0;
}

/* Return the hash of a pair, for a sum that does not depend on the order of the pairs. */
static uint64_t
pair_hash(const char *key, const char *value)
{
	return hash_64(key, strlen(key)) * (hash_64(value, strlen(value)) | 1);
}

/* Add a tensor of the index, and its file if it is new. */
static int
index_add(void *arg, const char *tensor, const char *file, struct err *e)
{
	struct model *m = arg;
	size_t i = 0, end = m->nfiles, half;

	if (strchr(file, '/') != NULL || arc_leaves(file) || file[0] == '\0')
		return err_set(e, ERR_DATA, "corrupt: '%s' names file '%.80s', which "
		    "is not a plain name in the same directory", m->index.path, file);
	m->indexed += pair_hash(tensor, file);
	while (i < end) {
		half = (i + end) / 2;
		if (strcmp(m->file[half].name, file) < 0)
			i = half + 1;
		else
			end = half;
	}
	return i < m->nfiles && strcmp(m->file[i].name, file) == 0 ? 0 :
	    file_add(m, i, file, alloc_path(m->path, file, e), e);
}

int
model_stat(int dir, const char *name, int flags, struct stat *st)
{
	int r;

	while ((r = fstatat(dir, name, st, flags)) == 0 &&
	    clock_settle(st->st_ctim))
		;
	return r;
}

static void
file_looks(struct model_file *f, const struct stat *st)
{
	f->size = (uint64_t)st->st_size;
	f->inode = (uint64_t)st->st_ino;
	f->links = (uint64_t)st->st_nlink;
	f->looks = model_looks(st, "", 0);
	f->changed = model_looks(st, "", 1);
}

/* Check that a file is unchanged, or still absent. If `again' is not NULL, store the file's
 * present state there and allow another time of last change. */
static int
file_same(const struct model_file *f, struct model_file *again, struct err *e)
{
	struct model_file now = { .inode = 0 };
	struct stat st;

	if (model_stat(AT(f->path), 0, &st) == 0)
		file_looks(&now, &st);
	else if (errno != ENOENT)
		return err_sys(e, "'%s'", f->path);
	/* a new number of links explains a new time */
	if (now.inode != f->inode || now.looks != f->looks || (again == NULL &&
	    now.changed != f->changed && now.links == f->links))
		return err_set(e, ERR_REFUSED, "'%s' changed while it was read: try "
		    "again when nothing writes it", f->path);
	if (again != NULL) {
		again->changed = now.changed;
		again->links = now.links;
	}
	return 0;
}

static int
file_open(const struct model *m, struct model_file *f, struct err *e)
{
	struct stat st;
	int r;

	if (m->dir && access(f->path, F_OK) < 0)
		return m->index.inode != 0 ? err_set(e, ERR_DATA, "corrupt: '%s' "
		    "names file '%.80s': %s", m->index.path, f->name, strerror(errno)) :
		    err_set(e, ERR_DATA, "mismatch: '%s' has neither "
		    MODEL_INDEX " nor " MODEL_SINGLE " that can be opened (%s): if the model is "
		    "one file of another name, give that file", m->path, strerror(errno));
	if ((r = fd_open(f->path, FD_FILE, &f->fd, &st, e)) < 0)
		return r == -ERR_DATA && !m->dir ? err_after(e, r, ": store it in a file first") :
		    r;
	if (model_stat(f->fd, "", AT_EMPTY_PATH, &st) < 0)
		return err_sys(e, "'%s'", f->path);
	file_looks(f, &st);
	return 0;
}

/* ---- the tensors ---- */

/* The tensors of all files, in the order of the files. */
struct founds {
	struct schema table;
	struct model_place *place;	/* [cap], table.n in use */
	size_t cap;
};

static int
by_name(const void *a, const void *b)
{
	const struct schema_tensor *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Add the hash of a metadata pair to m->said, except of "format", which most writers add. */
static int
file_says(void *arg, const char *key, const char *value, struct err *e)
{
	struct model *m = arg;

	(void)e;
	if (strcmp(key, "format") != 0)
		m->said += pair_hash(key, value);
	return 0;
}

/* Read the tensors of file i and check that they fill the file. */
static int
file_tensors(struct model *m, uint32_t i, struct founds *all, struct err *e)
{
	const struct format_opts o = { .group_size = SCHEMA_GROUP, .bits = 1,
	    .pair = file_says, .arg = m };
	const struct schema *sc;
	struct format_source *src;
	uint64_t at;
	size_t k;
	int r;

	if ((r = format_open(&src, FORMAT_SAFETENSORS, m->file[i].path, &o,
	    e)) < 0)
		return r;
	sc = format_schema(src);
	at = m->file[i].head = format_where(src);
	for (k = 0; k < sc->n && r == 0; k++) {
		struct schema_tensor t = sc->t[k];

		t.kind = 0;	/* format_add only guessed the kind and roles */
		t.roles = 0;
		if (t.dtype == SCHEMA_F4 && t.numel % 2 != 0)
			r = err_set(e, ERR_DATA, "unsupported: tensor '%s' in '%s' has an odd "
			    "number of f4 values, %llu", t.name, m->file[i].path,
			    (unsigned long long)t.numel);
		else if ((r = alloc_grow(&all->place, &all->cap, all->table.n + 1,
		    sizeof(*all->place), e)) == 0)
			r = schema_add(&all->table, &t, e);
		if (r < 0)
			break;
		all->place[all->table.n - 1] = (struct model_place){ i, at };
		m->indexed -= pair_hash(t.name, m->file[i].name);
		at += dtype_bytes(t.dtype, t.numel);
	}
	if (r == 0 && at != m->file[i].size)
		r = err_set(e, ERR_DATA, at > m->file[i].size ?
		    "truncated: '%s' has %llu bytes, but needs %llu for its tensors" :
		    "corrupt: '%s' has %llu bytes, but needs only %llu for its tensors",
		    m->file[i].path, (unsigned long long)m->file[i].size, (unsigned long long)at);
	format_close(src);
	return r;
}

/* Put all tensors into the model, sorted by name, unless the index is wrong. */
static int
take_tensors(struct model *m, struct founds *all, struct err *e)
{
	const size_t n = all->table.n;
	struct schema_tensor **by = alloc_get(n, sizeof(*by), e);
	size_t i;
	int r = 0;

	m->schema.group_size = MODEL_GROUP;
	if (by == NULL || (m->place = alloc_get(n, sizeof(*m->place), e)) == NULL)
		r = -ERR_SYS;
	else if (m->index.inode != 0 && m->indexed != 0)
		r = err_set(e, ERR_DATA, "corrupt: '%s' does not name exactly the tensors that are "
		    "in each file: copy the model again", m->index.path);
	for (i = 0; i < n && r == 0; i++)
		by[i] = &all->table.t[i];
	if (r == 0)
		qsort(by, n, sizeof(*by), by_name);
	for (i = 0; i < n && r == 0; i++) {
		m->place[i] = all->place[by[i] - all->table.t];
		r = schema_add(&m->schema, by[i], e);
		alloc_free(by[i]->name);	/* so that the next one has its memory */
		by[i]->name = NULL;
	}
	alloc_free(by);
	if (r == 0 && (r = schema_finish(&m->schema, e)) < 0)
		r = err_file(e, r, m->path);
	return r;
}

static int
find_files(struct model *m, struct err *e)
{
	char *index;
	struct stat st;
	size_t i;
	int r;

	if (stat(m->path, &st) < 0)
		return err_sys(e, "'%s'", m->path);
	if ((m->dir = S_ISDIR(st.st_mode))) {
		(void)fd_most();	/* raise the limit, since all files stay open */
		index = m->index.path = alloc_path(m->path, MODEL_INDEX, e);
		if (index == NULL)
			return -ERR_SYS;
		if (model_stat(AT(index), 0, &st) == 0) {
			file_looks(&m->index, &st);
			r = safetensors_index(index, index_add, m, e);
		} else
			r = file_add(m, 0, MODEL_SINGLE, alloc_path(m->path,
			    MODEL_SINGLE, e), e);
	} else
		r = file_add(m, 0, m->path, alloc_dup(m->path, e), e);
	for (i = 0; i < m->nfiles && r == 0; i++)
		r = file_open(m, &m->file[i], e);
	return r;
}

int
model_open(struct model *m, const char *path, struct err *e)
{
	struct founds all = { .table = SCHEMA_INIT };
	uint32_t i;
	int r;

	m->path = path;
	r = find_files(m, e);
	for (i = 0; i < m->nfiles && r == 0; i++)
		r = file_tensors(m, i, &all, e);
	if (r == 0)
		r = take_tensors(m, &all, e);
	schema_release(&all.table);
	alloc_free(all.place);
	if (r < 0)
		model_close(m);
	return r;
}

void
model_close(struct model *m)
{
	size_t i;

	for (i = 0; i < m->nfiles; i++) {
		if (m->file[i].fd >= 0)
			(void)close(m->file[i].fd);
		alloc_free(m->file[i].name);
		alloc_free(m->file[i].path);
	}
	alloc_free(m->file);
	alloc_free(m->index.path);
	schema_release(&m->schema);
	alloc_free(m->place);
	*m = (struct model)MODEL_INIT;
}

/* ---- groups ---- */

void
model_span(const struct model *m, uint32_t g, struct model_span *out)
{
	struct schema_span s;
	unsigned dtype;

	schema_span(&m->schema, g, &s);
	dtype = m->schema.t[s.tensor].dtype;
	out->tensor = s.tensor;
	out->file = m->place[s.tensor].file;
	out->at = m->place[s.tensor].at + dtype_bytes(dtype, s.offset);
	out->bytes = (size_t)dtype_bytes(dtype, s.n);
	out->form = forms[dtype];
	out->words = out->bytes / exact_size(out->form);
}

size_t
model_most(const struct model *m)
{
	const struct schema_tensor *t = m->schema.t;
	size_t most = 1, i, n;

	for (i = 0; i < m->schema.n; i++) {
		n = (size_t)dtype_bytes(t[i].dtype, t[i].numel < MODEL_GROUP ?
		    t[i].numel : MODEL_GROUP);
		most = n > most ? n : most;
	}
	return most;
}

uint64_t
model_bytes(const struct model *m)
{
	const struct schema_tensor *t = m->schema.t;
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < m->schema.n; i++)
		n += dtype_bytes(t[i].dtype, t[i].numel);
	return n;
}

int
model_read(const struct model *m, const struct model_span *s, unsigned char *p,
    struct err *e)
{
	const struct model_file *f = &m->file[s->file];

	return fd_read_all(f->fd, (off_t)s->at, p, s->bytes, f->path, e);
}

int
model_same(const struct model *m, struct err *e)
{
	size_t i;
	int r = m->index.path != NULL ? file_same(&m->index, NULL, e) : 0;

	for (i = 0; i < m->nfiles && r == 0; i++)
		r = file_same(&m->file[i], NULL, e);
	return r;
}

int
model_again(struct model *m, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < m->nfiles && r == 0; i++)
		r = file_same(&m->file[i], &m->file[i], e);
	return r;
}

uint64_t
model_looks(const struct stat *st, const char *name, int all)
{
	const uint64_t x[] = { hash_64(name, strlen(name)),
	    (uint64_t)st->st_ino, (uint64_t)st->st_size,
	    (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
	    (uint64_t)st->st_mode, (uint64_t)st->st_uid, (uint64_t)st->st_gid,
	    all ? (uint64_t)st->st_ctim.tv_sec : 0,
	    all ? (uint64_t)st->st_ctim.tv_nsec : 0 };

	return hash_64(x, sizeof(x));
}

uint64_t
model_stamp(const struct model *m)
{
	uint64_t h = m->nfiles;
	struct stat st;
	size_t i;

	for (i = 0; i < m->nfiles; i++)
		if (model_stat(m->file[i].fd, "", AT_EMPTY_PATH, &st) == 0)
			h += model_looks(&st, m->dir ? m->file[i].name : "", 1);
	return h;
}

void
model_hash(const struct model *m, unsigned char (*digest)[MODEL_HASH],
    unsigned char hash[MODEL_HASH])
{
	const struct schema *sc = &m->schema;
	unsigned char both[2 * MODEL_HASH];

	memcpy(both, sc->id, MODEL_HASH);
	hash_128(digest, (size_t)sc->ngroups * MODEL_HASH,
	    both + MODEL_HASH);
	hash_128(both, sizeof(both), hash);
}

/* ---- mODL ---- */

enum { NOTE_HEAD = 40 };

int
model_note_add(struct model_note *t, uint64_t sum, struct err *e)
{
	int r = alloc_grow(&t->sum, &t->cap, t->n + 1, sizeof(*t->sum), e);

	if (r == 0)
		t->sum[t->n++] = sum;
	return r;
}

int
model_note_changed(struct model_note *t, uint64_t words, struct err *e)
{
	int r = buf_room(&t->changed, 10, e);

	if (r == 0)
		t->changed.n += bytes_set_varint(t->changed.p + t->changed.n,
		    words);
	return r;
}

int
model_note_encode(const struct model_note *t, struct buf *out, struct err *e)
{
	unsigned char *p;
	size_t i;
	int r = buf_room(out, NOTE_HEAD + 8 * t->n + t->changed.n, e);

	if (r < 0)
		return r;
	p = out->p + out->n;
	memcpy(p, t->before, MODEL_HASH);
	memcpy(p + MODEL_HASH, t->after, MODEL_HASH);
	bytes_set64(p + 2 * MODEL_HASH, t->n);
	for (i = 0; i < t->n; i++)
		bytes_set64(p + NOTE_HEAD + 8 * i, t->sum[i]);
	out->n += NOTE_HEAD + 8 * t->n;
	return t->changed.n == 0 ? 0 : buf_put(out, t->changed.p, t->changed.n,
	    e);
}

int
model_note_decode(struct model_note *t, const unsigned char *p, size_t n,
    struct err *e)
{
	uint64_t i, count;
	int r = 0;

	if (n < NOTE_HEAD)
		return err_set(e, ERR_DATA, "corrupt: frame mODL has %zu B, "
		    "expected at least %d B", n, NOTE_HEAD);
	memcpy(t->before, p, MODEL_HASH);
	memcpy(t->after, p + MODEL_HASH, MODEL_HASH);
	count = bytes_le64(p + 2 * MODEL_HASH);
	if (count > (n - NOTE_HEAD) / 8)
		return err_set(e, ERR_DATA, "corrupt: frame mODL has %zu B, too few for "
		    "its number of groups, %llu", n, (unsigned long long)count);
	for (i = t->n = 0; i < count && r == 0; i++)
		r = model_note_add(t, bytes_le64(p + NOTE_HEAD + 8 * i), e);
	t->changed.n = 0;
	n -= NOTE_HEAD + 8 * count;
	return r < 0 || n == 0 ? r : buf_put(&t->changed, p + NOTE_HEAD +
	    8 * count, n, e);
}

void
model_note_release(struct model_note *t)
{
	alloc_free(t->sum);
	buf_release(&t->changed);
	*t = (struct model_note)MODEL_NOTE_INIT;
}
