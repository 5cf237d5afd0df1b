/*
 * What a quantiser gains that is no row of equal cells: error at the same bits, of
 * independent Gaussian values, each with centres of its cells and the entropy of what
 * it decided, so that the coder does not matter.
 *
 *   nearest  equal steps, the nearest level
 *   by cost  the level of least error and bits
 *   signs    that, and of 16 values one sign is the parity of the sum of levels, so
 *            that it is not sent (sign-bit hiding, HEVC)
 *   E8       points of the lattice: whole, or half more, with an even sum (Conway and
 *            Sloane 1982); decided by cost, coded one by one
 *   4, 8, 32 states of a trellis: the quantisers of kern/kern_tcq.h; 4 as in VVC, 8
 *            and 32 by Ungerboeck's codes 13/04 and 45/10 (1982)
 *
 * Each with the best of several prices of a bit, in squares of its step.
 */
#include <math.h>
#include <string.h>

#include "bench.h"

enum { N = 1 << 15, TOP = 64, TURNS = 8, STEPS = 12, HIDDEN = 16, MOST = 32 };

enum way { NEAREST, COST, SIGNS, E8, FOUR, EIGHT, THIRTY_TWO, WAYS };

/* By quantiser, or half: what a magnitude costs, and its centre. */
static double bits[2][TOP], center[2][TOP];
static double x[N], step, price;
static int k[N];		/* magnitudes */
static unsigned char u[N];

static double
cost(double a, unsigned q, int m)
{
	return (a - center[q][m]) * (a - center[q][m]) + price * bits[q][m];
}

#define ENTROPY(p) ((p) <= 0 || (p) >= 1 ? 0 : -(p) * log2(p) - \
	(1 - (p)) * log2(1 - (p)))

/* Bits of what was decided; costs and centres for the next turn. */
static double
learn(double *error)
{
	double n[2][TOP], sum[2][TOP] = { { 0 } }, all[2] = { 0 }, whole = 0, d;
	unsigned q;
	int i, m;

	for (q = 0; q < 2; q++)
		for (m = 0; m < TOP; m++, all[q] += 0.02)
			n[q][m] = 0.02;
	for (i = 0; i < N; i++) {
		n[u[i]][k[i]]++;
		sum[u[i]][k[i]] += fabs(x[i]);
		all[u[i]]++;
	}
	for (q = 0; q < 2; q++)
		for (m = 0; m < TOP; m++) {
			bits[q][m] = log2(all[q] / n[q][m]) +
			    (m > 0 || center[q][0] > 0);
			if (center[q][m] > 0 && n[q][m] > 50)
				center[q][m] = sum[q][m] / n[q][m];
		}
	for (i = 0, *error = 0; i < N; i++) {
		d = fabs(x[i]) - center[u[i]][k[i]];
		*error += d * d / N;
		whole += bits[u[i]][k[i]];
	}
	return whole;
}

/* The best of the levels around a in quantiser q, or the other of these. */
static int
best(double a, unsigned q, int but)
{
	int m = 0, c, first = (int)(a / step) - 1;
	double least = HUGE_VAL, v;

	for (c = first < 0 ? 0 : first; c < first + 4 && c < TOP; c++)
		if (c != but && (v = cost(a, q, c)) < least) {
			least = v;
			m = c;
		}
	return but != 0 && cost(a, q, 0) < least ? 0 : m;
}

static void
scalar(enum way w)
{
	int i;

	for (i = 0; i < N; i++) {
		u[i] = 0;
		k[i] = w == NEAREST ? (int)(fabs(x[i]) / step + 0.5) :
		    best(fabs(x[i]), 0, -1);
	}
}

/* Makes the parity of each 16 what the first sign is; how many signs that saves. */
static double
hide(void)
{
	int i, j, first, sum, m, at, to;
	double saved = 0, v, least;

	for (i = 0; i < N; i += HIDDEN) {
		for (j = i, sum = 0, first = -1; j < i + HIDDEN; j++) {
			first = first < 0 && k[j] != 0 ? j : first;
			sum += k[j];
		}
		if (first < 0)
			continue;
		saved++;
		if ((sum & 1) == (x[first] < 0))
			continue;
		for (j = first, least = HUGE_VAL, at = to = -1; j < i + HIDDEN; j++)
			for (m = k[j] - 1; m <= k[j] + 1; m += 2) {
				if (m < (j == first) || m >= TOP)
					continue;
				v = cost(fabs(x[j]), 0, m) -
				    cost(fabs(x[j]), 0, k[j]);
				if (v < least) {
					least = v;
					at = j;
					to = m;
				}
			}
		k[at] = to;
	}
	return saved;
}

/* Eight values in one half of the lattice, with an even sum; the cost.  A whole
 * magnitude m is m or -m, half more m is m or -m - 1. */
static double
eight(const double *v, unsigned half, int m[8])
{
	double sum = 0, least = HUGE_VAL, d;
	int i, odd = 0, at = 0, other[8];

	for (i = 0; i < 8; i++) {
		m[i] = best(fabs(v[i]), half, -1);
		odd ^= (m[i] + (half && v[i] < 0)) & 1;
		sum += cost(fabs(v[i]), half, m[i]);
	}
	for (i = 0; odd && i < 8; i++) {
		other[i] = best(fabs(v[i]), half, m[i]);
		if (((other[i] ^ m[i]) & 1) == 0)
			other[i] = m[i] + 1;
		d = cost(fabs(v[i]), half, other[i]) -
		    cost(fabs(v[i]), half, m[i]);
		if (d < least) {
			least = d;
			at = i;
		}
	}
	if (odd)
		m[at] = other[at];
	return odd ? sum + least : sum;
}

/* What the halves cost, less the parity that the last of eight need not say. */
static double
lattice(double *share)
{
	double halves = 0, odd = 0, whole = 0, price_half[2];
	int i, j, m[2][8], h;

	for (h = 0; h < 2; h++)
		price_half[h] = -price * log2(h ? *share : 1 - *share);
	for (i = 0; i < N; i += 8) {
		h = eight(x + i, 1, m[1]) + price_half[1] <
		    eight(x + i, 0, m[0]) + price_half[0];
		for (j = 0; j < 8; j++) {
			k[i + j] = m[h][j];
			u[i + j] = (unsigned char)h;
			whole += !h;
			odd += !h && (m[h][j] & 1);
		}
		halves += h;
	}
	*share = fmin(fmax(halves * 8 / N, 0.001), 0.999);
	return N / 8 * ENTROPY(*share) - halves -
	    whole / 8 * ENTROPY(odd / (whole + 1));
}

/* Where a level of parity p leads to from state s; its lowest bit is the quantiser, of
 * four states the other one. */
static unsigned
next(unsigned states, unsigned s, unsigned p)
{
	static const unsigned char four[4][2] = { { 0, 2 }, { 2, 0 }, { 1, 3 },
		{ 3, 1 } };

	return states == 4 ? four[s][p] : states == 8 ? ((s ^ s >> 1) & 1) |
	    ((s >> 2 ^ p) & 1) << 1 | (s & 1) << 2 : (s >> 1 & 1) |
	    ((s >> 2 ^ s) & 1) << 1 | ((s >> 3 ^ p) & 1) << 2 |
	    (s >> 4 & 1) << 3 | (s & 1) << 4;
}

/* The path of least cost; a level of quantiser 1 is one step less. */
static void
trellis(unsigned states)
{
	static unsigned char from[N][MOST], level[N][MOST];
	double was[MOST], now[MOST], a, v;
	unsigned s, n, q, end = 0;
	int i, m, c, first;

	for (s = 0; s < states; s++)
		was[s] = s == 0 ? 0 : 1e9;
	for (i = 0; i < N; i++) {
		a = fabs(x[i]);
		for (s = 0; s < states; s++)
			now[s] = HUGE_VAL;
		for (s = 0; s < states; s++) {
			q = states == 4 ? s >> 1 : s & 1;
			first = (int)((a / step + q) / 2) - 1;
			for (c = 0; c < 6; c++) {
				m = c == 0 ? 0 : first + c - 1;
				if (m < (c != 0) || m >= TOP)
					continue;
				n = next(states, s, (unsigned)m & 1);
				v = was[s] + cost(a, q, m);
				if (v >= now[n])
					continue;
				now[n] = v;
				from[i][n] = (unsigned char)s;
				level[i][n] = (unsigned char)m;
			}
		}
		memcpy(was, now, sizeof(was));
	}
	for (s = 1; s < states; s++)
		end = was[s] < was[end] ? s : end;
	for (i = N; i-- > 0; end = from[i][end]) {
		k[i] = level[i][end];
		u[i] = (unsigned char)(states == 4 ? from[i][end] >> 1 :
		    from[i][end] & 1);
	}
}

/* Bits a value of a way with a step and a price of its square. */
static double
one(enum way w, double s, double slope, double *error)
{
	double bit = 0, more = 0, share = 0.5;
	int turn, m;

	step = s;
	price = slope * s * s;
	for (m = 0; m < TOP; m++) {
		center[0][m] = s * (w >= FOUR ? 2 * m : m);
		center[1][m] = w == E8 ? s * (m + 0.5) : m > 0 ? s * (2 * m - 1) : 0;
		bits[0][m] = bits[1][m] = m;
	}
	for (turn = 0; turn < TURNS; turn++) {
		if (w >= FOUR)
			trellis(w == FOUR ? 4 : w == EIGHT ? 8 : 32);
		else if (w == E8)
			more = lattice(&share);
		else
			scalar(w);
		if (w == SIGNS)
			more = -hide();
		bit = learn(error);
	}
	return (bit + more) / N;
}

/* The error in so many bits. */
static double
at(enum way w, double slope, double rate)
{
	double lo = 0.05, hi = 5, mid, error = 1;
	int i;

	for (i = 0; i < STEPS; i++) {
		mid = sqrt(lo * hi);
		*(one(w, mid, slope, &error) > rate ? &lo : &hi) = mid;
	}
	(void)one(w, hi, slope, &error);
	return error;
}

int
main(void)
{
	static const double rate[] = { 0.3, 0.5, 1, 1.28, 2 };
	static const double slope[] = { 0.1, 0.15, 0.2 };
	double least, unused;
	size_t i, j, r;
	int w;

	for (i = 0; i < N; i += 2)
		pair(9, (uint32_t)i, &x[i], &x[i + 1], &unused);
	(void)printf("%-6s %8s %8s %8s %8s %8s %8s %8s %8s   error at the same bits\n",
	    "bits", "nearest", "by cost", "signs", "E8", "4", "8", "32",
	    "Shannon");
	for (r = 0; r < sizeof(rate) / sizeof(rate[0]); r++) {
		(void)printf("%-6g", rate[r]);
		for (w = 0; w < WAYS; w++) {
			for (j = 0, least = 1; j < (w == NEAREST ? 1 : 3); j++)
				least = fmin(least, at((enum way)w, slope[j],
				    rate[r]));
			(void)printf(" %8.4f", least);
			(void)fflush(stdout);
		}
		(void)printf(" %8.4f\n", pow(4, -rate[r]));
	}
	return 0;
}
