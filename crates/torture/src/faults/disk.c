/* A disk that fails on demand, between a process and its files: a library for LD_PRELOAD. The file that
 * COUNTERSIGN_FAULTS names is mapped by this process and written by the driver; its layout is `struct control`, and
 * `disk.rs` writes the same. Only files of the store are touched: their names end in ".db" or ".db-wal". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum kind {
    NONE,
    WRITE_EIO,      /* a write fails, nothing is written */
    WRITE_ENOSPC,   /* the same without room */
    WRITE_EFBIG,    /* the same at a limit of the file's size */
    WRITE_SHORT,    /* half is written, and said to be */
    WRITE_TORN,     /* half is written, and the write fails */
    SYNC_EIO,       /* a sync fails, and what was written since the last one is lost, as after eviction */
    READ_EIO,       /* a read fails */
    READ_SHORT,     /* a read returns half, and the rest when it is asked for */
    READ_ROT,       /* one bit that is read is wrong, this time only */
    WRITE_ROT,      /* one bit that is written is wrong, for good */
    WRITE_LOST,     /* a write is said to be done, and is not */
    KINDS
};

struct control {
    uint32_t kind;
    uint32_t files; /* 1: the database, 2: its log */
    uint32_t every; /* on average one of so many operations fails */
    uint32_t seed;
    uint64_t operations;
    uint64_t hits;
};

static struct control *control;
static ssize_t (*real_pread)(int, void *, size_t, off64_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

/* What stood where something was written since the last sync. */
struct before {
    dev_t device;
    ino_t inode;
    off64_t at;
    size_t length;
    unsigned char *bytes;
};
#define BEFORE_MAX 16384
static struct before before[BEFORE_MAX];
static size_t befores;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Linux tells a failed sync to every open descriptor of the file once, whichever of them has asked for it. */
#define FILES_MAX 64
#define DESCRIPTORS_MAX 1024
static struct { dev_t device; ino_t inode; uint64_t failures; } files[FILES_MAX];
static struct { size_t file; uint64_t told; } descriptors[DESCRIPTORS_MAX];

/* The place of a file in the table, from 1; 0 if there is none. The lock is held. */
static size_t file_of(const struct stat64 *stat) {
    for (size_t n = 1; n < FILES_MAX; n++) {
        if (files[n].inode == 0) {
            files[n].device = stat->st_dev;
            files[n].inode = stat->st_ino;
        }
        if (files[n].device == stat->st_dev && files[n].inode == stat->st_ino) return n;
    }
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    real_pread = dlsym(RTLD_NEXT, "pread64");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_read = dlsym(RTLD_NEXT, "read");
    real_write = dlsym(RTLD_NEXT, "write");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    const char *path = getenv("COUNTERSIGN_FAULTS");
    if (!path) return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) abort();
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) abort();
    close(fd);
    control = mapped;
}

static int ends_in(const char *name, const char *end) {
    size_t length = strlen(name), wanted = strlen(end);
    return length >= wanted && strcmp(name + length - wanted, end) == 0;
}

static int name_of(int fd, char *name, size_t room) {
    char link[32] = "/proc/self/fd/";
    char digits[12];
    int n = 0, value = fd;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value && n < 11);
    size_t end = strlen(link);
    while (n) link[end++] = digits[--n];
    link[end] = 0;
    ssize_t length = readlink(link, name, room - 1);
    if (length <= 0) return 0;
    name[length] = 0;
    return 1;
}

static int is_of_store(int fd, uint32_t files) {
    char name[4096];
    if (!name_of(fd, name, sizeof name)) return 0;
    return ((files & 1) && ends_in(name, ".db")) || ((files & 2) && ends_in(name, ".db-wal"));
}

static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* True if this operation has the fault. Its random number is left in `dice`. */
static int strikes(int fd, uint64_t *dice) {
    if (!is_of_store(fd, control->files)) return 0;
    uint64_t n = __atomic_fetch_add(&control->operations, 1, __ATOMIC_SEQ_CST);
    *dice = mixed(n ^ ((uint64_t)control->seed << 32));
    uint32_t every = control->every ? control->every : 1;
    return *dice % every == 0;
}

static void hit(void) { __atomic_fetch_add(&control->hits, 1, __ATOMIC_SEQ_CST); }

static uint32_t kind_now(void) { return control ? __atomic_load_n(&control->kind, __ATOMIC_SEQ_CST) : NONE; }

static void remember(int fd, size_t length, off64_t at) {
    struct stat64 stat;
    if (fstat64(fd, &stat) != 0) return;
    unsigned char *bytes = calloc(1, length);
    if (!bytes) return;
    if (real_pread(fd, bytes, length, at) < 0) {
        free(bytes);
        return;
    }
    pthread_mutex_lock(&lock);
    size_t file = file_of(&stat);
    if (fd < DESCRIPTORS_MAX && descriptors[fd].file != file) {
        descriptors[fd].file = file;
        descriptors[fd].told = files[file].failures;
    }
    if (befores < BEFORE_MAX) {
        before[befores++] = (struct before){stat.st_dev, stat.st_ino, at, length, bytes};
    } else {
        free(bytes);
    }
    pthread_mutex_unlock(&lock);
}

/* True if a sync of this file has failed and this descriptor was not told. */
static int is_owed_a_failure(int fd) {
    int is_owed = 0;
    pthread_mutex_lock(&lock);
    if (fd < DESCRIPTORS_MAX && descriptors[fd].file) {
        uint64_t failures = files[descriptors[fd].file].failures;
        is_owed = descriptors[fd].told < failures;
        descriptors[fd].told = failures;
    }
    pthread_mutex_unlock(&lock);
    return is_owed;
}

/* Forgets what was written to a file since the last sync; takes it back if that is so. */
static void forget(int fd, int takes_back) {
    struct stat64 stat;
    if (fstat64(fd, &stat) != 0) return;
    pthread_mutex_lock(&lock);
    if (takes_back) {
        size_t file = file_of(&stat);
        files[file].failures++;
        if (fd < DESCRIPTORS_MAX && descriptors[fd].file == file) descriptors[fd].told = files[file].failures;
    }
    size_t kept = 0;
    for (size_t n = befores; takes_back && n-- > 0;) {
        struct before *it = &before[n];
        if (it->device == stat.st_dev && it->inode == stat.st_ino && it->at < stat.st_size)
            (void)!real_pwrite(fd, it->bytes, it->length, it->at);
    }
    for (size_t n = 0; n < befores; n++) {
        if (before[n].device == stat.st_dev && before[n].inode == stat.st_ino)
            free(before[n].bytes);
        else
            before[kept++] = before[n];
    }
    befores = kept;
    pthread_mutex_unlock(&lock);
}

static ssize_t put(int fd, const void *bytes, size_t length, off64_t at) {
    uint32_t kind = kind_now();
    uint64_t dice;
    if (kind == NONE || length == 0) return real_pwrite(fd, bytes, length, at);
    if (kind == SYNC_EIO && is_of_store(fd, control->files)) {
        remember(fd, length, at);
        return real_pwrite(fd, bytes, length, at);
    }
    int is_write = (kind >= WRITE_EIO && kind <= WRITE_TORN) || kind == WRITE_ROT || kind == WRITE_LOST;
    if (!is_write || !strikes(fd, &dice)) return real_pwrite(fd, bytes, length, at);
    hit();
    switch (kind) {
    case WRITE_ENOSPC: errno = ENOSPC; return -1;
    case WRITE_EFBIG: errno = EFBIG; return -1;
    case WRITE_SHORT: return real_pwrite(fd, bytes, length > 1 ? length / 2 : length, at);
    case WRITE_TORN:
        (void)!real_pwrite(fd, bytes, length / 2, at);
        errno = EIO;
        return -1;
    case WRITE_LOST: return (ssize_t)length;
    case WRITE_ROT: {
        unsigned char *changed = malloc(length);
        if (!changed) break;
        memcpy(changed, bytes, length);
        changed[(dice >> 16) % length] ^= (unsigned char)(1u << ((dice >> 8) & 7));
        ssize_t written = real_pwrite(fd, changed, length, at);
        free(changed);
        return written;
    }
    default: break;
    }
    errno = EIO;
    return -1;
}

static ssize_t get(int fd, void *bytes, size_t length, off64_t at) {
    uint32_t kind = kind_now();
    uint64_t dice;
    int is_read = kind == READ_EIO || kind == READ_SHORT || kind == READ_ROT;
    if (!is_read || length == 0 || !strikes(fd, &dice)) return real_pread(fd, bytes, length, at);
    hit();
    if (kind == READ_EIO) {
        errno = EIO;
        return -1;
    }
    /* Only the end of a file reads as nothing. */
    if (kind == READ_SHORT) return real_pread(fd, bytes, (length + 1) / 2, at);
    ssize_t got = real_pread(fd, bytes, length, at);
    if (got > 0) ((unsigned char *)bytes)[(dice >> 16) % (size_t)got] ^= (unsigned char)(1u << ((dice >> 8) & 7));
    return got;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { return put(fd, bytes, length, at); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return put(fd, bytes, length, at); }
ssize_t pread64(int fd, void *bytes, size_t length, off64_t at) { return get(fd, bytes, length, at); }
ssize_t pread(int fd, void *bytes, size_t length, off_t at) { return get(fd, bytes, length, at); }

/* SQLite seeks and writes where it was built without pread. */
ssize_t write(int fd, const void *bytes, size_t length) {
    if (!real_write) begin();
    off64_t at;
    if (kind_now() == NONE || !is_of_store(fd, 3) || (at = lseek64(fd, 0, SEEK_CUR)) < 0)
        return real_write(fd, bytes, length);
    ssize_t written = put(fd, bytes, length, at);
    if (written > 0) lseek64(fd, at + written, SEEK_SET);
    return written;
}

ssize_t read(int fd, void *bytes, size_t length) {
    if (!real_read) begin();
    off64_t at;
    if (kind_now() == NONE || !is_of_store(fd, 3) || (at = lseek64(fd, 0, SEEK_CUR)) < 0)
        return real_read(fd, bytes, length);
    ssize_t got = get(fd, bytes, length, at);
    if (got > 0) lseek64(fd, at + got, SEEK_SET);
    return got;
}

static int synced(int fd, int (*real)(int)) {
    uint64_t dice;
    if (kind_now() == SYNC_EIO && strikes(fd, &dice)) {
        hit();
        forget(fd, 1);
        errno = EIO;
        return -1;
    }
    if (control && is_owed_a_failure(fd)) {
        hit();
        errno = EIO;
        return -1;
    }
    int outcome = real(fd);
    if (outcome == 0 && befores) forget(fd, 0);
    return outcome;
}

int fsync(int fd) { return synced(fd, real_fsync); }
int fdatasync(int fd) { return synced(fd, real_fdatasync); }
