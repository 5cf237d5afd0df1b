/*
 * Do the books balance?  For a device, its receiver's spool and everything
 * that was ever given to its coder, element by element, in exact arithmetic:
 *
 *   sum of the inputs up to step t
 *     =  e_t  +  sum over accepted shards of dec(C)
 *             +  dec(C) of those pending that are not accepted
 *
 * with t the step of the residual.  Sums are kept in fixed point wide enough
 * for any f32, so "exact" means that not a bit is missing.
 */
#ifndef ACE_CONSERVE_H
#define ACE_CONSERVE_H

#include <stdint.h>

#include "format/reader.h"

struct err;

struct conserve_in {
	const char *state;	/* directory of the device */
	const char *spool;	/* of its receiver */
	char *const *input;	/* files; shards of other devices are skipped */
	size_t n;
	const struct reader_opts *in;	/* how inputs are read */
};

struct conserve {
	char run[256], device[256];
	uint64_t step;		/* of the residual */
	uint64_t steps;		/* inputs that count */
	uint64_t accepted, pending;	/* shards; pending and not accepted */
	uint64_t elements;
	uint64_t off;		/* elements that do not balance to the bit */
	uint64_t violated;	/* elements beyond the bound */
	double worst;		/* largest |difference| */
	/* of the first element beyond the bound */
	char tensor[256];
	uint64_t index;
	double given;		/* sum of the inputs */
	double missing;		/* and that less what became of them */
	double bound;		/* what rounding may make of it */
};

/*
 * conserve_check(c, in, e): 0 the books balance: exactly (off == 0), or every
 * element within 2^-23 * steps * sum of the magnitudes added (each step rounds
 * at most twice, and no sum on the way is larger).  -ERR_DATA "mismatch: ..." with
 * c->violated != 0: they do not.  Other errors: it could not be told, such as
 * -ERR_REFUSED when shards were removed from the spool, or the state changed
 * while it was read.
 *
 * Memory: 64 MiB; larger models are read several times, and then no input may
 * be a pipe.
 */
int conserve_check(struct conserve *c, const struct conserve_in *in,
    struct err *e);

#endif
