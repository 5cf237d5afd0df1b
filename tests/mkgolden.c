/*
 * mkgolden DIR <good.aceg: write streams that each break one rule of ace-stream(5) to
 * DIR/bad-WORD-what.aceg.  WORD is the first word of the reader's message.  Streams that
 * only verification refuses are DIR/note-WORD-what.aceg.
 *
 * The good stream is HEAD SCHM pROv SHRD xyZz DATA SEND TAIL, made by
 * mkshards -a -p -n 16.  A reader of this version must accept the streams that are
 * written as DIR/good-what.aceg.
 */
#include <stdio.h>
#include <unistd.h>

#include "breaks.h"

struct bad {
	const char *name;	/* WORD-what */
	void (*change)(struct forge *s, unsigned long arg);
	unsigned long arg;
};

static const struct bad bads[] = {
	{ "good-later", later, 0 },
	{ "good-no-shard", no_shard, 0 },
	{ "good-plan", plan, 8 },
	{ "good-schema-frames", split, 50 },
	{ "good-between", between, FRAME_TYPE('x', 'Y', 'Z', 'Z') },
	{ "good-receipt", receipt, 48 },
	{ "good-provenance-empty", no_provenance, HEAD },
	{ "good-annotated", annotated, 0 },

	{ "corrupt-magic", HEAD8(HEAD, 0, 0xad) },
	{ "unsupported-version", HEAD8(HEAD, 10, 2) },
	{ "unsupported-version-later", HEAD8(DATA, 10, 2) },
	{ "unsupported-header-length", HEAD8(SHRD, 11, 9) },
	{ "unsupported-flag", HEAD8(DATA, 8, 2) },
	{ "unsupported-flag-head", HEAD8(HEAD, 8, 0x80) },
	{ "corrupt-header-hash", hash, KEEP_HEAD_HASH },
	{ "corrupt-payload-hash", hash, KEEP_PAYLOAD_HASH },
	{ "corrupt-padding", padding, 1 },
	{ "corrupt-seq-gap", HEAD8(DATA, 12, 6) },
	{ "corrupt-seq-back", HEAD8(DATA, 12, 4) },
	{ "corrupt-seq-first", HEAD8(HEAD, 12, 1) },
	{ "corrupt-offset-first", HEAD8(HEAD, 48, 64) },
	{ "corrupt-stream-id-zero", no_id, 0 },
	{ "corrupt-stream-id", HEAD8(DATA, 24, 0x55) },
	{ "corrupt-shard-key", key, DATA },
	{ "corrupt-shard-key-own", key, SHRD },
	{ "corrupt-shard-key-first", key_first, 99 },
	{ "corrupt-shard-key-outside", key, TAIL },
	{ "corrupt-shard-key-head", key, HEAD },
	{ "corrupt-offset", HEAD8(DATA, 48, 0x41) },
	{ "corrupt-lengths", HEAD32(SEND, 20, 7) },
	{ "limit-wire-length", HEAD32(DATA, 16, 32) },
	{ "limit-wire-length-hard", HEAD32(DATA, 16, 25) },
	{ "limit-raw-length", raw_bomb, 30 },
	{ "limit-announced", PAY8(HEAD, 15, 0x7f) },
	{ "limit-frame-announced", PAY8(HEAD, 15, 0) },
	{ "corrupt-lz4-short", lz4_block, 65535 },
	{ "corrupt-lz4-long", lz4_block, 65537 },
	{ "corrupt-lz4-bomb", lz4_block, 16u << 20 },
	{ "corrupt-lz4-zeros", lz4_block, 65536 },
	{ "corrupt-lz4-none", raw_bomb, 10 },
	{ "corrupt-lz4-head", lz4_frame, HEAD },
	{ "corrupt-lz4-shard", lz4_frame, SHRD },
	{ "corrupt-lz4-send", lz4_frame, SEND },
	{ "corrupt-lz4-tail", lz4_frame, TAIL },
	{ "corrupt-lz4-receipt", lz4_receipt, 0 },

	{ "unsupported-major", PAY8(HEAD, 0, 2) },
	{ "unsupported-feature", PAY8(HEAD, 4, 1) },
	{ "corrupt-head-mbz", PAY8(HEAD, 55, 1) },
	{ "corrupt-head-count", PAY8(HEAD, 40, 9) },
	{ "corrupt-head-short", CUT(HEAD, 1) },
	{ "corrupt-head-long", longer, HEAD },
	{ "corrupt-head-schema-id", PAY8(HEAD, 24, 0x55) },

	{ "corrupt-no-head", drop, HEAD },
	{ "corrupt-head-twice", twice, HEAD },
	{ "mismatch-no-schema", drop, SCHM },
	{ "corrupt-schema-twice", twice, SCHM },
	{ "corrupt-schema-late", MOVE(SCHM, PROV) },
	{ "mismatch-schema-late", MOVE(SCHM, DATA) },
	{ "corrupt-no-shard", drop, SHRD },
	{ "corrupt-shard-twice", twice, SHRD },
	{ "corrupt-data-after-shard", MOVE(DATA, SEND) },
	{ "corrupt-data-before-shard", MOVE(DATA, SHRD) },
	{ "truncated-no-send", drop, SEND },
	{ "truncated-no-tail", drop, TAIL },
	{ "corrupt-send-twice", twice, SEND },
	{ "corrupt-tail-twice", twice, TAIL },
	{ "corrupt-receipt-inside", receipt, 0 },
	{ "corrupt-receipt-mbz", receipt, 40 },
	{ "corrupt-receipt-reason", reason, 0 },
	{ "unsupported-receipt-verdict", receipt, 44 },
	{ "corrupt-statistics-outside", between, FRAME_STAT },
	{ "unsupported-critical-between", between,
	    FRAME_TYPE('Z', 'Z', 'Z', 'Z') },
	{ "corrupt-statistics-twice", again, FRAME_STAT },
	{ "corrupt-scores-twice", again, FRAME_SCOR },
	{ "corrupt-plan-twice", plan, 0 },
	{ "unsupported-plan-codec", plan, 1 },
	{ "corrupt-plan-padding", plan, 2 },
	{ "corrupt-plan-argument", plan, 3 },
	{ "corrupt-plan-range", plan, 4 },
	{ "corrupt-plan-price", plan, 5 },
	{ "corrupt-plan-price-infinite", plan, 9 },
	{ "corrupt-plan-mbz", plan, 6 },
	{ "unsupported-plan-codec-private", plan, 7 },
	{ "unsupported-plan-parameter", plan, 10 },
	{ "unsupported-plan-levels", plan, 11 },
	{ "unsupported-plan-rank", plan, 12 },
	{ "unsupported-critical-frame", stranger, FRAME_TYPE('Z', 'Z', 'Z', 'Z') },
	{ "corrupt-frame-type", stranger, FRAME_TYPE('a', 0, 'C', 0) },
	{ "corrupt-garbage", nothing, 1 },
	{ "corrupt-zeros", nothing, 2 },

	{ "limit-dims-product", schema, 0 },
	{ "limit-elements-hard", schema, 1 },
	{ "limit-elements", schema, 2 },
	{ "corrupt-schema-numel", schema, 3 },
	{ "corrupt-schema-base", schema, 4 },
	{ "corrupt-schema-total", schema, 5 },
	{ "unsupported-name-newline", schema, 6 },
	{ "unsupported-name-escape", schema, 7 },
	{ "corrupt-name-nul", schema, 8 },
	{ "unsupported-name-overlong", schema, 9 },
	{ "unsupported-name-empty", schema, 10 },
	{ "limit-ndim-255", schema, 11 },
	{ "limit-ndim-9", schema, 12 },
	{ "unsupported-dtype", schema, 13 },
	{ "limit-group-size", schema, 14 },
	{ "corrupt-schema-million", schema, 15 },
	{ "limit-tensors", schema, 16 },
	{ "corrupt-name-offset", schema, 17 },
	{ "corrupt-name-offset-far", schema, 18 },
	{ "corrupt-schema-dims", schema, 19 },
	{ "limit-group-size-zero", schema, 20 },
	{ "limit-groups", schema, 21 },
	{ "limit-groups-most", schema, 22 },
	{ "corrupt-name-twice", schema_many, 2 },
	{ "corrupt-schema-cut", CUT(SCHM, 1) },
	{ "corrupt-schema-half", split, 0 },
	{ "corrupt-schema-empty-frame", split_empty, 50 },
	{ "corrupt-schema-longer", longer, SCHM },
	{ "corrupt-schema-head", CUT(SCHM, 60) },

	{ "mismatch-shard-schema", PAY8(SHRD, 40, 0x55) },
	{ "corrupt-weight-zero", PAY64(SHRD, 56, 0) },
	{ "corrupt-weight-nan", PAY64(SHRD, 56, 64) },
	{ "unsupported-kind", PAY8(SHRD, 64, 99) },
	{ "unsupported-shard-field", PAY8(SHRD, 77, 1) },
	{ "corrupt-shard-field-zero", PAY64(SHRD, 88, 0) },
	{ "corrupt-shard-incarnation", incarnation, 32 },
	{ "corrupt-shard-run", PAY8(SHRD, 0, 0x55) },
	{ "corrupt-shard-device", PAY8(SHRD, 16, 0x55) },
	{ "corrupt-shard-mbz", PAY8(SHRD, 84, 1) },
	{ "corrupt-shard-kv-length", PAY8(SHRD, 83, 0xff) },
	{ "corrupt-shard-short", CUT(SHRD, 1) },
	{ "corrupt-shard-kv-order", shard_kv, 0 },
	{ "corrupt-shard-kv-twice", shard_kv, 1 },
	{ "corrupt-shard-kv-key", shard_kv, 2 },
	{ "corrupt-shard-kv-value", shard_kv, 3 },
	{ "corrupt-shard-kv-end", shard_kv, 4 },
	{ "corrupt-shard-kv-empty", shard_kv, 5 },
	{ "corrupt-provenance", PAY8(PROV, 2, 033) },
	{ "corrupt-provenance-end", CUT(PROV, 1) },
	{ "corrupt-provenance-twice", twice, PROV },
	{ "corrupt-provenance-empty-twice", no_provenance, PROV },
	{ "corrupt-schema-late-empty", no_provenance, SCHM },
	{ "corrupt-provenance-late", MOVE(PROV, SEND) },
	{ "limit-provenance", long_provenance, 65537 },

	{ "corrupt-data-empty", data, 0 },
	{ "corrupt-data-count", data, 1 },
	{ "corrupt-data-group", data, 2 },
	{ "corrupt-data-gap", data, 3 },
	{ "corrupt-data-length", data, 4 },
	{ "corrupt-data-length-wrap", data, 5 },
	{ "corrupt-data-bytes-after", data, 6 },
	{ "corrupt-data-entry-after", data, 7 },
	{ "corrupt-data-directory", data, 8 },
	{ "corrupt-data-varint", data, 9 },
	{ "unsupported-codec-15", data, 10 },
	{ "unsupported-f32-parameter", data, 11 },
	{ "corrupt-f32-length", data, 12 },
	{ "corrupt-f32-empty", data, 13 },
	{ "corrupt-f32-longer", data, 21 },
	{ "corrupt-q8-length", data, 14 },
	{ "corrupt-topk-empty", data, 15 },
	{ "corrupt-exact-empty", data, 16 },
	{ "unsupported-exact-parameter", data, 22 },
	{ "unsupported-codec-private", data, 17 },
	{ "corrupt-codec-escape", data, 18 },
	{ "corrupt-codec-65535", data, 19 },
	{ "corrupt-data-first-gap", data, 20 },
	{ "corrupt-data-twice", twice, DATA },
	{ "corrupt-exact-codec", exact, 6 },
	{ "unsupported-bits-codec", exact, 12 },
	LIES(body),
	{ "corrupt-directory-padding", PAY8(DATA, 15, 1) },

	{ "corrupt-digest", PAY8(SEND, 32, 0x55) },
	{ "corrupt-n-data", PAY8(SEND, 0, 9) },
	{ "corrupt-n-records", PAY8(SEND, 4, 9) },
	{ "corrupt-raw-bytes", PAY8(SEND, 16, 1) },
	{ "corrupt-wire-bytes", PAY8(SEND, 24, 1) },
	{ "truncated-aborted", PAY8(SEND, 68, 1) },
	{ "corrupt-send-status", PAY8(SEND, 68, 2) },
	{ "corrupt-nonzero", PAY8(SEND, 8, 9) },
	{ "corrupt-nonzero-many", PAY8(SEND, 15, 1) },
	{ "corrupt-send-long", longer, SEND },
	{ "corrupt-send-short", CUT(SEND, 1) },
	{ "corrupt-tail-frames", SEALED8(TAIL, 0, 9) },
	{ "corrupt-tail-shards", SEALED8(TAIL, 4, 9) },
	{ "corrupt-tail-before", SEALED8(TAIL, 8, 1) },
	{ "corrupt-tail-headers", SEALED8(TAIL, 16, 0x55) },
	{ "corrupt-tail-raw", SEALED8(TAIL, 32, 1) },
	{ "truncated-tail-aborted", SEALED8(TAIL, 40, 1) },
	{ "corrupt-tail-status", PAY8(TAIL, 40, 2) },
	{ "corrupt-tail-mbz", PAY8(TAIL, 47, 1) },
	{ "corrupt-tail-short", CUT(TAIL, 1) },

	{ "note-corrupt-score-nan", noted, NOTED_SCORE_NAN },
	{ "note-corrupt-stats", noted, NOTED_STATS },
	{ "note-corrupt-stats-infinite", noted, NOTED_STATS_INFINITE },
	{ "note-corrupt-stats-values", noted, NOTED_STATS_VALUES },
	{ "note-corrupt-stats-octaves", noted, NOTED_STATS_OCTAVES },
	{ "note-corrupt-members-order", noted, NOTED_MEMBERS_ORDER },
	{ "note-corrupt-members-twice", noted, NOTED_MEMBERS_TWICE },
	{ "note-corrupt-members-many", noted, NOTED_MEMBERS_MANY },
	{ "note-corrupt-members-empty", noted, NOTED_MEMBERS_EMPTY },
	{ "note-corrupt-members-again", noted, NOTED_TWO_SAME },
	{ "note-corrupt-members-back", noted, NOTED_TWO_BACK },
	{ "note-corrupt-times-count", noted, NOTED_TIMES_COUNT },
	{ "note-corrupt-times", noted, NOTED_TIMES },
	{ "note-corrupt-policy-order", noted, NOTED_POLICY_ORDER },
	{ "note-corrupt-policy-range", noted, NOTED_POLICY_RANGE },
	{ "note-corrupt-policy-line", noted, NOTED_POLICY_LINE },
	{ "note-corrupt-policy-end", noted, NOTED_POLICY_END },
	{ "note-corrupt-policy-unseen", noted, NOTED_POLICY_UNSEEN },
	{ "note-corrupt-model", noted, NOTED_MODEL },
	{ "note-corrupt-sign-short", noted, NOTED_SIGN_SHORT },
	{ "note-unsupported-sign-scheme", noted, NOTED_SIGN_SCHEME },
	{ "note-corrupt-sign-mbz", noted, NOTED_SIGN_MBZ },
	{ "note-corrupt-sign-before", noted, NOTED_SIGN_BEFORE },
	{ "note-corrupt-sign-twice", noted, NOTED_SIGN_TWICE },
	{ "note-corrupt-shard-nobody", noted, NOTED_SHARD_NOBODY },
	{ "note-corrupt-shard-seconds", noted, NOTED_SHARD_SECONDS },
	{ "note-corrupt-shard-norm", noted, NOTED_SHARD_NORM },
	{ "note-corrupt-shard-stamp", noted, NOTED_SHARD_STAMP },
	{ "note-corrupt-shard-predict", noted, NOTED_SHARD_PREDICT },
	{ "note-corrupt-difference-keys", noted, NOTED_SHARD_DIFFERENCE },
	{ "note-corrupt-difference-how", noted, NOTED_SHARD_HOW },
	{ "note-corrupt-difference-history", noted, NOTED_SHARD_HISTORY }
};

static void
put(const char *dir, const struct bad *b, const unsigned char *p, size_t n)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s%s.aceg", dir,
	    strncmp(b->name, "good-", 5) == 0 ||
	    strncmp(b->name, "note-", 5) == 0 ? "" : "bad-", b->name);
	f = fopen(path, "wb");
	assert(f != NULL && fwrite(p, 1, n, f) == n);
	if (b->change == nothing)
		assert(fwrite(b->arg == 1 ? "more and more" :
		    "\0\0\0\0\0\0\0\0\0\0\0\0", 1, 12, f) == 12);
	assert(fclose(f) == 0);
}

int
main(int argc, char **argv)
{
	static unsigned char good[65536];
	unsigned char *p;
	struct forge s;
	size_t n = 0, i, len;
	ssize_t k;

	while ((k = read(STDIN_FILENO, good + n, sizeof(good) - n)) > 0)
		n += (size_t)k;
	if (argc != 2 || n == 0) {
		(void)fprintf(stderr, "usage: mkgolden DIR <good.aceg\n");
		return 2;
	}
	for (i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		forge_open(&s, good, n);
		assert(s.n == TAIL + 1);
		bads[i].change(&s, bads[i].arg);
		p = forge_seal(&s, &len);
		put(argv[1], &bads[i], p, len);
		forge_free(&s);
		free(p);
	}
	return 0;
}
