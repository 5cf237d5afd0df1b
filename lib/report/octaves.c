#include "base/bytes.h"
#include "report/octaves.h"

void
octaves_add(struct octaves *o, const float *x, size_t n)
{
	uint32_t m;
	size_t i;

	for (i = 0; i < n; i++) {
		m = bytes_u32(x[i]) & 0x7fffffff;
		if (m >= 0x00800000 && m < 0x7f800000)
			o->n[(int)(m >> 23) - 127 - OCTAVES_LOWEST]++;
		else if (m == 0)
			o->zero++;
		else if (m < 0x00800000)	/* subnormal: m * 2^-149 */
			o->n[31 - __builtin_clz(m)]++;
		else if (m == 0x7f800000)
			o->inf++;
		else
			o->nan++;
	}
}

void
octaves_ends(const struct octaves *o, int *lo, int *hi)
{
	*hi = OCTAVES - 1;
	*lo = 0;
	while (*hi >= 0 && o->n[*hi] == 0)
		(*hi)--;
	while (*lo < *hi && o->n[*lo] == 0)
		(*lo)++;
}
