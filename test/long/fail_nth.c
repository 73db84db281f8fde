// For fail_nth.py: preloaded into a program, it waits before main() and runs main() in a forked child for each request,
// in which the n-th call of one function fails. Request on descriptor 198: three numbers of 4 bytes (which function,
// n, bytes of the arguments), then the arguments, each ended by a zero. Answer on 199: four numbers of 4 bytes (wait
// status, calls of the function, 1 if it failed, 1 if the time was up). FAIL_NTH_TRACE=1 prints where the call came from.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALLOCATE, OPEN, READ, MAP, STATUS, WRITE, SYNC, RENAME, MAKE_FOLDER, LOCK, SOCKETS, FORK, THREAD, CONNECT, SEND, RECEIVE, WAIT, OWNER };

static struct {
  int what, at;  // what fails; 0 calls are counted before main()
  _Atomic int calls, failed;
}* plan;
static __thread int inside;

// 1 if this call is the one that fails.
static int fails(int what, int error) {
  if (!plan || inside || plan->what != what || ++plan->calls != plan->at) return 0;
  plan->failed = 1;
  if (getenv("FAIL_NTH_TRACE")) {
    void* from[64];
    inside = 1;
    backtrace_symbols_fd(from, backtrace(from, 64), 2);
    inside = 0;
  }
  errno = error;
  return 1;
}

#define NEXT(name) ((__typeof__(&name))next(#name))
static void* next(const char* name) {
  inside = 1;
  void* found = dlsym(RTLD_NEXT, name);
  inside = 0;
  return found;
}

#ifdef LEAKS  // LeakSanitizer, preloaded behind this library, has the memory
#define MEMORY(name) __interceptor_##name
#else
#define MEMORY(name) __libc_##name
#endif
extern void *MEMORY(malloc)(size_t), *MEMORY(calloc)(size_t, size_t), *MEMORY(realloc)(void*, size_t), *MEMORY(memalign)(size_t, size_t);
void* malloc(size_t n) { return fails(ALLOCATE, ENOMEM) ? NULL : MEMORY(malloc)(n); }
void* calloc(size_t n, size_t m) { return fails(ALLOCATE, ENOMEM) ? NULL : MEMORY(calloc)(n, m); }
void* realloc(void* p, size_t n) { return fails(ALLOCATE, ENOMEM) ? NULL : MEMORY(realloc)(p, n); }
void* aligned_alloc(size_t a, size_t n) { return fails(ALLOCATE, ENOMEM) ? NULL : MEMORY(memalign)(a, n); }
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, int) : 0;
  va_end(list);
  return fails(OPEN, EMFILE) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, int) : 0;
  va_end(list);
  return fails(OPEN, EMFILE) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) { return fails(OPEN, EMFILE) ? NULL : NEXT(fopen)(path, mode); }
ssize_t read(int file, void* to, size_t n) { return fails(READ, EIO) ? -1 : syscall(SYS_read, file, to, n); }
ssize_t pread(int file, void* to, size_t n, off_t at) { return fails(READ, EIO) ? -1 : syscall(SYS_pread64, file, to, n, at); }
void* mmap(void* at, size_t n, int access, int flags, int file, off_t from) {
  return fails(MAP, ENOMEM) ? MAP_FAILED : (void*)syscall(SYS_mmap, at, n, access, flags, file, from);
}
int fstat(int file, struct stat* to) { return fails(STATUS, EIO) ? -1 : NEXT(fstat)(file, to); }
int stat(const char* path, struct stat* to) { return fails(STATUS, EACCES) ? -1 : NEXT(stat)(path, to); }
int lstat(const char* path, struct stat* to) { return fails(STATUS, EACCES) ? -1 : NEXT(lstat)(path, to); }
int fstatat(int folder, const char* path, struct stat* to, int flags) { return fails(STATUS, EACCES) ? -1 : NEXT(fstatat)(folder, path, to, flags); }
ssize_t write(int file, const void* from, size_t n) { return file > 2 && fails(WRITE, ENOSPC) ? -1 : syscall(SYS_write, file, from, n); }
ssize_t pwrite(int file, const void* from, size_t n, off_t at) { return fails(WRITE, ENOSPC) ? -1 : syscall(SYS_pwrite64, file, from, n, at); }
int fsync(int file) { return fails(SYNC, EIO) ? -1 : (int)syscall(SYS_fsync, file); }
int rename(const char* from, const char* to) { return fails(RENAME, EACCES) ? -1 : (int)syscall(SYS_rename, from, to); }
int linkat(int a, const char* from, int b, const char* to, int flags) { return fails(RENAME, EACCES) ? -1 : (int)syscall(SYS_linkat, a, from, b, to, flags); }
int mkdir(const char* path, mode_t mode) { return fails(MAKE_FOLDER, EACCES) ? -1 : (int)syscall(SYS_mkdir, path, mode); }
int flock(int file, int how) { return fails(LOCK, ENOLCK) ? -1 : (int)syscall(SYS_flock, file, how); }
int socketpair(int a, int b, int c, int to[2]) { return fails(SOCKETS, EMFILE) ? -1 : (int)syscall(SYS_socketpair, a, b, c, to); }
int socket(int a, int b, int c) { return fails(SOCKETS, EMFILE) ? -1 : (int)syscall(SYS_socket, a, b, c); }
int connect(int file, const struct sockaddr* to, socklen_t n) { return fails(CONNECT, ENETUNREACH) ? -1 : (int)syscall(SYS_connect, file, to, n); }
ssize_t send(int file, const void* from, size_t n, int flags) { return fails(SEND, ECONNRESET) ? -1 : syscall(SYS_sendto, file, from, n, flags, NULL, 0); }
ssize_t recv(int file, void* to, size_t n, int flags) { return fails(RECEIVE, ECONNRESET) ? -1 : syscall(SYS_recvfrom, file, to, n, flags, NULL, NULL); }
int poll(struct pollfd* files, nfds_t n, int time) { return fails(WAIT, ENOMEM) ? -1 : (int)syscall(SYS_poll, files, n, time); }
int lchown(const char* path, uid_t user, gid_t group) { return fails(OWNER, EPERM) ? -1 : (int)syscall(SYS_lchown, path, user, group); }
int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* how, char* const words[], char* const environment[]) {
  return fails(FORK, EAGAIN) ? EAGAIN : NEXT(posix_spawn)(child, path, actions, how, words, environment);
}
pid_t fork(void) { return fails(FORK, EAGAIN) ? -1 : NEXT(fork)(); }
int pthread_create(pthread_t* thread, const pthread_attr_t* with, void* (*run)(void*), void* data) {
  return fails(THREAD, EAGAIN) ? EAGAIN : NEXT(pthread_create)(thread, with, run, data);
}

typedef int (*main_function)(int, char**, char**);
static main_function real_main;

static int take(void* to, size_t n) {
  for (char* at = to; n > 0;) {
    const ssize_t got = syscall(SYS_read, 198, at, n);
    if (got <= 0) return 0;
    at += got, n -= (size_t)got;
  }
  return 1;
}

static int serve(int count, char** words, char** environment) {
  (void)count;
  for (int32_t request[3]; take(request, sizeof request);) {
    char text[65536] = "", *arguments[64] = {words[0]};
    if (request[2] >= (int32_t)sizeof text || !take(text, (size_t)request[2])) return 1;
    int arguments_count = 1;
    for (char* at = text; at < text + request[2] && arguments_count < 63; at += strlen(at) + 1) arguments[arguments_count++] = at;
    __typeof__(plan) shared = (void*)syscall(SYS_mmap, NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t child = NEXT(fork)();
    if (child == 0) {
      setpgid(0, 0);
      close(198), close(199);
      const struct rlimit none = {0, 0};
      setrlimit(RLIMIT_CORE, &none);
      const int errors = (int)syscall(SYS_openat, AT_FDCWD, getenv("FAIL_NTH_ERRORS"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(errors, 2), close(errors);
      if (getenv("FAIL_NTH_INPUT")) dup2((int)syscall(SYS_openat, AT_FDCWD, getenv("FAIL_NTH_INPUT"), O_RDONLY, 0), 0);
      if (getenv("FAIL_NTH_OUTPUT")) dup2((int)syscall(SYS_openat, AT_FDCWD, getenv("FAIL_NTH_OUTPUT"), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      shared->what = request[0], shared->at = request[1];
      plan = shared;
      exit(real_main(arguments_count, arguments, environment));
    }
    struct pollfd ended = {(int)syscall(SYS_pidfd_open, child, 0), POLLIN, 0};
    const int late = poll(&ended, 1, atoi(getenv("FAIL_NTH_SECONDS")) * 1000) == 0;
    if (late) kill(-child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    kill(-child, SIGKILL);
    close(ended.fd);
    const int32_t answer[4] = {status, shared->calls, shared->failed, late};
    munmap(shared, sizeof *plan);
    if (syscall(SYS_write, 199, answer, sizeof answer) != sizeof answer) return 1;
  }
  return 0;
}

int __libc_start_main(main_function program, int count, char** words, void (*init)(void), void (*end)(void), void (*loader)(void), void* stack) {
  typedef int (*start)(main_function, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
  real_main = program;
  unsetenv("LD_PRELOAD");
  return ((start)next("__libc_start_main"))(serve, count, words, init, end, loader, stack);
}
