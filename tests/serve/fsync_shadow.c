/* A disk that forgets: after each flush of a file its content is copied to $GENM_SHADOW, under the same name. What
   lies there at any moment is what a power cut at that moment would leave if every write since the last flush of its
   file were lost. Loaded by LD_PRELOAD; the copy appears whole or not at all, before the flush returns. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void keep(int fd) {
    const char *folder = getenv("GENM_SHADOW");
    char link[64], path[PATH_MAX], part[PATH_MAX + 64], whole[PATH_MAX + 64], block[1 << 16];
    if (folder == NULL) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    if (name == NULL || strncmp(name + 1, "store.sqlite", 12) != 0 || strstr(name, "-lock") != NULL) return;
    snprintf(part, sizeof part, "%s/.part-%d-%d", folder, (int)getpid(), (int)gettid());
    snprintf(whole, sizeof whole, "%s%s", folder, name);
    int from = open(path, O_RDONLY), to = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (from >= 0 && to >= 0) {
        ssize_t n;
        while ((n = read(from, block, sizeof block)) > 0)
            if (write(to, block, n) != n) abort();
        rename(part, whole);
    }
    if (from >= 0) close(from);
    if (to >= 0) close(to);
}

int fsync(int fd) {
    static int (*real)(int);
    if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    int code = real(fd);
    if (code == 0) keep(fd);
    return code;
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    int code = real(fd);
    if (code == 0) keep(fd);
    return code;
}
