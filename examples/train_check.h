/* Whether the gradients are right. */
#ifndef TRAIN_CHECK_H
#define TRAIN_CHECK_H

#include <stdint.h>
#include <stdio.h>

struct shape;

/*
 * check_gradient(s, theta, grad, text, b, out): grad f32[n] as the float model
 * computed it at theta f32[n] for text u8[b][T+1].  Prints a line per tensor:
 * the worst distance between the double gradient and central differences at 24
 * places, as a share of the tensor's largest gradient (at most 1e-6 is right),
 * and ||float - double|| / ||double|| (at most 1e-4).
 * Returns 0, 1 when one is wrong, -1 when memory runs out.
 */
int check_gradient(const struct shape *s, const float *theta,
    const float *grad, const uint8_t *text, size_t b, FILE *out);

#endif
