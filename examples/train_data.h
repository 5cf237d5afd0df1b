/*
 * The text: the bytes of files, one file after another.  The last part is kept for
 * validation; the rest is divided among the devices.
 */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include <stddef.h>
#include <stdint.h>

struct data {
	uint8_t *text;
	size_t n, train;	/* bytes in total; bytes before the validation part */
};

/* A device's share of the training text. */
struct data_share {
	size_t index, of;	/* device index, from 0, and number of devices */
	int interleaved;	/* 1: devices get stripes by turns; 0: one part each */
};

/* Read n files; valid: the share kept for validation. Return 0, or -1 with errno set and
 * *bad the file that failed. Call data_free in either case. */
int data_read(struct data *d, char *const *file, size_t n, double valid,
    const char **bad);
void data_free(struct data *d);

/* Return 1 if the share of each of `of' devices has room for 8 windows of t+1 bytes, and the
 * validation part for 2, else 0. */
int data_enough(const struct data *d, size_t of, size_t t);

/* Return the number of windows of t+1 bytes in a device's share, which are one pass. */
size_t data_windows(const struct data *d, const struct data_share *s,
    size_t t);

/* Copy windows step*b to step*b + b-1 of the device's share, of t+1 bytes each, to out.  Their
 * order depends only on the seed and the device.  For any b, no window is repeated before
 * all were read.  The share must be long enough (data_enough). */
void data_batch(const struct data *d, const struct data_share *s, size_t b,
    size_t t, uint64_t seed, uint64_t step, uint8_t *out);

/* Copy window i of count, spread evenly over the validation text, to out u8[t+1]. */
void data_window(const struct data *d, size_t i, size_t count, size_t t,
    uint8_t *out);

/* Compute the cross-entropy (nats) and top-1 share on the validation text of a model
 * that knows only the frequency of each byte in the training text. */
void data_unigram(const struct data *d, double *loss, double *top1);

#endif
