/*
 * In how many transmissions, cut where: layer-wise segments that overlap the
 * network with the computation (DynaComm, Cai et al., IEEE JSAC 2022).
 *
 * Layer i takes pt[i] on the link and fc[i] to compute; each transmission
 * costs dt more.  Segments are ranges of layers 0 = b_0 < b_1 < ... < b_n = L,
 * sent back to back; with prefix sums PT, FC,
 *
 *   A_j = j dt + PT[b_j]					arrival
 *   C_j = max(C_{j-1}, A_j) + FC[b_j] - FC[b_{j-1}]		computed
 *   T_forward = C_n
 *
 * Backward the layers are computed from L down to 1 without waiting; a
 * transmission starts when its lowest layer is computed and the link is free.
 * That is the forward problem seen backwards in time, with the backward
 * computation as fc and the gradients as pt, so one solver serves both.
 *
 * Times are whole nanoseconds: optimal means optimal, not nearly.  The
 * objective is the paper's as it is reported; the solver, the reversal and the
 * form of ibatch are ours.
 */
#ifndef ACE_DYNACOMM_H
#define ACE_DYNACOMM_H

#include <stddef.h>
#include <stdint.h>

struct err;

struct dynacomm {
	size_t n;		/* layers, >= 1 */
	int64_t dt;		/* of each transmission */
	int64_t *pt, *fc;	/* n + 1 prefix sums each */
};
#define DYNACOMM_INIT { 0, 0, NULL, NULL }

/* dynacomm_init(d, pt, fc, n, dt, e): all >= 0 and n >= 1, else -ERR_USAGE;
 * limit (-ERR_DATA): pt, fc and n dt together above 2^61 ns. */
int dynacomm_init(struct dynacomm *d, const int64_t *pt, const int64_t *fc,
    size_t n, int64_t dt, struct err *e);
void dynacomm_release(struct dynacomm *d);

/* Cuts are b_1 .. b_k, in room for n of them, both directions alike: backward
 * the segment above b_{k-1} goes first. */
int64_t dynacomm_forward(const struct dynacomm *d, const size_t *cuts, size_t k);
int64_t dynacomm_backward(const struct dynacomm *d, const size_t *cuts, size_t k);

/* dynacomm_best(d, cuts, k, e): the optimum, with the fewest segments that reach
 * it; of several such cuts those that take most layers first.  With the layers
 * counted from the top, B[m] = min over k < m of max(B[k], FC'[m]) + dt + PT'[m] -
 * PT'[k]; B never falls, so the best k is the last one below FC'[m] or the least
 * B[k] - PT'[k] of those above, a window that only moves on: O(L), where the
 * paper's recurrence over layers and transmissions takes O(L^3).
 * 0 or -ERR_SYS (no memory). */
int dynacomm_best(const struct dynacomm *d, size_t *cuts, size_t *k, struct err *e);

/* What others do.  One transmission; one a layer; greedy batches in the
 * manner of iBatch (Wang et al., AAAI 2019; reconstructed, since only its idea
 * is known here): forward, the first batch is layer 1, the next as many layers
 * as arrive while the batch before is computed, one at least; backward, what
 * was computed while the link was busy. */
size_t dynacomm_sequential(const struct dynacomm *d, size_t *cuts);
size_t dynacomm_layers(const struct dynacomm *d, size_t *cuts);
size_t dynacomm_ibatch(const struct dynacomm *d, size_t *cuts);
size_t dynacomm_ibatch_backward(const struct dynacomm *d, size_t *cuts);

#endif
