#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "format/text.h"
#include "report/svg.h"

enum {
	SVG_ROW = 16, SVG_LEFT = 220, SVG_BARS = 440, SVG_WIDTH = 960,
	SVG_FRAME = 8 * SVG_ROW, SVG_CURVES = 720
};

static int __attribute__((format(printf, 3, 4)))
svg_put(struct svg *s, struct err *e, const char *fmt, ...)
{
	char line[400];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	return n < 0 ? 0 : buf_put(&s->out, line, (size_t)n, e);
}

void
svg_name(char to[SVG_NAME + 1], const char *name)
{
	int clean = text_clean(name, strlen(name));
	size_t i;

	for (i = 0; i < SVG_NAME && name[i] != '\0'; i++)
		to[i] = clean && name[i] >= 0x20 && name[i] < 0x7f &&
		    strchr("<>&", name[i]) == NULL ? name[i] : '?';
	to[i] = '\0';
}

int
svg_title(struct svg *s, const char *title, struct err *e)
{
	s->y += 2 * SVG_ROW;
	return svg_put(s, e, "<text x=\"10\" y=\"%d\" font-weight=\"bold\">"
	    "%s</text>\n", s->y, title);
}

int
svg_label(struct svg *s, const char *text, struct err *e)
{
	s->y += SVG_ROW;
	return svg_put(s, e, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">"
	    "%s</text>\n", SVG_LEFT - 6, s->y, text);
}

int
svg_bar(struct svg *s, const char *label, double v, double top,
    const char *value, struct err *e)
{
	double w = top > 0 ? v / top * SVG_BARS : 0;

	s->y += SVG_ROW;
	return svg_put(s, e, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s"
	    "</text><rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>"
	    "<text x=\"%.1f\" y=\"%d\">%s</text>\n", SVG_LEFT - 6, s->y,
	    label, SVG_LEFT, s->y - SVG_ROW + 5, w, SVG_ROW - 4,
	    SVG_LEFT + w + 6, s->y, value);
}

/* ---- curves ---- */

/* Told apart by people who see colours otherwise, too (Okabe and Ito). */
static const char *
svg_colour(size_t k)
{
	static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73",
	    "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442" };

	return colours[k % (sizeof(colours) / sizeof(*colours))];
}

int
svg_frame(struct svg *s, const char *lo, const char *hi, struct err *e)
{
	const int top = s->y + SVG_ROW / 2;

	s->base = top + SVG_FRAME;
	s->y = s->base;
	return svg_put(s, e, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s"
	    "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>"
	    "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n",
	    SVG_LEFT - 6, top + SVG_ROW - 4, hi, SVG_LEFT - 6, s->base, lo,
	    SVG_LEFT, top, s->base, SVG_LEFT + SVG_CURVES);
}

int
svg_lift(struct svg *s, struct err *e)
{
	const int was = s->pen;

	s->pen = 0;
	return was ? svg_put(s, e, "\"/>\n") : 0;
}

int
svg_curve(struct svg *s, size_t k, double x, double y, struct err *e)
{
	const double px = SVG_LEFT + x * SVG_CURVES;
	const double py = s->base - y * SVG_FRAME;

	if (isnan(y))
		return svg_lift(s, e);
	if (s->pen)
		return svg_put(s, e, "L%.1f %.1f", px, py);
	s->pen = 1;
	/* a line of no length: a point that has no neighbours is a dot */
	return svg_put(s, e, "<path fill=\"none\" stroke=\"%s\" "
	    "stroke-width=\"1.5\" stroke-linecap=\"round\" "
	    "d=\"M%.1f %.1fh0", svg_colour(k), px, py);
}

int
svg_key(struct svg *s, size_t k, const char *text, struct err *e)
{
	s->y += SVG_ROW;
	return svg_put(s, e, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n",
	    SVG_LEFT, s->y, svg_colour(k), text);
}

/* ---- the whole ---- */

int
svg_write(struct svg *s, struct io *out, struct err *e)
{
	char head[400];
	int n, r;

	if ((r = svg_put(s, e, "</svg>\n")) < 0)
		return r;
	n = snprintf(head, sizeof(head), "<svg xmlns=\"http://www.w3.org/2000/"
	    "svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
	    "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
	    "style=\"fill:white\"/>\n<style>rect { fill: #4878a8 }</style>\n",
	    SVG_WIDTH, s->y + SVG_ROW);
	if ((r = io_write(out, head, (size_t)n, e)) < 0)
		return r;
	return io_write(out, s->out.p, s->out.n, e);
}

void
svg_release(struct svg *s)
{
	buf_release(&s->out);
}
