/*
 * The text: files one after another as bytes.  The last part is kept for
 * validation, the rest is shared out among the devices.
 */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include <stddef.h>
#include <stdint.h>

struct data {
	uint8_t *text;
	size_t n, train;	/* bytes in all, and before the validation */
};

/* Which bytes are whose. */
struct data_share {
	size_t index, of;	/* device index, from 0, among so many */
	int interleaved;	/* stripes in turn, not one part each */
};

/* Reads the files; valid is the share kept.  0, or -1 with errno set; *bad is
 * the file it failed on. */
int data_read(struct data *d, char *const *file, size_t n, double valid,
    const char **bad);
void data_free(struct data *d);

/* Whether every device's share and the validation hold a window of t+1. */
int data_enough(const struct data *d, size_t of, size_t t);

/* How many windows of t+1 bytes a device's share has: what one pass is. */
size_t data_windows(const struct data *d, const struct data_share *s,
    size_t t);

/*
 * b windows of t+1 bytes out of the device's share, which is long enough: those
 * from step*b on in an order that is a function of the seed and the device.  No
 * window comes twice before all have come, whatever b is.
 */
void data_batch(const struct data *d, const struct data_share *s, size_t b,
    size_t t, uint64_t seed, uint64_t step, uint8_t *out);

/* Window i of count, spread evenly over the validation text. */
void data_window(const struct data *d, size_t i, size_t count, size_t t,
    uint8_t *out);

/* Cross-entropy (nats) and top-1 share on the validation text of a model that
 * knows only how often each byte occurs in the training text. */
void data_unigram(const struct data *d, double *loss, double *top1);

#endif
