/* Return the bytes or the error that estimate_coding gives. */
#ifndef ESTIMATED_H
#define ESTIMATED_H

#include "codec/estimate.h"

static inline int64_t
estimate_bytes(const struct estimate *m, const struct codec_plan *p)
{
	int64_t bytes;
	double error;

	estimate_coding(m, p, &bytes, &error);
	return bytes;
}

static inline double
estimate_error(const struct estimate *m, const struct codec_plan *p)
{
	int64_t bytes;
	double error;

	estimate_coding(m, p, &bytes, &error);
	return error;
}

#endif
