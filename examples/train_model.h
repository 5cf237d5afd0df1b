/*
 * The model of the example trainer: a decoder-only transformer over bytes, with a
 * hand-written backward pass.
 *
 *   x   = wte[byte] + wpe[position]
 *   x  += Wo attention(rms(x) g1)          per layer, causal, several heads
 *   x  += W2 relu(W1 rms(x) g2)^2          squared ReLU (So et al. 2021)
 *   p   = softmax(wte rms(x) gf)           the embedding is the output matrix too
 *
 * No biases; rms(x) = x / sqrt(mean(x^2) + 1e-5) (Zhang, Sennrich 2019).
 * Matrices are [out][in], as PyTorch has them.
 *
 * In this file: B sequences, T positions, N = B T, C width, H heads, V = 256.
 * real is float; train_check.c compiles the same source with double to compare it
 * with finite differences.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifndef real
#define real float
#endif

enum { MODEL_VOCAB = 256, MODEL_FAN = 4 };

struct shape {
	size_t layers, width, heads, context;
	int factored;		/* 1: the scales of train_factor.h follow the parameters */
};

struct tensor {
	char name[32];
	unsigned ndim;
	size_t dim[2];
	size_t at, n;		/* the tensor is theta[at .. at + n - 1] */
	int hidden;		/* 1: a matrix inside a layer */
	int still;		/* 1: it is not trained */
};

/* Values of one layer that the forward pass keeps for the backward pass. */
struct layer {
	real *x, *rms1, *xn1;	/* [N][C] [N] [N][C] */
	real *qkv;		/* [N][3C] */
	real *p;		/* [B][H][T][T] */
	real *att;		/* [N][C] */
	real *y, *rms2, *xn2;	/* [N][C] [N] [N][C]: after the attention */
	real *r, *a;		/* [N][4C]: relu, its square */
};

struct model {
	struct shape s;
	struct tensor *tensor;
	size_t ntensors, nsent;	/* tensors of the model; these and the scales after them */
	size_t params, n;	/* values of the model; these and the scales */
	real *theta, *grad;	/* [n] */
	size_t batch;		/* most sequences in one call */
	struct layer *layer;
	real *x, *rmsf, *xnf;	/* the last layer's output, normalised in xnf */
	real *logits;		/* [N][V]; then probabilities, then the loss's gradient */
	real *dx, *dn, *dwide;	/* [N][C] [N][C] [N][4C]: scratch */
	real *dp;		/* [T][T] */
	uint8_t flip;		/* bits that model_backward flips in every label; 0: none */
	/* called by model_backward for each tensor whose gradient is complete, from
	 * the last layer on; may be NULL */
	void (*ready)(void *arg, size_t tensor);
	void *arg;
	void *memory;
};

/* Return a model with theta 0, or NULL without memory. batch: most sequences of a call;
 * the width must be a multiple of the heads. */
struct model *model_new(const struct shape *s, size_t batch);
void model_free(struct model *m);

/* Initialise theta from the seed: matrices uniform with variance 1 / (3 columns), embeddings
 * with 0.02^2; 0 in matrices that write into the residual stream; 1 in gains. */
void model_init(struct model *m, uint64_t seed);

/* Set every parameter at random, uniform in [-a,a], so that no tensor's gradient is 0. */
void model_scatter(struct model *m, uint64_t seed, real a);

/* model_loss(m, text, b, hits): return the mean over N of -log p(next byte), in
 * nats. text u8[b][T+1]: inputs text[i][0..T-1], targets text[i][1..T]. Add to *hits,
 * unless hits is NULL, the number of positions whose likeliest byte is right. Keep the
 * values that model_backward needs. */
double model_loss(struct model *m, const uint8_t *text, size_t b,
    size_t *hits);

/* Set order[ntensors] to the order in which model_backward finishes the tensors. */
void model_order(const struct model *m, size_t *order);

/* Add d loss / d theta to grad, for the text and b of the last model_loss; call it once. */
void model_backward(struct model *m, const uint8_t *text, size_t b);

/* Return a random number that depends only on (seed, stream, counter). */
uint64_t model_random(uint64_t seed, uint64_t stream, uint64_t counter);

#endif
