/*
 * Cut a model's layers into segments, one per transmission, so that the network
 * overlaps with the computation (DynaComm, Cai et al., IEEE JSAC 2022).
 *
 * Layer i takes pt[i] on the link and fc[i] to compute; each transmission
 * costs dt more.  Segments are ranges of layers 0 = b_0 < b_1 < ... < b_n = L,
 * sent back to back; with prefix sums PT, FC,
 *
 *   A_j = j dt + PT[b_j]					arrival
 *   C_j = max(C_{j-1}, A_j) + FC[b_j] - FC[b_{j-1}]		computed
 *   T_forward = C_n
 *
 * In the backward pass the layers are computed from L down to 1 without waiting; a
 * transmission starts when its lowest layer is computed and the link is free.  This is
 * the forward problem reversed in time, with the backward computation as fc and the
 * gradients as pt, so one solver serves both.
 *
 * Times are whole nanoseconds, so the optimum is exact.  The objective is the
 * paper's as others report it; the solver, the reversal and the form of ibatch
 * are ours.
 */
#ifndef ACE_DYNACOMM_H
#define ACE_DYNACOMM_H

#include <stddef.h>
#include <stdint.h>

struct err;

struct dynacomm {
	size_t n;		/* layers, >= 1 */
	int64_t dt;		/* extra time per transmission, ns */
	int64_t *pt, *fc;	/* n + 1 prefix sums each */
};
#define DYNACOMM_INIT { 0, 0, NULL, NULL }

/* Copy the times of n layers, in ns.  Return 0; -ERR_USAGE if n is 0 or a time is
 * negative; -ERR_DATA (limit) if pt, fc and n dt exceed 2^61 together; -ERR_SYS. */
int dynacomm_init(struct dynacomm *d, const int64_t *pt, const int64_t *fc,
    size_t n, int64_t dt, struct err *e);
void dynacomm_release(struct dynacomm *d);

/* Return the time of a pass in ns.  The cuts are b_1 .. b_k for both directions;
 * backward, the segment above b_{k-1} is sent first. */
int64_t dynacomm_forward(const struct dynacomm *d, const size_t *cuts, size_t k);
int64_t dynacomm_backward(const struct dynacomm *d, const size_t *cuts, size_t k);

/* Find the optimum with the fewest segments; of several, the one whose early segments are
 * longest.  cuts has room for n.  B[m] is the earliest end of sending the m top layers, whose
 * times add up to PT'[m] and FC'[m]:
 *   B[m] = min over k < m of max(B[k], FC'[m]) + dt + PT'[m] - PT'[k]
 * B never falls, so the best k is the last one with B[k] <= FC'[m], or the one above it
 * with the least B[k] - PT'[k].  A window that only moves forward finds these in O(L);
 * the paper's recurrence over layers and transmissions takes O(L^3).
 * Return 0 or -ERR_SYS (no memory). */
int dynacomm_best(const struct dynacomm *d, size_t *cuts, size_t *k, struct err *e);

/* Simple rules, for comparison; each sets cuts and returns their number.  sequential: one
 * transmission.  layers: one per layer.  ibatch: greedy batches after iBatch (Wang et
 * al., AAAI 2019; reconstructed from its idea).  Forward, the first batch is layer 1;
 * each later one has the layers that arrive while the batch before is computed, at least
 * one.  Backward, a batch has the layers that were computed while the link was busy, at least
 * one. */
size_t dynacomm_sequential(const struct dynacomm *d, size_t *cuts);
size_t dynacomm_layers(const struct dynacomm *d, size_t *cuts);
size_t dynacomm_ibatch(const struct dynacomm *d, size_t *cuts);
size_t dynacomm_ibatch_backward(const struct dynacomm *d, size_t *cuts);

#endif
