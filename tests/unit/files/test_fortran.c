/* Fortran order to C order, in memory and through the file, any block. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "files/fortran.h"

#include "../starve.h"
#include "../tap.h"

/* Value i in C order of a tensor in Fortran order, index by index. */
static uint64_t
place(const struct schema_tensor *t, uint64_t i)
{
	uint64_t index[SCHEMA_MAX_DIM], at = 0;
	unsigned d;

	for (d = t->ndim; d-- > 0; i /= t->dim[d])
		index[d] = i % t->dim[d];
	for (d = t->ndim; d-- > 0;)
		at = at * t->dim[d] + index[d];
	return at;
}

static int
right(const struct schema_tensor *t, size_t block, struct err *e)
{
	unsigned char *in = malloc((size_t)t->numel * 4), *out;
	struct fortran *f = NULL;
	size_t n = (size_t)t->numel, i, k, step = 1;
	int r;

	out = calloc(n, 4);
	if (in == NULL || out == NULL)
		abort();
	for (i = 0; i < n; i++)
		bytes_set32(in + 4 * i, (uint32_t)i);
	r = fortran_open(&f, t, 4, block, e);
	for (i = 0; i < 4 * n && r == 0; i += k) {
		k = 4 * n - i < 999 ? 4 * n - i : 999;
		r = fortran_put(f, in + i, k, e);
	}
	for (i = 0; i < n && r == 0; i += k) {
		k = n - i < step ? n - i : step;
		r = fortran_get(f, out + 4 * i, k, e);
		step = step * 5 % 1009;
	}
	for (i = 0; i < n && r == 0; i++)
		if (bytes_le32(out + 4 * i) != place(t, i))
			r = err_set(e, ERR_DATA, "value %zu", i);
	fortran_free(f);
	free(in);
	free(out);
	return r;
}

/* One that fits into memory, and one that goes through a file. */
static enum starved
both(void)
{
	struct schema_tensor s = { .ndim = 2, .dim = { 211, 307 },
	    .numel = 211 * 307 };
	struct err e = ERR_INIT;
	int r;

	if ((r = right(&s, 0, &e)) == 0)
		r = right(&s, 400, &e);
	return r == 0 ? STARVED_NOT : r == -ERR_SYS &&
	    strstr(ERR_MSG(&e), "out of memory") != NULL ? STARVED_SAID :
	    STARVED_WRONG;
}

int
main(void)
{
	static const struct {
		unsigned ndim;
		uint64_t dim[SCHEMA_MAX_DIM];
	} t[] = {
		{ 2, { 3, 5 } }, { 2, { 1, 900 } }, { 2, { 900, 1 } },
		{ 2, { 211, 307 } }, { 2, { 3, 40000 } }, { 2, { 40000, 3 } },
		{ 3, { 7, 11, 13 } }, { 4, { 5, 1, 60, 70 } }, { 1, { 77 } },
		{ 3, { 2, 300, 200 } }, { 8, { 2, 3, 2, 3, 2, 3, 2, 3 } },
		/* with the largest block: runs that begin in the window and end
		 * behind it */
		{ 2, { 200000, 2 } }, { 2, { 211, 320 } }
	};
	static const size_t block[] = { 0, 4, 8, 400, 4096, 70000, 260000 };
	struct schema_tensor s;
	struct err e;
	size_t i, k;
	unsigned d;
	int n = starve(both);

	ok(n >= 6, "whichever of %d allocations fails: said", n);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		for (k = 0; k < sizeof(block) / sizeof(block[0]); k++) {
			memset(&s, 0, sizeof(s));
			s.ndim = (uint8_t)t[i].ndim;
			s.numel = 1;
			for (d = 0; d < s.ndim; d++)
				s.numel *= s.dim[d] = t[i].dim[d];
			e = (struct err)ERR_INIT;
			ok(right(&s, block[k], &e) == 0, "shape %zu, blocks of "
			    "%zu bytes: %s", i, block[k], ERR_MSG(&e));
		}
	return done_testing();
}
