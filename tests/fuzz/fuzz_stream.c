/*
 * libFuzzer: read any bytes as a file of streams: all events, records and annotations.
 */
#include "forged.h"
#include "../memory.h"

#include "base/err.h"
#include "base/io.h"
#include "format/annotation.h"
#include "format/frame.h"
#include "format/reader.h"
#include "format/text.h"
#include "format/values.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int
note(void *arg, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	uint32_t groups = reader_schema(r)->ngroups, entry, i;
	struct text_kv kv = TEXT_KV_INIT;
	struct codec_plan plan;
	struct stat_group st;
	struct note t;
	int k;

	(void)arg;
	entry = f->type == FRAME_STAT ? NOTE_STAT : f->type == FRAME_SCOR ?
	    NOTE_SCORE : f->type == FRAME_PLAN ? NOTE_PLAN : 0;
	if (entry == 0) {
		k = text_get_lines(&kv, f->raw, f->raw_len, e);
		text_release(&kv);
		return k;
	}
	if ((k = note_get(&t, f->raw, f->raw_len, entry, groups, e)) < 0)
		return k;
	for (i = 0; i < t.n; i++)
		if (f->type == FRAME_STAT)
			(void)note_stat(&t, i, reader_schema(r), &st, e);
		else if (f->type == FRAME_SCOR)
			(void)note_score(&t, i);
		else
			note_plan(&t, i, &plan);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct reader_opts o = { .max_elements = 1 << 20 };
	struct values v = VALUES_INIT;
	struct err e = ERR_INIT;
	struct reader *r = NULL;
	struct io *io;
	int k;

	if (memory_open(&io, p, n, &e) < 0 || reader_open(&r, io, &o, &e) < 0)
		return 0;
	v.note = note;
	while ((k = reader_next(r, &e)) > 0) {
		if (k != READER_SHARD)
			continue;
		if (values_begin(&v, r, &e) < 0)
			break;
		while ((k = values_next(&v, &e)) > 0)
			;
		if (k < 0)
			break;
	}
	values_release(&v);
	reader_free(r);
	return 0;
}
