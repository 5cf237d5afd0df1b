/*
 * scale FACTOR <in.aceg >out.aceg: multiply every value by FACTOR.  An example of a filter
 * with the library; build it with
 *
 *	cc -o scale scale.c $(pkg-config --cflags --libs libaceg)
 */
#include <stdio.h>
#include <stdlib.h>

#include <aceg.h>

/* Copy one shard, group by group, times the factor.  End the output shard only after
 * ace_read_group has returned 0, since only then are the values verified. */
static int
scale_shard(struct ace_writer *out, struct ace_reader *in,
    const struct ace_shard *s, float factor, struct ace_error *e)
{
	struct ace_group g;
	float y[4096];
	size_t i, k, n;
	int r;

	if ((r = ace_write_shard_of(out, in, s, e)) < 0)
		return r;
	while ((r = ace_read_group(in, &g, e)) > 0)
		for (i = 0; i < g.n; i += n) {
			n = g.n - i < 4096 ? g.n - i : 4096;
			for (k = 0; k < n; k++)
				y[k] = factor * g.value[i + k];
			if ((r = ace_write_values(out, y, n, e)) < 0)
				return r;
		}
	return r < 0 ? r : ace_write_end(out, e);
}

int
main(int argc, char **argv)
{
	struct ace_error e = { 0, "" };
	struct ace_reader *in = NULL;
	struct ace_writer *out = NULL;
	struct ace_shard s;
	char line[64], *end = "";
	float factor = argc == 2 ? strtof(argv[1], &end) : 0;
	int r = -1;

	if (argc != 2 || end == argv[1] || *end != '\0') {
		fprintf(stderr, "usage: scale FACTOR <in >out\n");
		return 2;
	}
	snprintf(line, sizeof(line), "scale 1 %g", (double)factor);
	if ((in = ace_reader_new(0, &e)) != NULL &&
	    (out = ace_writer_new(1, line, &e)) != NULL) {
		while ((r = ace_read_shard(in, &s, &e)) > 0)
			if ((r = scale_shard(out, in, &s, factor, &e)) < 0)
				break;
		if (r == 0)
			r = ace_writer_close(out, &e);
	}
	ace_writer_free(out);
	ace_reader_free(in);
	if (r < 0)
		fprintf(stderr, "scale: %s\n", e.message);
	return r < 0 ? e.code : 0;
}
