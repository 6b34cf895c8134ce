/*
 * A library that is loaded into a relay (LD_PRELOAD). It notes in a file what reached the disk, so that a loss of power
 * can be carried out after the process was killed: all other bytes are then removed. It also gives the process another
 * id of this boot of the system.
 *
 * A line `S <bytes> <time> <path>`: a sync of the file ended, which began at this time (nanoseconds of the monotonic
 * clock), when the file had this size. A line `N <path>`: a sync of the folder of this file ended, which began when the
 * file was there.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

typedef int (*Sync)(int);
typedef int (*Open)(const char *, int, ...);

static void append(const char *text, size_t length) {
  const char *path = getenv("POWER_LOSS_LOG");
  if (!path) return;
  Open open_file = (Open)dlsym(RTLD_NEXT, "open64");
  int log = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return;
  ssize_t written = write(log, text, length);
  (void)written;
  close(log);
}

/* Writes down what is there before the sync begins, because later writes may not be part of it. */
static char *before(int file) {
  char link[64], path[PATH_MAX];
  struct stat found;
  struct timespec began;
  clock_gettime(CLOCK_MONOTONIC, &began);
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0 || fstat(file, &found) != 0) return NULL;
  path[length] = 0;
  char *text = NULL;
  size_t size = 0;
  FILE *lines = open_memstream(&text, &size);
  if (!S_ISDIR(found.st_mode)) {
    long long at = began.tv_sec * 1000000000LL + began.tv_nsec;
    fprintf(lines, "S %lld %lld %s\n", (long long)found.st_size, at, path);
  } else {
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
      if (entry->d_name[0] != '.') fprintf(lines, "N %s/%s\n", path, entry->d_name);
    if (folder) closedir(folder);
  }
  fclose(lines);
  return text;
}

static int noted(const char *name, int file) {
  Sync sync_file = (Sync)dlsym(RTLD_NEXT, name);
  char *text = before(file);
  int result = sync_file(file);
  if (text && result == 0) append(text, strlen(text));
  free(text);
  return result;
}

int fdatasync(int file) { return noted("fdatasync", file); }
int fsync(int file) { return noted("fsync", file); }

static const char *redirected(const char *path) {
  const char *boot = getenv("POWER_LOSS_BOOT");
  return boot && strcmp(path, BOOT_ID) == 0 ? boot : path;
}

static int opened(const char *name, const char *path, int flags, va_list more) {
  Open open_file = (Open)dlsym(RTLD_NEXT, name);
  int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;
  return open_file(redirected(path), flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int result = opened("open", path, flags, more);
  va_end(more);
  return result;
}

int open64(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int result = opened("open64", path, flags, more);
  va_end(more);
  return result;
}
