/* Check the gradients. */
#ifndef TRAIN_CHECK_H
#define TRAIN_CHECK_H

#include <stdint.h>
#include <stdio.h>

struct shape;

/* check_gradient(s, theta, grad, text, b, out): check grad f32[n], the float model's
 * gradient at theta f32[n] for text u8[b][T+1]. Print a line per tensor: the worst
 * distance between the double gradient and central differences at 24 places, relative to
 * the tensor's largest gradient (limit 1e-6), and ||float - double|| / ||double|| (limit
 * 1e-4). Return 0, 1 if a limit is exceeded, or -1 without memory. */
int check_gradient(const struct shape *s, const float *theta,
    const float *grad, const uint8_t *text, size_t b, FILE *out);

#endif
