/*
 * ace-cloud: the machine that averages.  Without a command it averages the rounds of a run
 * in one folder; its commands add and remove devices, answer them, show the progress of the
 * run, average devices for another cloud (a relay), and print an example.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/scan.h"
#include "front/cloud.h"
#include "front/tell.h"
#include "spool/spool.h"
#include "kern/kern.h"
#include "pipe/event.h"

struct opts {
	struct cli cli;
	struct agreement said;	/* the run's options, as given on the command line */
	struct agreement add;	/* options of add and relay */
	const char *name;	/* a relay's name as a device of its cloud */
	struct cloud above;	/* the relay's cloud */
	int print;
	struct place folder;
	struct tell tell;
};

/* Refuse a folder without a run. */
static int
begun(const struct opts *x, struct err *e)
{
	return x->folder.said.id[0] != '\0' ? 0 : err_set(e, ERR_USAGE, "no run has begun in '%s': "
	    "start it there with 'ace cloud DIR --devices N' (a device's folder: with "
	    "'ace edge')",
	    x->folder.where);
}

/* ---- the spool ---- */

/* Create what is missing in the folder of a cloud or, if relay is 1, of a cloud or a relay;
 * -ERR_REFUSED for another folder.  A shard counts as one contributor, with weight 1, unless
 * spool/limits allows more.  A connection may be silent for weeks: a round may take hours, and
 * other devices may be away for days. */
static int
furnish(struct opts *x, int relay, struct err *e)
{
	int r;

	if (place_has(&x->folder, "id") && !(relay && place_has(&x->folder, "devices")))
		return err_set(e, ERR_REFUSED, "'%s' is the folder of a device%s: "
		    "give another folder", x->folder.where, relay ? "" : " or a relay");
	if ((r = place_make(&x->folder, "devices", e)) < 0 ||
	    (r = place_make(&x->folder, "spool", e)) < 0 ||
	    place_has(&x->folder, "spool/limits"))
		return r;
	return place_put(&x->folder, "spool/limits", "# ace-recv(1), Limits: "
	    "each device speaks for itself and weighs 1\nweight 1\n"
	    "contributors 1\n# rounds may take hours, and devices be away for "
	    "days\nidle 1000h\ntime 1000h\n", e);
}

static int
add_line(void *lines, const char *path, const char *name, struct err *e)
{
	const int whole = strstr(name, ".new-") == NULL;	/* 0: a temporary file */
	const int r = whole ? buf_puts(lines, name, e) : 0;

	return r == 0 && whole ? buf_puts(lines, "\n", e) : r;
}

/* Return 1 if the folder has as many devices as the run, else 0.  If the run is full and the
 * spool has no list of devices, write the list: rounds then wait for these devices, not only
 * for their number (spool/roster.h). */
static int
full(const struct opts *x, struct err *e)
{
	char *dir = place_path(&x->folder, "devices", e);
	struct buf names = BUF_INIT;
	int r = dir != NULL ? scan(dir, 0, add_line, &names, e) : -ERR_SYS;
	uint64_t n = 0;

	for (size_t i = 0; i < names.n; i++)
		n += names.p[i] == '\n';
	if (r == 0 && x->folder.said.devices != 0 && n >= x->folder.said.devices &&
	    (place_has(&x->folder, "spool/devices") || ((r = buf_put(&names, "", 1, e)) == 0 &&
	    (r = place_put(&x->folder, "spool/devices", (const char *)names.p, e)) == 0)))
		r = 1;
	buf_release(&names);
	alloc_free(dir);
	return r;
}

/* Wait until no other process adds or removes a device.  The lock is held until *fd is closed or
 * the process ends. */
static int
alone(const struct opts *x, int *fd, struct err *e)
{
	char *path = place_path(&x->folder, "devices-lock", e);
	int r = path != NULL ? fd_lock(path, LOCK_EX, fd, e) : -ERR_SYS;

	alloc_free(path);
	return r;
}

/* Return full() while no other process adds or removes a device. */
static int
full_now(const struct opts *x, struct err *e)
{
	int fd, r = alone(x, &fd, e);

	if (r < 0)
		return r;
	r = full(x, e);
	(void)close(fd);
	return r;
}

/* Build the command line of ace-recv for one device of this spool. */
static int
receiver(const struct opts *x, const char *name, const char *how,
    const char *what, struct children *c)
{
	char *spool = place_path(&x->folder, "spool", c->e);

	if (spool == NULL)
		c->r = -ERR_SYS;
	(void)child_add(c, NULL, "ace-recv", "--spool", spool, "--device", name,
	    how, what, "--events", "2", NULL);	/* no events if what is NULL */
	alloc_free(spool);
	return c->r;
}

static int
operate(const struct opts *x, const char *name, const char *how,
    struct err *e)
{
	struct children c = { .e = e };
	char none[64];
	int r = receiver(x, name, how, NULL, &c);

	if (r == 0)
		r = child_output(c.child[0].word, none, sizeof(none), e);
	child_release(&c);
	return r <= 0 ? r : err_set(e, ERR_SYS, "ace-recv %s for '%s' ended with "
	    "status %d: see the message of ace-recv above, if any", how, name, r);
}

/* ---- the cloud itself ---- */

/* Check that there are enough devices for quorum and tolerate.  Return 0 or -ERR_USAGE. */
static int
sound(const struct agreement *a, struct err *e)
{
	if (a->quorum > a->devices || 2 * a->tolerate >= a->devices)
		return err_set(e, ERR_USAGE, a->quorum > a->devices ?
		    "--devices %llu is too few for --quorum %llu" : "--devices %llu is "
		    "too few: expected more than twice --tolerate %llu",
		    (unsigned long long)a->devices, (unsigned long long)(a->quorum >
		    a->devices ? a->quorum : a->tolerate));
	return 0;
}

/* Merge the command line into the agreement, which is the run's options, kept in its folder.
 * -ERR_REFUSED if the bits per value of a run would change after its beginning; -ERR_USAGE if
 * the devices are too few for quorum or tolerate. */
static int
agree(struct opts *x, struct err *e)
{
	struct agreement *had = &x->folder.said;
	const struct agreement *now = &x->said;
	int r;

	if (had->id[0] == '\0') {
		place_random(had->id);
		had->bits = 1.3;
	} else if (now->bits > 0 && now->bits != had->bits) {
		return err_set(e, ERR_REFUSED, "--bits %.9g differs from the run in "
		    "'%s', which began with %.9g: leave --bits out, or give another "
		    "folder", now->bits, x->folder.where, had->bits);
	}
	had->bits = now->bits > 0 ? now->bits : had->bits;
	had->devices = now->devices != 0 ? now->devices : had->devices;
	had->rounds = now->rounds != 0 ? now->rounds : had->rounds;
	had->tolerate = now->tolerate != 0 ? now->tolerate : had->tolerate;
	had->quorum = now->quorum != 0 ? now->quorum : had->quorum;
	had->deadline = now->deadline > 0 ? now->deadline :
	    had->deadline > 0 || had->quorum == 0 ? had->deadline : 10;
	return (r = sound(had, e)) < 0 ? err_after(e, r, " (options that are not given "
	    "now are from '%s/run')", x->folder.dir) : place_save(&x->folder, e);
}

static void
word_u64(struct children *c, const char *name, uint64_t v)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	if (v != 0)
		(void)child_add(c, &c->child[0], name, text, NULL);
}

/* Build the pipeline: ace-aggregate averages, ace-step codes the averages and ace-recv
 * publishes them. A relay sends its averages to its cloud and publishes the answers. */
static void
pipeline(const struct opts *x, struct children *c)
{
	const struct agreement *a = &x->folder.said;
	const int relay = x->name != NULL;
	char *spool = place_path(&x->folder, "spool", c->e);
	char *state = place_path(&x->folder, "state", c->e);
	char bits[32], late[32];
	struct child *p;

	if (spool == NULL || state == NULL)
		c->r = -ERR_SYS;
	(void)snprintf(bits, sizeof(bits), "%.17g", a->bits);
	(void)snprintf(late, sizeof(late), "%.17gs", a->deadline);
	p = child_add(c, NULL, "ace-aggregate", "--spool", spool, "--create",
	    "--publish", "--events", "2", NULL);
	word_u64(c, "--devices", a->devices);
	word_u64(c, "--rounds", a->rounds);
	word_u64(c, "--quorum", a->quorum);
	word_u64(c, "--tolerate", a->tolerate);
	if (a->quorum != 0)
		(void)child_add(c, p, "--deadline", late, NULL);
	if (relay)
		(void)child_add(c, p, "--device", x->name, NULL);
	p = child_add(c, NULL, "ace-step", "-S", state, "--allow-gap", "--bits", bits,
	    "--events", "2", NULL);
	if (relay) {
		(void)child_add(c, p, "--window", "1", NULL);
		cloud_connect(&x->above, c, "sync", a->id);
		(void)child_add(c, NULL, "ace-ack", "-S", state, "--events", "2", NULL);
	}
	(void)child_add(c, NULL, "ace-recv", "--spool", spool, "--publish", "--events",
	    "2", NULL);
	alloc_free(spool);
	alloc_free(state);
}

/* Run the pipeline until it succeeds.  Return after a failure with another status than
 * ERR_SYS, because it would recur. */
static int
keep_running(struct opts *x, struct err *e)
{
	const struct child_ear ear = tell_ear(&x->tell);
	char cause[ERR_LINE];
	int r, status;

	for (;;) {
		struct children c = { .e = e };

		pipeline(x, &c);
		tell_start(&x->tell);
		if ((r = child_run(&c, &ear)) > 0) {
			status = child_status(tell_cause(&x->tell, &c, cause));
			if (status != ERR_SYS)
				r = err_set(e, status < 126 ? status : ERR_SYS, "%s%s",
				    cause, strstr(cause, "limits: weight)") == NULL &&
				    strstr(cause, "limits: contributors)") == NULL ? "" :
				    ": on the cloud, run 'ace add DIR NAME --devices N' "
				    "for this relay and remove 'spool/STEP/NAME.no'");
		}
		child_release(&c);
		if (r <= 0)
			return r;
		if ((r = place_kept(&x->folder, cause, e)) < 0)
			return r;
		tell_failed(&x->tell, cause);
		tell_say(&x->tell, "trying again in 5 s");
		(void)sleep(5);
		if ((r = place_kept(&x->folder, cause, e)) < 0)
			return r;
	}
}

static int
begin(struct opts *x, const char *who, const char *above, struct err *e)
{
	const struct agreement *a = &x->folder.said;
	struct children c = { .e = e };
	char text[64];
	int r;

	if (x->print) {
		pipeline(x, &c);
		return child_print(&c, stdout);
	}
	tell_begin(&x->tell, &x->cli, who, 1, &x->folder);
	if (x->name != NULL)
		tell_say(&x->tell, "relay '%s' of the run in %s", x->name, above);
	tell_say(&x->tell, "run in %s: %s", x->folder.where, place_agreed(a, text));
	const char *quote = strchr(x->folder.where, '\'') != NULL ? "\"" :
	    strpbrk(x->folder.where, " $&;()*?") != NULL ? "'" : "";
	tell_say(&x->tell, "on each device: ace edge %s%s%s --name NAME -- COMMAND",
	    quote, x->folder.where, quote);
	if ((r = keep_running(x, e)) == 0)
		tell_say(&x->tell, "done: %llu round%s", (unsigned long long)a->rounds,
		    a->rounds == 1 ? "" : "s");
	tell_end(&x->tell, r, e);
	return r;
}

static int
run_cloud(void *own, char **path, size_t n, struct err *e)
{
	struct opts *x = own;
	int r;

	if (n != 1)
		return err_set(e, ERR_USAGE, n == 0 ? "no folder of a run was given: "
		    "expected ace-cloud DIR --devices N" : "expected one folder or a "
		    "command: '%s' is not a command (--help lists them); if it is the "
		    "folder, leave out '%s'", path[0], path[1]);
	if ((x->said.devices == 0 || (r = sound(&x->said, e)) == 0) &&
	    (r = place_open(&x->folder, path[0], x->said.devices != 0, e)) == 0 &&
	    (x->said.devices != 0 || (r = begun(x, e)) == 0) &&
	    (r = statedir_lock(&x->folder.held, STATE_LOCK, e)) == 0 &&
	    (r = furnish(x, 0, e)) == 0 && (r = agree(x, e)) == 0 &&
	    (r = full_now(x, e)) >= 0)
		r = begin(x, "ace-cloud", "", e);
	place_close(&x->folder);
	return r;
}

/* ---- a relay: a cloud for its devices, and a device of the cloud above ---- */

/* Get the run's agreement from the relay's cloud, and set where[n] to the cloud's HOST:DIR.
 * Replace the number of devices by the relay's own, and set quorum and tolerate to 0.  Return
 * as full() does. */
static int
relay_begin(struct opts *x, char *where, size_t n, struct err *e)
{
	const uint64_t devices = x->add.devices != 0 ? x->add.devices :
	    x->folder.said.devices;
	int r;

	if (devices == 0)
		return err_set(e, ERR_USAGE, "the number of the relay's devices is "
		    "missing: add --devices N");
	if (x->folder.said.id[0] != '\0' && !place_has(&x->folder, "id"))
		return err_set(e, ERR_REFUSED, "'%s' is the folder of a cloud: give another "
		    "folder", x->folder.where);
	if ((r = furnish(x, 1, e)) < 0 || (r = cloud_hello(&x->above, &x->folder,
	    where, n, e)) < 0)
		return r;
	x->folder.said.devices = devices;
	x->folder.said.quorum = x->folder.said.tolerate = 0;
	return (r = place_save(&x->folder, e)) < 0 ? r : full_now(x, e);
}

static int
run_relay(void *own, char **path, size_t n, struct err *e)
{
	struct opts *x = own;
	char where[4352];
	int r;

	if (n != 2 || x->name == NULL)
		return err_set(e, ERR_USAGE, "expected [[USER@]HOST:]DIR of the cloud, DIR of "
		    "this relay and --name NAME, found %zu operand%s%s", n, n == 1 ? "" : "s",
		    x->name == NULL ? " and no name" : "");
	x->above.name = x->name;
	if (x->add.devices == 0 && access(path[1], F_OK) < 0)
		return err_set(e, ERR_USAGE, "the number of the relay's devices is "
		    "missing: add --devices N");
	if ((r = place_named(x->name, e)) == 0 &&
	    (r = cloud_at(&x->above, path[0], e)) == 0 &&
	    (r = place_open(&x->folder, path[1], 1, e)) == 0 &&
	    (r = statedir_lock(&x->folder.held, STATE_LOCK, e)) == 0 &&
	    (r = relay_begin(x, where, sizeof(where), e)) >= 0)
		r = begin(x, "ace-cloud relay", where, e);
	cloud_release(&x->above);
	place_close(&x->folder);
	return r;
}

/* ---- the devices of a run ---- */

/* Read the public key in the file `key' into text.  -ERR_USAGE if the key or the path of the
 * run's folder cannot be in a line of authorized_keys. */
enum { KEY_TEXT = 16384 };
static int
read_key(const struct opts *x, const char *key, char text[KEY_TEXT], struct err *e)
{
	FILE *f = fopen(key, "re");
	char *end;
	size_t n;

	if (f == NULL)
		return err_sys(e, "'%s'", key);
	n = fread(text, 1, KEY_TEXT - 1, f);
	(void)fclose(f);
	text[n] = '\0';
	end = text + strcspn(text, "\n");
	if (*end == '\n')
		*end++ = '\0';
	for (n = 0; (unsigned char)text[n] >= ' ' && text[n] != '"'; n++)
		continue;
	if (*end != '\0' || text[n] != '\0' ||
	    (strncmp(text, "ssh-", 4) != 0 && strncmp(text, "ecdsa-", 6) != 0 &&
	    strncmp(text, "sk-", 3) != 0))
		return err_set(e, ERR_USAGE, "'%s' is not a public key: expected one line "
		    "that begins with ssh-, ecdsa- or sk-, without quotes, tabs or CR LF "
		    "(give the file that ends with .pub)", key);
	if (x->folder.dir[strcspn(x->folder.dir, "'\"\\\n")] != '\0')
		return err_set(e, ERR_USAGE, "'%s' cannot stand in "
		    "authorized_keys: use a folder without quotes, \\ or line ends in its path",
		    x->folder.dir);
	return 0;
}

/* Remove the lines of spool/limits that let relay `name' count for more devices.  If n is above 1,
 * add lines that let its shards count for up to n. */
static int
allow(struct opts *x, const char *name, uint64_t n, struct err *e)
{
	const size_t most = 1 << 20;		/* as ace-recv allows */
	char *text = alloc_get(most, 1, e), *from, *next, *end = text;
	int at, r = text != NULL ? place_get(&x->folder, "spool/limits", text, most, e) : -ERR_SYS;
	size_t room;

	for (from = text; r >= 0 && *from != '\0'; from = next) {
		next = from + strcspn(from, "\n");
		next += *next == '\n';
		at = 0;
		if ((strncmp(from, "weight ", 7) == 0 || strncmp(from, "contributors ", 13) == 0) &&
		    sscanf(from, "%*s %*u %n", &at) == 0 && at > 0 && from + at < next &&
		    strncmp(from + at, name, strlen(name)) == 0 &&
		    strchr("\n", from[at + (int)strlen(name)]) != NULL)
			continue;
		memmove(end, from, (size_t)(next - from));
		end += next - from;
	}
	if (r >= 0 && (end != from || n > 1)) {
		room = most - (size_t)(end - text);
		*end = '\0';
		if (n > 1)
			r = snprintf(end, room, "%sweight %llu %s\ncontributors %llu %s\n",
			    end != text && end[-1] != '\n' ? "\n" : "", (unsigned long long)n, name,
			    (unsigned long long)n, name);
		r = r >= 0 && (n <= 1 || (size_t)r < room) ?
		    place_put(&x->folder, "spool/limits", text, e) : err_set(e, ERR_DATA,
		    "limit: '%s/spool/limits' would have more than %zu bytes: remove lines from it",
		    x->folder.where, most - 1);
	}
	alloc_free(text);
	return r < 0 ? r : 0;
}

/* Return 1 if the run has this device, else 0. Set id, which is empty until its hello. */
static int
member(const struct opts *x, const char *name, char id[PLACE_ID + 2],
    struct err *e)
{
	char in[PLACE_NAME + 16];

	(void)snprintf(in, sizeof(in), "devices/%s", name);
	return place_get(&x->folder, in, id, PLACE_ID + 2, e);
}

/* Admit a device: write its file and, if it is new (there 0), add it to the spool's list of
 * devices, if there is one. */
static int
let_in(struct opts *x, const char *name, const char *id, int there,
    struct err *e)
{
	char in[PLACE_NAME + 16];
	int r;

	(void)snprintf(in, sizeof(in), "devices/%s", name);
	if ((r = place_put(&x->folder, in, id, e)) < 0 || there || (r = full(x, e)) < 0)
		return r;
	return place_has(&x->folder, "spool/devices") ? operate(x, name, "--join", e) : 0;
}

static int
any_file(void *any, const char *path, const char *name, struct err *e)
{
	*(int *)any = 1;
	return 1;
}

/* Refuse to add a device to a folder with files but without a run or `devices': its name may
 * be mistyped. */
static int
may_add(const struct opts *x, struct err *e)
{
	int any = 0, r = 0;

	if (!place_has(&x->folder, "devices"))
		r = scan(x->folder.dir, 0, any_file, &any, e);
	return r < 0 ? r : any ? begun(x, e) : 0;
}

static int
run_add(void *own, char **path, size_t n, struct err *e)
{
	struct opts *x = own;
	char id[PLACE_ID + 2], key[KEY_TEXT];
	int fd, r;

	if (n < 2 || n > 3)
		return err_set(e, ERR_USAGE, "expected DIR NAME [KEY.pub], found %zu operand%s", n,
		    n == 1 ? "" : "s");
	if ((r = place_named(path[1], e)) == 0 &&
	    (r = place_open(&x->folder, path[0], 0, e)) == 0 &&
	    (r = may_add(x, e)) == 0 && (n == 2 || (r = read_key(x, path[2], key, e)) == 0) &&
	    (r = furnish(x, 1, e)) == 0 && (r = alone(x, &fd, e)) == 0)
		r = member(x, path[1], id, e);
	if (r == 0)
		r = let_in(x, path[1], "", 0, e);
	else if (r > 0)		/* a killed `ace add' may have left the list unchanged */
		r = place_has(&x->folder, "spool/devices") ?
		    operate(x, path[1], "--join", e) : 0;
	if (r == 0 && x->add.devices != 0)
		r = allow(x, path[1], x->add.devices, e);
	if (r == 0 && n == 3)	/* a line for authorized_keys: the key is for this device only */
		(void)printf("restrict,command=\"ace-cloud serve '%s' %s\" %s\n",
		    x->folder.dir, path[1], key);
	if (r == 0 && n == 2)
		cli_say(&x->cli, 0, "'%s' may take part in the run in %s", path[1],
		    x->folder.where);
	place_close(&x->folder);
	return r;
}

/* Return 1 if the spool's list of devices has this name, 0 if not, or < 0. */
static int
listed(const struct opts *x, const char *name, struct err *e)
{
	char *path = place_path(&x->folder, "spool/devices", e), *line, *rest;
	const size_t n = strlen(name);
	struct buf b = BUF_INIT;
	int r = path == NULL ? -ERR_SYS : io_named_text(&b, path, (size_t)1 << 26, e);

	rest = (char *)b.p;
	while (r == 0 && (line = strsep(&rest, "\n")) != NULL) {
		line += strspn(line, " \t\r");	/* as ace-recv reads the list */
		r = strncmp(line, name, n) == 0 &&
		    line[n + strspn(line + n, " \t\r")] == '\0';
	}
	buf_release(&b);
	alloc_free(path);
	return r;
}

static int
run_remove(void *own, char **path, size_t n, struct err *e)
{
	struct opts *x = own;
	char in[SPOOL_FILE + 32], name[SPOOL_FILE], *file = NULL;
	int fd, r;

	if (n != 2)
		return err_set(e, ERR_USAGE, "expected DIR NAME, found %zu operand%s", n,
		    n == 1 ? "" : "s");
	(void)snprintf(in, sizeof(in), "devices/%s", path[1]);
	if ((r = place_named(path[1], e)) == 0 &&
	    (r = place_open(&x->folder, path[0], 0, e)) == 0 && (r = may_add(x, e)) == 0
	    && (file = place_path(&x->folder, in, e)) == NULL)
		r = -ERR_SYS;
	if (r == 0 && (r = alone(x, &fd, e)) == 0 && !place_has(&x->folder, in))
		r = err_set(e, ERR_NO, "'%s' is not a device of the run in %s: check the "
		    "name, and that this is the cloud's folder", path[1],
		    x->folder.where);
	/* if there is no list and the device has sent a shard, --leave writes the list; a
	 * command that was interrupted has taken the device from the list already */
	spool_file(path[1], "open", name);
	(void)snprintf(in, sizeof(in), "spool/device/%s", name);
	if (r == 0)
		r = place_has(&x->folder, "spool/devices") ? listed(x, path[1], e) :
		    place_has(&x->folder, in);
	if (r > 0)
		r = operate(x, path[1], "--leave", e);
	if (r == 0)
		r = allow(x, path[1], 1, e);
	/* last, so that a repeated command removes it after a failure */
	if (r == 0 && unlinkat(AT(file), 0) < 0 && errno != ENOENT)
		r = err_sys(e, "cannot remove '%s'", file);
	if (r == 0)
		cli_say(&x->cli, 0, "'%s' is removed: no round waits for it; to deny "
		    "it access, remove its line from ~/.ssh/authorized_keys",
		    path[1]);
	alloc_free(file);
	place_close(&x->folder);
	return r;
}

/* ---- requests of devices ---- */

/* Check that the device `name' has this id.  If the name has no id, store this one; if it is
 * new, add it, unless the run is full. */
static int
introduce(struct opts *x, const char *name, const char *id, struct err *e)
{
	char had[PLACE_ID + 2];
	const int there = member(x, name, had, e);
	int r;

	if (there < 0)
		return there;
	if (strlen(id) != PLACE_ID ||
	    id[strspn(id, "0123456789abcdef")] != '\0')
		return err_set(e, ERR_USAGE, "hello: '%.40s' is not an ID of %d hex "
		    "digits", id, PLACE_ID);
	if (!there && (r = full(x, e)) != 0)
		return r < 0 ? r : err_set(e, ERR_REFUSED, "'%s' is not a device of the run in %s, "
		    "which is full (devices: %llu): on the cloud, run 'ace add DIR %s', for a "
		    "relay with --devices N", name,
		    x->folder.where, (unsigned long long)x->folder.said.devices, name);
	if (had[0] != '\0' && strcmp(had, id) != 0)
		return err_set(e, ERR_REFUSED, "the name '%s' is in use by another "
		    "device of the run in %s: choose another --name or, if this is "
		    "the same device with a new folder, run 'ace remove DIR %s' on "
		    "the cloud first", name, x->folder.where, name);
	return had[0] != '\0' ? 0 : let_in(x, name, id, there, e);
}

static int
sync_with(struct opts *x, const char *name, const char *run, struct err *e)
{
	struct children c = { .e = e };
	char id[PLACE_ID + 2];
	int r = member(x, name, id, e);

	if (run[0] != '\0' && strcmp(run, x->folder.said.id) != 0)
		r = err_set(e, ERR_REFUSED, "device '%s' belongs to run %.8s, but %s has run "
		    "%.8s: give the cloud of run %.8s, or another folder (ace edge: --state)",
		    name, run, x->folder.where, x->folder.said.id, run);
	if (r == 0)
		r = err_set(e, ERR_REFUSED, "'%s' is not a device of the run in %s: "
		    "on the cloud, run 'ace add DIR %s', for a relay with --devices N",
		    name, x->folder.where, name);
	if (r > 0 && (r = receiver(x, name, "--reply", "aggregate", &c)) == 0)
		r = child_exec(c.child[0].word, e);
	child_release(&c);
	return r;
}

/* Read a device's request into words[n]: from SSH_ORIGINAL_COMMAND (a key with a forced
 * command) or else from the first line of the input.  Read no byte after this line. */
static void
asked(char *words, size_t n)
{
	const char *by_ssh = getenv("SSH_ORIGINAL_COMMAND");
	size_t at = 0;

	if (by_ssh != NULL)
		at = (size_t)snprintf(words, n, "%s", by_ssh);
	else
		while (at < n - 1 && read(STDIN_FILENO, words + at, 1) == 1 &&
		    words[at] != '\n')
			at++;
	words[at < n ? at : 0] = '\0';
}

/* Set *what to the last "hello" or "sync" in the request, and *id to the last word after it,
 * or "".  Without one of the two, set only *id, to the last word. */
static void
asked_for(char *words, const char **what, const char **id)
{
	char *word;

	while ((word = strsep(&words, " ")) != NULL) {
		word += *word == '\'';
		word[strcspn(word, "'")] = '\0';
		if (strcmp(word, "hello") == 0 || strcmp(word, "sync") == 0) {
			*what = word;
			*id = "";
		} else {
			*id = word;
		}
	}
}

/* Wait up to 5 seconds until the folder dir has a run, since a device may be started before
 * its cloud. */
static void
await_run(const char *dir)
{
	const struct timespec tenth = { .tv_nsec = 100000000 };
	char path[PATH_MAX];
	int i, n = snprintf(path, sizeof(path), "%s/run", dir);

	for (i = 0; i < 50 && n < PATH_MAX && access(path, F_OK) < 0; i++)
		(void)nanosleep(&tenth, NULL);
}

static int
run_serve(void *own, char **path, size_t n, struct err *e)
{
	struct opts *x = own;
	const char *what = n > 2 ? path[2] : "", *id = n > 3 ? path[3] : "";
	const char *name = n > 1 ? path[1] : "";
	char words[8192], text[8192], first[PLACE_NAME + 2];
	int fd, r;

	if (n < 1 || n > 4)
		return err_set(e, ERR_USAGE, "expected DIR [NAME [hello ID | sync ID]], found "
		    "%zu words", n);
	if (n < 3) {
		asked(words, sizeof(words));
		(void)snprintf(first, sizeof(first), "%.*s",
		    (int)strcspn(words, " "), words);
		name = n > 1 ? name : first;
		asked_for(words, &what, &id);
	}
	if ((r = place_named(name, e)) < 0)
		return r;
	await_run(path[0]);
	if ((r = place_open(&x->folder, path[0], 0, e)) < 0 || (r = begun(x, e)) < 0)
		return r;
	if (strcmp(what, "sync") == 0)
		r = sync_with(x, name, id, e);
	else if (strcmp(what, "hello") != 0)
		r = err_set(e, ERR_USAGE, "the request of '%s' has '%.40s', expected hello or "
		    "sync, as ace edge sends", name, what[0] != '\0' ? what : id);
	else if ((r = alone(x, &fd, e)) == 0 && (r = introduce(x, name, id, e)) == 0) {
		cloud_answer(&x->folder, text, sizeof(text));
		(void)fputs(text, stdout);
	}
	place_close(&x->folder);
	return r;
}

/* ---- watching ---- */

static int
run_watch(void *own, char **path, size_t n, struct err *e)
{
	struct opts *x = own;
	const int shows = isatty(STDOUT_FILENO);
	int r;

	if (n != 1)
		return err_set(e, ERR_USAGE, "expected one folder of a run, on the "
		    "cloud or on a device, found %zu operands", n);
	if ((r = place_open(&x->folder, path[0], 0, e)) < 0 || (r = begun(x, e)) < 0)
		return r;
	do {
		(void)printf("%s", shows ? "\033[H\033[2J" : "");
		r = tell_watch(&x->folder, e);
	} while (r == 0 && fflush(stdout) == 0 && shows && sleep(2) == 0);
	place_close(&x->folder);
	return r;
}

/* ---- examples ---- */

/* Print an example from share/ace/trainers or, before installation, from the sources. */
static int
run_example(void *own, char **path, size_t n, struct err *e)
{
	static const char *const at[] = { "../share/ace/trainers", "../examples/trainers",
		"../../examples/trainers" };
	const char *name = n == 1 ? path[0] : "";
	char self[2048], file[4096], *slash;
	const ssize_t k = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	self[k > 0 ? k : 0] = '\0';
	if ((slash = strrchr(self, '/')) != NULL)
		slash[1] = '\0';
	for (i = 0; i < 2 * sizeof(at) / sizeof(at[0]); i++) {
		char *words[] = { (char[]){ "cat" }, file, NULL };

		(void)snprintf(file, sizeof(file), "%s%s/train_%.40s.%s", self,
		    at[i / 2], name, i % 2 == 0 ? "py" : "c");
		if (strchr(name, '/') == NULL && access(file, R_OK) == 0)
			return child_exec(words, e);
	}
	return n == 1 ? err_set(e, ERR_USAGE, "example '%.40s' is not readable in '%.150s%s': "
	    "expected pytorch, numpy, jax, hf or c; if it is one, reinstall ace", name, self, *at) :
	    err_set(e, ERR_USAGE, "expected pytorch, numpy, jax, hf or c, found %zu names", n);
}

/* ---- the command line ---- */

static const struct opt both_opts[] = {
	OPT_PART(event_opts, struct opts, tell.to[0].events),
	{ 0, "print", NULL, "print the pipeline that this stands for, and exit",
	    OPT_FLAG(struct opts, print) },
	OPT_END
};

static const struct opt cloud_opts[] = {
	OPT_PART(place_opts, struct opts, said),
	OPT_ROWS(both_opts),
	OPT_END
};

static const struct opt add_opts[] = {
	{ 0, "devices", "N", "the device is a relay of N devices",
	    OPT_U64(struct opts, add.devices, 1, 1000000) },
	OPT_END
};

static const struct opt relay_opts[] = {
	{ 0, "name", "NAME", "the relay's name, as a device of the cloud",
	    OPT_TEXT(struct opts, name) },
	{ 0, "devices", "N", "devices that it averages",
	    OPT_U64(struct opts, add.devices, 1, 1000000) },
	OPT_ROWS(both_opts),
	OPT_END
};

static const struct cli_command commands[] = {
	{ "add", "DIR NAME [KEY.pub] [--devices N]",
	    "Lets a device in; prints the line of authorized_keys for its key",
	    add_opts, run_add, 0 },
	{ "remove", "DIR NAME", "Takes a device out of the run, so that no "
	    "round waits for it", NULL,
	    run_remove, 0 },
	{ "relay", "[[USER@]HOST:]DIR DIR --name NAME --devices N",
	    "Averages devices near by, and is one device of the cloud",
	    relay_opts, run_relay, 0 },
	{ "serve", "DIR [NAME [WHAT [ID]]]",
	    "Serves a device; ssh runs it for ace-edge", NULL,
	    run_serve, 0 },
	{ "watch", "DIR", "Shows the progress of a run", NULL,
	    run_watch, 0 },
	{ "example", "pytorch | numpy | jax | hf | c",
	    "Writes a training script for ace-edge", NULL, run_example, 0 },
	{ NULL, NULL, NULL, NULL, NULL, 0 }
};

int
main(int argc, char **argv)
{
	struct opts x = {
		.cli = {
			.prog = "ace-cloud",
			.usage = "DIR --devices N [options] | COMMAND [arguments]",
			.about = "Averages what the devices of a run send to the "
			    "folder DIR, round after round.",
			.examples = "ace-cloud run --devices 2 --rounds 100 --print\n"
			    "ace-cloud add run edge1\n",
			.opt = cloud_opts,
			.commands = commands,
			.bare = 1,
			.mixed = 1,
			.open = 1,
			.kernels = kern_name
		},
		.folder = PLACE_INIT,
		.above = CLOUD_INIT
	};

	return cli_main(&x.cli, argc, argv, run_cloud, &x);
}
