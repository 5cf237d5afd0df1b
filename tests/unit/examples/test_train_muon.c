/*
 * train_muon: muon_turn, for a momentum with known direction and spectrum.
 */
#include "../../../examples/train_muon.h"
#include "../tap.h"

enum { R = 3, C = 4 };

/* Orthonormal rows; m has each of them times its scale. */
static const float rows[R][C] = { { 0.5f, 0.5f, 0.5f, 0.5f },
    { 0.5f, -0.5f, 0.5f, -0.5f }, { 0.5f, 0.5f, -0.5f, -0.5f } };
static const float scale[R] = { 3, 1, 0.5f };

/* Return how far muon_turn is from (1 - share) m + share scale dir; tall 1: transposed. */
static double
turned(int tall, float share)
{
	float m[R * C], dir[R * C], scratch[MUON_SCRATCH(R * C)];
	double most = 0;
	size_t i, j, at;

	for (i = 0; i < R; i++)
		for (j = 0; j < C; j++) {
			at = tall ? j * R + i : i * C + j;
			m[at] = scale[i] * rows[i][j];
			dir[at] = (float)(i + 1) - 0.7f * (float)j;
		}
	muon_turn(m, dir, share, tall ? C : R, tall ? R : C, scratch);
	for (i = 0; i < R; i++)
		for (j = 0; j < C; j++) {
			at = tall ? j * R + i : i * C + j;
			most = fmax(most, fabs((double)m[at] -
			    (double)((1 - share) * scale[i] * rows[i][j]) -
			    (double)(share * scale[i] * dir[at])));
		}
	return most;
}

int
main(void)
{
	ok(turned(0, 1) < 1e-4 && turned(0, 0.25f) < 1e-4 && turned(0, 0) < 1e-6,
	    "the spectrum stays, the direction is the other: %g", turned(0, 1));
	ok(turned(1, 1) < 1e-4 && turned(1, 0.25f) < 1e-4,
	    "more rows than columns: %g", turned(1, 1));
	return done_testing();
}
