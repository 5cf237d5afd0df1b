/* Patches that break one rule each are refused. */
#include "base/err.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "format/frame.h"
#include "format/reader.h"
#include "format/writer.h"
#include "model/change.h"

#include "../inside.h"
#include "../model.h"
#include "../test.h"

static struct err e;

struct lie {
	const char *what, *says;
	int notes;		/* number of frames mODL */
	int before;		/* 1: the patch names an old model */
	unsigned codec, flag;	/* codec: of the only record; flag: more bits of its parameter */
};

/* Write the patch x of a model f32[4, 2] and read it; return 0 or the reader's error. */
static int
reads(const struct lie *x)
{
	struct schema sc = model_of(4, 2, MODEL_GROUP);
	struct model m = { .path = "m", .schema = sc };
	struct change c = CHANGE_INIT;
	struct model_note note = MODEL_NOTE_INIT;
	struct buf b = BUF_INIT, body = BUF_INIT;
	unsigned char words[32] = { 1 };
	struct writer_opts made = { "maker", "maker 1", 0, 0 };
	struct reader_opts o = { .any_model = 1 };
	struct reader *in = NULL;
	struct writer *w;
	struct shard sh;
	struct io *io;
	uint8_t param;
	int i, r;

	shard_init(&sh);
	sh.kind = SHARD_MODEL;
	sh.flags = SHARD_PREDICTED;
	(void)text_set(&sh.kv, SHARD_KEY_PREDICT, SHARD_PREDICT_PATCH, &e);
	(void)text_set(&sh.kv, SHARD_KEY_HISTORY, "none", &e);
	(void)exact_put(EXACT_F32, NULL, words, 8, &body, &param, &e);
	(void)io_create(&io, "patch", 0, &e);
	(void)writer_open(&w, io, &made, &e);
	(void)writer_shard(w, &sh, &sc, &e);
	note.before[0] = (unsigned char)x->before;
	note.after[0] = 1;
	if (x->codec == CODEC_EXACT)
		(void)writer_record(w, 0, CODEC_EXACT, (uint8_t)(param | x->flag),
		    body.p, body.n, NULL, 8, &e);
	else
		(void)writer_record(w, 0, (uint8_t)x->codec, 0, words, sizeof(words),
		    NULL, 8, &e);
	(void)model_note_add(&note, 7, &e);
	(void)model_note_encode(&note, &b, &e);
	for (i = 0; i < x->notes; i++)
		(void)writer_note(w, FRAME_MODL, b.p, b.n, &e);
	(void)writer_send(w, NULL, &e);
	(void)writer_end(w, IO_SYNC_NONE, &e);
	writer_free(w);
	err_clear(&e);
	if ((r = reader_file(&in, "patch", &o, &e)) == 0 &&
	    (r = reader_to_shard(in, &e)) > 0)
		r = change_read(&c, in, &m, &e);
	reader_free(in);
	change_release(&c);
	shard_release(&sh);
	schema_release(&sc);
	model_note_release(&note);
	buf_release(&b);
	buf_release(&body);
	return r;
}

TEST(lies)
{
	static const struct lie lie[] = {
		{ "the truth", "", 1, 1, CODEC_EXACT, 0 },
		{ "no models", "the number of frames mODL in the patch is 0, expected 1 (give ace-diff's output unchanged), in the patch to step", 0, 1, CODEC_EXACT, 0 },
		{ "its models twice", "the number of frames mODL in the patch is 2, expected 1", 2, 1, CODEC_EXACT, 0 },
		{ "no old model", "changes an old model, but does not name it", 1, 0,
		    CODEC_EXACT, 0 },
		{ "values of another codec", "is coded f32, expected codec exact", 1, 1,
		    CODEC_F32, 0 },
		/* an old release wrote it, for slices of tensors */
		{ "words of a slice", "unsupported: parameter 32 of codec exact in "
		    "tensor 'w' is unknown: a newer release of ace", 1, 1, CODEC_EXACT, 32 },
	};
	size_t i;
	int r;

	for (i = 0; i < sizeof(lie) / sizeof(*lie); i++) {
		r = reads(&lie[i]);
		ok(lie[i].says[0] == '\0' ? r == 0 : r == -ERR_DATA &&
		    strstr(ERR_MSG(&e), lie[i].says) != NULL, "a patch that says %s: %s",
		    lie[i].what, r < 0 ? ERR_MSG(&e) : "taken");
	}
}
