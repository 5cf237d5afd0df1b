/*
 * tamper: change a stream of one signed shard as an attacker would, and correct all
 * checksums.
 *
 *   tamper value FILE         change a bit of the last value
 *   tamper note FILE          add an annotation after the signature
 *   tamper drop FILE          remove the annotation before the signature
 *   tamper scheme FILE        use an unknown scheme number
 *   tamper reserved FILE      set a bit where the signature has zeros
 *   tamper from FILE OTHER    use the signature of another shard
 */
#include <stdio.h>
#include <unistd.h>

#include "forge.h"

static unsigned char *
slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	unsigned char *p = malloc(1 << 20);

	if (f == NULL || p == NULL) {
		perror(path);
		exit(2);
	}
	*n = fread(p, 1, 1 << 20, f);
	(void)fclose(f);
	return p;
}

static size_t
place(const struct forge *s, uint32_t type)
{
	size_t i;

	for (i = 0; i < s->n && forge_type(&s->f[i]) != type; i++)
		;
	assert(i < s->n);
	return i;
}

int
main(int argc, char **argv)
{
	struct forge s, t;
	struct forge_frame *f;
	unsigned char *p, *q;
	size_t n, m;

	if (argc < 3)
		return 2;
	p = slurp(argv[2], &n);
	forge_open(&s, p, n);
	if (strcmp(argv[1], "value") == 0) {
		f = forge_find(&s, FRAME_DATA, 0);
		f->p[f->n - 4] ^= 1;
	} else if (strcmp(argv[1], "note") == 0) {
		(void)forge_insert(&s, place(&s, FRAME_SIGN) + 1, FRAME_TYPE('n', 'O', 'T', 'e'),
		    "note=1\n", 7);
	} else if (strcmp(argv[1], "drop") == 0) {
		forge_delete(&s, place(&s, FRAME_SIGN) - 1);
	} else if (strcmp(argv[1], "scheme") == 0) {
		forge_find(&s, FRAME_SIGN, 0)->p[0]++;
	} else if (strcmp(argv[1], "reserved") == 0) {
		forge_find(&s, FRAME_SIGN, 0)->p[7] ^= 1;
	} else if (argc > 3) {
		q = slurp(argv[3], &m);
		forge_open(&t, q, m);
		f = forge_find(&t, FRAME_SIGN, 0);
		forge_payload(forge_find(&s, FRAME_SIGN, 0), f->p, f->n);
	}
	p = forge_seal(&s, &n);
	/* exit without freeing */
	_exit(fwrite(p, 1, n, stdout) == n && fflush(stdout) == 0 ? 0 : 4);
}
