/* The peer of the benchmarks: the system calls that each promise costs at least, and nothing else.
 *
 * A line on stdin is a command, a size in bytes and the places to do it at, relative to the working
 * directory; the answer is a line with the nanoseconds of each. Any failure ends the process with a
 * message, because a benchmark of failures measures nothing. A place has no spaces.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_PATH_BYTES 4096

#ifdef __APPLE__
#define fdatasync fsync
#endif

static char *buffer;
static size_t buffer_bytes;
static uint64_t stamp;

static void fail(const char *call, const char *path)
{
    fprintf(stderr, "bare: %s: ", path);
    perror(call);
    exit(1);
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Gives every write another content, as ours has. */
static void prepare(size_t size)
{
    if (size > buffer_bytes) {
        buffer = realloc(buffer, size);
        if (!buffer)
            fail("realloc", "the buffer");
        memset(buffer, 'c', size);
        buffer_bytes = size;
    }
    stamp++;
    memcpy(buffer, &stamp, size < sizeof stamp ? size : sizeof stamp);
}

static void write_all(int file, const char *path, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(file, buffer + done, size - done);
        if (written <= 0)
            fail("write", path);
        done += (size_t)written;
    }
}

static void replace(const char *path, size_t size)
{
    char directory[MAX_PATH_BYTES], temp[MAX_PATH_BYTES + 16];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    snprintf(temp, sizeof temp, "%s/.%s", directory, name);
    int file = open(temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0)
        fail("open", temp);
    write_all(file, temp, size);
    if (fsync(file))
        fail("fsync", temp);
    close(file);
    if (rename(temp, path))
        fail("rename", path);
    int parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        fail("open", directory);
    if (fsync(parent))
        fail("fsync", directory);
    close(parent);
}

static void append(const char *path, size_t size)
{
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0)
        fail("open", path);
    write_all(file, path, size);
    if (fdatasync(file))
        fail("fdatasync", path);
    close(file);
}

static void read_whole(const char *path, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        fail("open", path);
    size_t done = 0;
    while (done < size) {
        ssize_t count = read(file, buffer + done, size - done);
        if (count <= 0)
            fail("read", path);
        done += (size_t)count;
    }
    close(file);
}

/* Looks at every name in a directory; with `stat_each` also at every file, and below. */
static size_t walk(int parent, const char *path, int stat_each)
{
    int handle = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = handle < 0 ? NULL : fdopendir(handle);
    if (!directory)
        fail("open", path);
    size_t seen = 0;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        struct stat found;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (stat_each && entry->d_type == DT_DIR) {
            seen += walk(handle, entry->d_name, stat_each);
            continue;
        }
        if (stat_each && fstatat(handle, entry->d_name, &found, AT_SYMLINK_NOFOLLOW))
            fail("fstatat", entry->d_name);
        seen++;
    }
    closedir(directory);
    return seen;
}

static void scan(const char *path, size_t expected)
{
    if (walk(AT_FDCWD, path, 1) != expected)
        fail("scan: another number of files", path);
}

static void list(const char *path, size_t expected)
{
    if (walk(AT_FDCWD, path, 0) != expected)
        fail("list: another number of names", path);
}

#define TOGETHER 512
#define DIRECTORIES 20
#define FILE_BYTES 1024

#ifdef __linux__
static void sync_all(int directory)
{
    if (syncfs(directory))
        fail("syncfs", "the filesystem");
}
#else
static void sync_all(int directory)
{
    (void)directory;
    sync();
}
#endif

/* Makes so many small files in a new directory, none of which is ever seen half written or lost: written aside, made
 * durable many at a time, then given their names in twenty directories. */
static void durable(const char *path, size_t count)
{
    int files[TOGETHER], directories[DIRECTORIES], aside;
    char from[MAX_PATH_BYTES], to[MAX_PATH_BYTES];
    prepare(FILE_BYTES);
    snprintf(from, sizeof from, "%s/aside", path);
    if (mkdir(path, 0700) || mkdir(from, 0700) || (aside = open(from, O_RDONLY | O_DIRECTORY)) < 0)
        fail("mkdir", from);
    for (size_t number = 0; number < count; number++) {
        size_t slot = number % TOGETHER;
        snprintf(from, sizeof from, "%zu", number);
        if ((files[slot] = openat(aside, from, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)
            fail("open", from);
        write_all(files[slot], from, FILE_BYTES);
        if (slot + 1 == TOGETHER || number + 1 == count) {
            sync_all(aside);
            for (size_t written = 0; written <= slot; written++)
                close(files[written]);
        }
    }
    for (size_t number = 0; number < DIRECTORIES; number++) {
        snprintf(to, sizeof to, "%s/%02zu", path, number);
        if (mkdir(to, 0700) || (directories[number] = open(to, O_RDONLY | O_DIRECTORY)) < 0)
            fail("mkdir", to);
    }
    for (size_t number = 0; number < count; number++) {
        snprintf(from, sizeof from, "%zu", number);
        snprintf(to, sizeof to, "%06zu.md", number);
        if (renameat(aside, from, directories[number % DIRECTORIES], to))
            fail("rename", from);
    }
    sync_all(aside);
    for (size_t number = 0; number < DIRECTORIES; number++)
        close(directories[number]);
    close(aside);
}

#define MAX_THREADS 64
#define THREADS_BYTES 1024

struct writer {
    pthread_t thread;
    const char *path;
    uint64_t until, count;
};

static void *write_on(void *argument)
{
    struct writer *writer = argument;
    for (writer->count = 0; now() < writer->until; writer->count++)
        replace(writer->path, THREADS_BYTES);
    return NULL;
}

/* Replaces every path from a thread of its own for so many milliseconds; answers how often each. */
static void threads(uint64_t milliseconds)
{
    static struct writer writers[MAX_THREADS];
    size_t count = 0;
    uint64_t until = now() + milliseconds * 1000000u;
    prepare(THREADS_BYTES);
    for (const char *path; count < MAX_THREADS && (path = strtok(NULL, " \n")); count++)
        writers[count] = (struct writer){ .path = path, .until = until };
    for (size_t at = 0; at < count; at++)
        if (pthread_create(&writers[at].thread, NULL, write_on, &writers[at]))
            fail("pthread_create", writers[at].path);
    for (size_t at = 0; at < count; at++) {
        pthread_join(writers[at].thread, NULL);
        printf("%llu ", (unsigned long long)writers[at].count);
    }
}

#define MAX_ARGUMENTS 16

static uint64_t nanoseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* Runs a program so many times, its output thrown away; answers what each run took of CPU and of time. */
static void spawn(size_t times)
{
    extern char **environ;
    char *arguments[MAX_ARGUMENTS + 1];
    size_t count = 0;
    posix_spawn_file_actions_t actions;
    while (count < MAX_ARGUMENTS && (arguments[count] = strtok(NULL, " \n")))
        count++;
    arguments[count] = NULL;
    if (!count || posix_spawn_file_actions_init(&actions)
        || posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        || posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0))
        fail("spawn", "the program");
    while (times--) {
        struct rusage used;
        pid_t child;
        int status;
        uint64_t started = now();
        if (posix_spawn(&child, arguments[0], &actions, NULL, arguments, environ))
            fail("posix_spawn", arguments[0]);
        if (wait4(child, &status, 0, &used) != child)
            fail("wait4", arguments[0]);
        uint64_t elapsed = now() - started;
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            fail("spawn: it failed", arguments[0]);
        printf("%llu %llu ", (unsigned long long)(nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime)),
               (unsigned long long)elapsed);
    }
    posix_spawn_file_actions_destroy(&actions);
}

static const struct {
    const char *name;
    void (*run)(const char *path, size_t size);
    int size_is_bytes;
} commands[] = {
    { "replace", replace, 1 }, { "append", append, 1 }, { "read", read_whole, 1 },
    { "scan", scan, 0 },       { "list", list, 0 },     { "durable", durable, 0 },
};

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        const char *name = strtok(line, " \n"), *size_text = strtok(NULL, " \n"), *path;
        int is_threads = name && !strcmp(name, "threads"), is_spawn = name && !strcmp(name, "spawn");
        if (size_text && (is_threads || is_spawn)) {
            (is_threads ? threads : spawn)(strtoull(size_text, NULL, 10));
            printf("\n");
            fflush(stdout);
            continue;
        }
        size_t command = 0, count = sizeof commands / sizeof *commands;
        while (command < count && (!name || strcmp(commands[command].name, name)))
            command++;
        if (command == count || !size_text) {
            fprintf(stderr, "bare: unknown command\n");
            return 2;
        }
        size_t size = strtoull(size_text, NULL, 10);
        while ((path = strtok(NULL, " \n"))) {
            if (commands[command].size_is_bytes)
                prepare(size);
            uint64_t started = now();
            commands[command].run(path, size);
            printf("%llu ", (unsigned long long)(now() - started));
        }
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
