/*
 * The run of a spool: without --run it is that of the first shard, also when two
 * processes of that run start together.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "format/shard.h"
#include "spool/admit.h"
#include "spool/inbox.h"
#include "spool/ledger.h"

#include "../tap.h"
#include "../model.h"

static char dir[] = "/tmp/ace-admit.XXXXXX";
static const char *appears;	/* the file that another process makes just after it
				 * was looked for */

/* Make what the first shard of a run leaves in the spool. */
static void
begun(const char *path, const char *run)
{
	struct schema sc = model_of(4, 0, 0);
	struct err e = ERR_INIT;
	struct shard sh;
	char why[256];

	shard_init(&sh);
	(void)unlink(path);
	if (shard_set_run(&sh, run, &e) < 0 ||
	    ledger_schema(path, &sc, &sh, why, &e) != 0)
		fprintf(stderr, "%s\n", ERR_MSG(&e));
	shard_release(&sh);
	schema_release(&sc);
}

/* Replace faccessat of the C library, which admit.c calls. */
int
faccessat(int at, const char *path, int mode, int flags)
{
	int there = (int)syscall(SYS_faccessat, at, path, mode);
	const char *end = appears;

	(void)flags;
	if (end != NULL && strlen(end) > strlen(path))
		end += strlen(end) - strlen(path);
	if (there < 0 && end != NULL && strcmp(path, end) == 0) {
		appears = NULL;
		begun(path, "first/run");
		errno = ENOENT;
	}
	return there;
}

int
main(void)
{
	struct inbox s = INBOX_INIT;
	struct err e = ERR_INIT;
	char mine[128];

	if (mkdtemp(dir) == NULL || chdir(dir) < 0 ||
	    inbox_open(&s, dir, &e) < 0) {
		perror(dir);
		return 1;
	}
	ok(admit_run(&s, NULL, "first/run", &e) == 0, "an empty spool is anybody's");
	/* the name has a byte that is escaped in file names */
	(void)snprintf(mine, sizeof(mine), "%s/first%%2Frun/schema.aceg", dir);
	if (mkdir("first%2Frun", 0700) < 0)
		perror("mkdir");
	appears = mine;
	ok(admit_run(&s, NULL, "first/run", &e) == 0 && appears == NULL,
	    "a run whose first shard is accepted at this moment by another "
	    "process is no other run");
	ok(admit_run(&s, NULL, "first/run", &e) == 0, "nor is it afterwards");
	begun(mine, "first/run");
	ok(admit_run(&s, NULL, "second", &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "run 'second'") != NULL &&
	    strstr(ERR_MSG(&e), "is of run 'first/run'") != NULL,
	    "another run is refused, and both are named: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(admit_run(&s, "second", "second", &e) == 0 &&
	    admit_run(&s, "sec*", "second", &e) == 0,
	    "one that was asked for, by its name or how it begins, is not");
	ok(admit_run(&s, "fir*", "first", &e) == -ERR_DATA,
	    "a second one that begins so is: %s", ERR_MSG(&e));
	err_clear(&e);
	ok(admit_run(&s, "sec*", "first/run", &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "expected 'sec*'") != NULL,
	    "as one that was not asked for: %s", ERR_MSG(&e));
	err_clear(&e);
	inbox_close(&s);
	(void)unlink(mine);
	(void)rmdir("first%2Frun");
	(void)rmdir(dir);
	return done_testing();
}
