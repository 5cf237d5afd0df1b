/*
 * Pictures in SVG: titles, bars and curves, one below the other.  No other
 * program is needed, and the same numbers give the same bytes.  Functions that
 * return int return 0 or -ERR_SYS.
 */
#ifndef ACE_SVG_H
#define ACE_SVG_H

#include "base/alloc.h"

struct err;
struct io;

struct svg {
	struct buf out;
	int y;			/* of what was drawn last */
	int pen;		/* a curve is being drawn, in pixels: */
	int base;		/* the y of what is 0 in it */
};
#define SVG_INIT { BUF_INIT, 0, 0, 0 }

enum { SVG_NAME = 30 };		/* bytes of a name */

/* svg_name(to, name): what a terminal and XML would obey becomes a question
 * mark, and what is longer is cut off. */
void svg_name(char to[SVG_NAME + 1], const char *name);

int svg_title(struct svg *s, const char *title, struct err *e);
/* svg_label(s, text, e): a line of text where the names of bars are. */
int svg_label(struct svg *s, const char *text, struct err *e);
/* svg_bar(s, label, v, top, value, e): a bar for v, where top is as long as they
 * get, with what stands before and behind it. */
int svg_bar(struct svg *s, const char *label, double v, double top,
    const char *value, struct err *e);

/* svg_frame(s, lo, hi, e): the room for curves, with what stands at its lower
 * and its upper edge. */
int svg_frame(struct svg *s, const char *lo, const char *hi, struct err *e);
/* svg_curve(s, k, x, y, e): the next point of a curve in the k-th colour, both
 * from 0 to 1; NAN: the curve has a gap here.  svg_lift(s, e): the curve ends;
 * to be called after each. */
int svg_curve(struct svg *s, size_t k, double x, double y, struct err *e);
int svg_lift(struct svg *s, struct err *e);
/* svg_key(s, k, text, e): a line of text in the k-th colour. */
int svg_key(struct svg *s, size_t k, const char *text, struct err *e);

/* svg_write(s, out, e): the whole picture. */
int svg_write(struct svg *s, struct io *out, struct err *e);
void svg_release(struct svg *s);

#endif
