#include <stdlib.h>

#include "base/err.h"
#include "format/keys.h"
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
keys_times(const struct shard *sh, size_t n, double *v, struct err *e)
{
	const char *s = text_get(&sh->kv, SHARD_KEY_LAYERS);
	char *end;
	size_t i;

	if (s == NULL)
		return 0;
	for (i = n; i-- > 0; s = end + 1) {
		v[i] = strtod(s, &end);
		if (end == s || !(v[i] >= 0 && v[i] <= 1e7) ||
		    *end != (i > 0 ? ',' : '\0'))
			return err_set(e, ERR_DATA, "corrupt: key "
			    SHARD_KEY_LAYERS " of '%s': not %zu times",
			    shard_device(sh), n);
	}
	return 1;
}
