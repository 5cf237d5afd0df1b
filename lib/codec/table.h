/*
 * The codecs there are: number, the name in enum codec_id (CODEC_ in front),
 * and the row in the codec's own file that says all about it (impl.h).  This
 * is the one line that a codec needs outside its file; numbers rise, and none
 * is ever used again for another meaning (ace-stream(5), VALUE CODECS).  15 is
 * left out: in a directory it means that the number follows.
 */
#ifndef ACE_CODEC_TABLE_H
#define ACE_CODEC_TABLE_H

#define CODEC_TABLE(X) \
	X(0, F32, raw_f32) \
	X(1, F16, raw_f16) \
	X(2, BF16, raw_bf16) \
	X(3, LOSSLESS, lossless_planes) \
	X(4, Q8, block_q8) \
	X(5, Q4, block_q4) \
	X(6, SIGN, block_sign) \
	X(7, TOPK, topk_codec) \
	X(8, QSGD, qsgd_codec) \
	X(9, ECQ, ecq_codec) \
	X(10, TERN, tern_codec) \
	X(11, LOWRANK, lowrank_codec) \
	X(12, I64, fixed_i64) \
	X(13, NATURAL, natural_codec) \
	X(14, EDEN, eden_codec) \
	X(16, NONZERO, nonzero_codec)

#endif
