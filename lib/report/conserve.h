/*
 * Check that no value of a device was lost or delivered twice.  From the device's state, its
 * receiver's spool and all inputs of its ace-compress, compute for each element, in exact
 * arithmetic:
 *
 *   sum of the inputs up to step t
 *     =  e_t  +  sum over accepted shards of dec(C)
 *             +  sum over pending shards not accepted of dec(C)
 *
 * where e_t is the residual, t its step and dec(C) a decoded shard of the residual's
 * incarnation (with feedback `cache' its reconstruction).  The sums are fixed-point numbers
 * with room for 2^42 f32.
 */
#ifndef ACE_CONSERVE_H
#define ACE_CONSERVE_H

#include <stdint.h>

#include "format/reader.h"

struct err;

struct conserve_in {
	const char *state;	/* the device's state directory */
	const char *spool;	/* its receiver's directory */
	char *const *input;	/* files; shards of other devices are skipped */
	size_t n;
	const struct reader_opts *in;	/* options for reading the inputs */
};

struct conserve {
	char device[256];
	uint64_t step;		/* step of the residual */
	uint64_t steps;		/* number of input shards that were counted */
	uint64_t accepted, pending;	/* number of shards: accepted; pending and not accepted */
	uint64_t elements;	/* of the model */
	uint64_t off;		/* number of elements whose two sides differ at all */
	uint64_t violated;	/* number of elements beyond the bound */
	double worst;		/* largest |left side - right side| of an element */
	/* first element beyond the bound: */
	char tensor[256];
	uint64_t index;
	double given;		/* sum of the inputs */
	double missing;		/* given minus the right side of the equation */
};

/*
 * Return 0 if both sides have the same bits (off == 0) or differ in every element by at
 * most 2^-23 * steps * the sum of all terms' magnitudes (each step rounds at most twice, and
 * no intermediate sum is larger).  Otherwise return -ERR_DATA, "mismatch: ...", with
 * c->violated > 0.  Another error means that the check was impossible, such as -ERR_REFUSED
 * if shards were removed from the spool or the state changed during the check.
 *
 * This uses up to 64 MiB of memory.  For a model of more than 2^20 elements it reads the
 * inputs several times; then no input may be a pipe.
 */
int conserve_check(struct conserve *c, const struct conserve_in *in, struct err *e);

#endif
