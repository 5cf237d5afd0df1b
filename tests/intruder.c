/*
 * intruder: what somebody could do who runs code in one of our programs. To be
 * preloaded; when the program ends it tries all of it and says, on standard
 * error, a line each: "intruder: WHAT yes" or "no".
 *
 *   ACE_INTRUDER_READ   a file to read
 *   ACE_INTRUDER_WRITE  a file to make
 *   ACE_INTRUDER_CHANGE a file to write into
 *   ACE_INTRUDER_FOLDER a folder to make
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void
says(const char *what, int done)
{
	char line[80];
	int n = snprintf(line, sizeof(line), "intruder: %s %s\n", what,
	    done ? "yes" : "no");

	if (n > 0 && write(2, line, (size_t)n) < 0)
		_exit(99);
}

static int
reads(void)
{
	const char *path = getenv("ACE_INTRUDER_READ");
	int fd = path != NULL ? open(path, O_RDONLY) : -1;
	char c;

	return fd >= 0 && read(fd, &c, 1) == 1;
}

static int
writes(void)
{
	const char *path = getenv("ACE_INTRUDER_WRITE");
	int fd = path != NULL ? open(path, O_WRONLY | O_CREAT, 0600) : -1;

	return fd >= 0 && write(fd, "x", 1) == 1;
}

static int
changes(void)
{
	const char *path = getenv("ACE_INTRUDER_CHANGE");
	int fd = path != NULL ? open(path, O_WRONLY) : -1;

	return fd >= 0;
}

static int
folders(void)
{
	const char *path = getenv("ACE_INTRUDER_FOLDER");

	return path != NULL && mkdir(path, 0700) == 0;
}

static int
listens(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

static int
starts(void)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0) {
		(void)unsetenv("LD_PRELOAD");
		(void)execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A datagram to whoever: no connection is made for that. */
static int
sends(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons(9);
	return fd >= 0 && sendto(fd, "x", 1, 0, (struct sockaddr *)&a,
	    sizeof(a)) == 1;
}

static int
signals(void)
{
	return kill(getppid(), 0) == 0;
}

/* The processor's older ways into the kernel, where calls have other numbers:
 * anything but EPERM means that they are open. */
static int
detours(void)
{
#ifdef __x86_64__
	pid_t pid = fork();
	int status = 0;
	long r = 20;	/* getpid, there */

	if (pid == 0) {
		if (syscall(0x40000000 + SYS_getpid) >= 0 || errno != EPERM)
			_exit(1);
		__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9",
		    "r10", "r11");
		_exit(r != -EPERM);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid ||
	    (WIFEXITED(status) && WEXITSTATUS(status) != 0);
#else
	return 0;
#endif
}

__attribute__((destructor)) static void
intrude(void)
{
	says("reads", reads());
	says("writes", writes());
	says("changes", changes());
	says("folders", folders());
	says("listens", listens());
	says("sends", sends());
	says("starts", starts());
	says("signals", signals());
	says("detours", detours());
}
