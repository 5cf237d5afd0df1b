#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "device/dense.h"

/* Read the file's stamp. The checksum in the last frame covers every frame header, and
 * each header has its payload's checksum, so the last frame identifies the whole file. */
static int
dense_stamp(struct dense *d, struct io *io, struct err *e)
{
	unsigned char tail[FRAME_HEAD_SIZE + FRAME_TAIL_SIZE];
	const uint64_t size = io_size(io);
	size_t got = 0;
	int k = 0;

	if (size >= sizeof(tail) &&
	    (k = io_seek(io, size - sizeof(tail), e)) == 0 &&
	    (k = io_read(io, tail, sizeof(tail), &got, e)) == 0)
		k = io_seek(io, 0, e);
	if (k < 0)
		return k;
	if (got != sizeof(tail) || bytes_le32(tail + 4) != FRAME_TAIL)
		return err_set(e, ERR_DATA, "corrupt: the file does not end with the last "
		    "frame of a stream");
	shard_hex(tail + FRAME_HEAD_SIZE + 16, d->stamp);
	return 0;
}

static int
dense_first(struct dense *d, enum shard_kind kind, struct err *e)
{
	int k = reader_to_shard(d->r, e);

	if (k == 0 || (k > 0 && reader_shard(d->r)->kind != (uint32_t)kind))
		k = err_set(e, ERR_DATA, "corrupt: the file's first shard is %s, expected one of "
		    "kind %s", k == 0 ? "absent" : shard_kind_name(reader_shard(d->r)->kind),
		    shard_kind_name(kind));
	return k < 0 ? k : values_begin(&d->v, d->r, e);
}

int
dense_open(struct dense *d, const struct statedir *s, const char *name,
    enum shard_kind kind, const char *remedy, struct err *e)
{
	char path[STATE_PATH];
	struct reader_opts o = { .max_elements = SCHEMA_MAX_TOTAL, .remedy = remedy };
	struct io *io = NULL;
	int k = io_open_kept(&io, statedir_path(s, name, path), e);
	const int there = k > 0;

	memset(d, 0, sizeof(*d));
	d->v = (struct values)VALUES_INIT;
	memcpy(d->stamp, "none", 5);
	if (there) {
		io_sparse(io);	/* frames are read in place, or skipped */
		if ((k = dense_stamp(d, io, e)) < 0)
			io_free(io);
		else if ((k = reader_open(&d->r, io, &o, e)) == 0)
			k = dense_first(d, kind, e);
	}
	if (k < 0)
		dense_close(d);
	if (k == -ERR_DATA && remedy != NULL && e != NULL && e->file[0] == '\0')
		(void)err_after(e, k, "%s", remedy);
	return k == -ERR_DATA && there ? err_file(e, k, path) : k;
}

int
dense_check(const struct dense *d, const struct shard *sh,
    const struct schema *sc, struct err *e)
{
	const int named = text_get(&sh->kv, SHARD_KEY_RUN) != NULL;
	const struct shard *own;
	char why[256];
	int mine;

	if (d->r == NULL)
		return 0;
	own = reader_shard(d->r);
	mine = text_get(&own->kv, SHARD_KEY_RUN) != NULL;
	if (memcmp(own->run, sh->run, SHARD_ID) != 0)
		return err_set(e, ERR_DATA, "mismatch: the shard %s%s%s, %s%s%s "
		    "('%s'): give %s, or another state directory", named ?
		    "is of run '" : "names no run", named ? shard_run(sh) : "",
		    named ? "'" : "", mine ? "but the state is of run '" :
		    "but the state names none", mine ? shard_run(own) : "", mine ? "'" : "",
		    reader_name(d->r), mine ? "a shard of that run (ace-import --run)" :
		    "a shard without a run");
	if (memcmp(own->device, sh->device, SHARD_ID) != 0)
		return err_set(e, ERR_DATA, "mismatch: the shard is of device '%s', "
		    "but the state is of device '%s' ('%s'): give each device a name (ace-import "
		    "--device) and its own state directory",
		    shard_device(sh), shard_device(own), reader_name(d->r));
	if (schema_diff(reader_schema(d->r), sc, why) != 0)
		return err_set(e, ERR_DATA, "mismatch: '%s' is of another model than the shard: "
		    "%s (give a new model a new state directory)", reader_name(d->r), why);
	return 0;
}

int
dense_group(struct dense *d, uint32_t g, const float **x, struct err *e)
{
	int k;

	*x = NULL;
	if (d->r == NULL)
		return 0;
	do {
		k = values_next(&d->v, e);
		if (k < 0)
			return reader_blame(d->r, k, e);
		if (k == 0)
			return reader_blame(d->r, reader_place(d->r, err_set(e, ERR_DATA,
			    "corrupt: group %lu, in tensor '%.160s', is absent",
			    (unsigned long)g, schema_name(reader_schema(d->r), g)), e), e);
	} while (d->v.group < g);
	if (d->v.sent)
		*x = d->v.x;
	return 0;
}

void
dense_close(struct dense *d)
{
	reader_free(d->r);
	values_release(&d->v);
	d->r = NULL;
}

int
dense_begin(struct writer **w, struct io *io, const struct statedir *s,
    const struct shard *from, enum shard_kind kind, const struct text_kv *kv,
    const struct schema *sc, struct err *e)
{
	/* device and receiver compare the stamps of their histories */
	struct writer_opts o = { "state", NULL, 0, 1 };
	struct shard sh;
	int k;

	*w = NULL;
	if (s->durable)
		io_behind(io);
	if ((k = writer_open(w, io, &o, e)) < 0)
		return k;
	shard_init(&sh);
	sh.kind = kind;
	sh.step = from->step;
	sh.incarnation = from->incarnation;
	k = shard_same(&sh, from, e);
	if (k == 0 && kv != NULL)
		k = text_add(&sh.kv, kv, e);
	if (k == 0)
		k = writer_shard(*w, &sh, sc, e);
	shard_release(&sh);
	return k;
}

int
dense_create(struct writer **w, const struct statedir *s, const char *name,
    const struct shard *from, enum shard_kind kind, const struct text_kv *kv,
    const struct schema *sc, struct err *e)
{
	char path[STATE_PATH];
	struct io *io;
	int k;

	*w = NULL;
	k = io_create_over(&io, statedir_path(s, name, path), NULL, 0, e);
	return k < 0 ? k : dense_begin(w, io, s, from, kind, kv, sc, e);
}

int
dense_put(struct writer *w, uint32_t g, const float *x, size_t n, struct err *e)
{
	size_t i;

	for (i = 0; i < n && x[i] == 0; i++)
		continue;
	return i == n ? 0 : writer_values(w, g, x, n, e);
}
