#include "base/err.h"
#include "format/keys.h"
#include "format/array.h"
#include "format/reader.h"
#include "format/writer.h"

int
keys_add(struct text_kv *kv, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct text_kv said = TEXT_KV_INIT;
	size_t i;
	int k;

	if (f->type != FRAME_POLI)
		return 0;
	k = text_get_lines(&said, f->raw, f->raw_len, e);
	for (i = 0; i < said.n && k == 0; i++)
		k = text_set(kv, said.p[i].key, said.p[i].value, e);
	text_release(&said);
	return k;
}

int
keys_put(struct writer *w, const struct text_kv *kv, struct err *e)
{
	struct buf b = BUF_INIT;
	int r = text_put_lines(kv, &b, e);

	if (r == 0)
		r = writer_note(w, FRAME_POLI, b.p, b.n, e);
	buf_release(&b);
	return r;
}

int
keys_times(const struct reader *r, size_t n, double *v, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct err own = ERR_INIT;
	char where[160];
	double t;
	size_t i;
	int k;

	if (f->type != FRAME_TIME)
		return 0;
	if ((k = array_get_times(f->raw, f->raw_len, n, v, &own)) < 0)
		return err_set(e, -k, "%.200s, %s", own.msg,
		    reader_where(r, where));
	for (i = 0; i < n / 2; i++) {
		t = v[i];
		v[i] = v[n - 1 - i];
		v[n - 1 - i] = t;
	}
	return 1;
}
