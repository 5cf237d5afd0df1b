/*
 * The published shapes of four networks, one row per layer with parameters, from which
 * schedules of transmissions are computed.
 *
 *   VGG-19        Simonyan and Zisserman 2014, table 1, E
 *   GoogLeNet     Szegedy et al. 2014, table 1, without the side classifiers
 *   Inception-v4  Szegedy et al. 2016, figures 3 to 9
 *   ResNet-152    He et al. 2015, table 1, strides in the 3 x 3
 *
 * Parallel branches are listed one after another.
 */
#ifndef NETS_H
#define NETS_H

#include <stddef.h>

enum { NET_MOST = 160 };

struct net {
	const char *name;
	size_t n;
	double values[NET_MOST];	/* parameters */
	double macs[NET_MOST];		/* multiply-adds of an image, forward */
};

/* Add a convolution with `window' weights per pair of channels, from c to d channels,
 * with side x side outputs. extra: parameters per output channel, 1: bias; 2: batch norm. */
static inline void
net_conv(struct net *x, int window, int c, int d, int side, int extra)
{
	double weights = (double)window * c * d;

	x->macs[x->n] = weights * side * side;
	x->values[x->n++] = weights + (double)extra * d;
}

static inline void
net_vgg19(struct net *x)
{
	static const int block[5][2] = { { 2, 64 }, { 2, 128 }, { 4, 256 },
	    { 4, 512 }, { 4, 512 } };
	int i, j, c = 3, side = 224;

	for (i = 0; i < 5; i++, side /= 2)
		for (j = 0; j < block[i][0]; j++, c = block[i][1])
			net_conv(x, 9, c, block[i][1], side, 1);
	net_conv(x, 1, 7 * 7 * 512, 4096, 1, 1);
	net_conv(x, 1, 4096, 4096, 1, 1);
	net_conv(x, 1, 4096, 1000, 1, 1);
}

static inline void
net_googlenet(struct net *x)
{
	/* channels: 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection; then the side */
	static const int m[9][7] = {
	    { 64, 96, 128, 16, 32, 32, 28 },
	    { 128, 128, 192, 32, 96, 64, 28 },
	    { 192, 96, 208, 16, 48, 64, 14 },
	    { 160, 112, 224, 24, 64, 64, 14 },
	    { 128, 128, 256, 24, 64, 64, 14 },
	    { 112, 144, 288, 32, 64, 64, 14 },
	    { 256, 160, 320, 32, 128, 128, 14 },
	    { 256, 160, 320, 32, 128, 128, 7 },
	    { 384, 192, 384, 48, 128, 128, 7 } };
	int i, c = 192;

	net_conv(x, 49, 3, 64, 112, 1);
	net_conv(x, 1, 64, 64, 56, 1);
	net_conv(x, 9, 64, 192, 56, 1);
	for (i = 0; i < 9; i++) {
		const int *k = m[i];

		net_conv(x, 1, c, k[0], k[6], 1);
		net_conv(x, 1, c, k[1], k[6], 1);
		net_conv(x, 9, k[1], k[2], k[6], 1);
		net_conv(x, 1, c, k[3], k[6], 1);
		net_conv(x, 25, k[3], k[4], k[6], 1);
		net_conv(x, 1, c, k[5], k[6], 1);
		c = k[0] + k[2] + k[4] + k[5];
	}
	net_conv(x, 1, c, 1000, 1, 1);
}

/* Add n convolutions by net_conv, with window, c and d from w[i], and with batch norm. */
static inline void
net_block(struct net *x, const int (*w)[3], int n, int side)
{
	int i;

	for (i = 0; i < n; i++)
		net_conv(x, w[i][0], w[i][1], w[i][2], side, 2);
}

static inline void
net_inception4(struct net *x)
{
	/* window, from, to, side */
	static const int stem[11][4] = { { 9, 3, 32, 149 }, { 9, 32, 32, 147 },
	    { 9, 32, 64, 147 }, { 9, 64, 96, 73 }, { 1, 160, 64, 73 },
	    { 9, 64, 96, 71 }, { 1, 160, 64, 73 }, { 7, 64, 64, 73 },
	    { 7, 64, 64, 73 }, { 9, 64, 96, 71 }, { 9, 192, 192, 35 } };
	static const int a[7][3] = { { 1, 384, 96 }, { 1, 384, 96 },
	    { 1, 384, 64 }, { 9, 64, 96 }, { 1, 384, 64 }, { 9, 64, 96 },
	    { 9, 96, 96 } };
	static const int b[10][3] = { { 1, 1024, 128 }, { 1, 1024, 384 },
	    { 1, 1024, 192 }, { 7, 192, 224 }, { 7, 224, 256 },
	    { 1, 1024, 192 }, { 7, 192, 192 }, { 7, 192, 224 },
	    { 7, 224, 224 }, { 7, 224, 256 } };
	static const int c[10][3] = { { 1, 1536, 256 }, { 1, 1536, 256 },
	    { 1, 1536, 384 }, { 3, 384, 256 }, { 3, 384, 256 },
	    { 1, 1536, 384 }, { 3, 384, 448 }, { 3, 448, 512 },
	    { 3, 512, 256 }, { 3, 512, 256 } };
	static const int reduce[10][4] = { { 9, 384, 384, 17 },
	    { 1, 384, 192, 35 }, { 9, 192, 224, 35 }, { 9, 224, 256, 17 },
	    { 1, 1024, 192, 17 }, { 9, 192, 192, 8 }, { 1, 1024, 256, 17 },
	    { 7, 256, 256, 17 }, { 7, 256, 320, 17 }, { 9, 320, 320, 8 } };
	int i, j;

	for (i = 0; i < 11; i++)
		net_conv(x, stem[i][0], stem[i][1], stem[i][2], stem[i][3], 2);
	for (j = 0; j < 4; j++)
		net_block(x, a, 7, 35);
	for (i = 0; i < 4; i++)
		net_conv(x, reduce[i][0], reduce[i][1], reduce[i][2],
		    reduce[i][3], 2);
	for (j = 0; j < 7; j++)
		net_block(x, b, 10, 17);
	for (; i < 10; i++)
		net_conv(x, reduce[i][0], reduce[i][1], reduce[i][2],
		    reduce[i][3], 2);
	for (j = 0; j < 3; j++)
		net_block(x, c, 10, 8);
	net_conv(x, 1, 1536, 1000, 1, 1);
}

static inline void
net_resnet152(struct net *x)
{
	static const int blocks[4] = { 3, 8, 36, 3 };
	int i, j, c = 64, w = 64, side = 56;

	net_conv(x, 49, 3, 64, 112, 2);
	for (i = 0; i < 4; i++, w *= 2, side /= 2)
		for (j = 0; j < blocks[i]; j++, c = 4 * w) {
			/* the first block of stages 2 to 4 halves the side in its 3 x 3 */
			net_conv(x, 1, c, w, i > 0 && j == 0 ? 2 * side : side,
			    2);
			net_conv(x, 9, w, w, side, 2);
			net_conv(x, 1, w, 4 * w, side, 2);
			if (j == 0)
				net_conv(x, 1, c, 4 * w, side, 2);
		}
	net_conv(x, 1, 2048, 1000, 1, 1);
}

enum { NETS = 4 };

static inline void
net_get(struct net *x, size_t i)
{
	static const char *const names[NETS] = { "VGG-19", "GoogLeNet",
	    "Inception-v4", "ResNet-152" };
	void (*const make[NETS])(struct net *) = { net_vgg19, net_googlenet,
	    net_inception4, net_resnet152 };

	*x = (struct net){ .name = names[i] };
	make[i](x);
}

#endif
