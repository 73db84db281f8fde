/* The C interface of Kiln: opens a `.kiln` file, describes its inputs and outputs, and runs it on the host or on a GPU.
 *
 * Libraries: libkiln_runtime.so has all of these functions and no compiler. It runs files of native kernels (`kiln
 * finalize --native-file`). If a file is portable, it opens libkiln.so, which takes the kernels from the cache and
 * compiles those that are missing, in processes of its own (kiln-compile-worker, beside it). Without libkiln.so the
 * status is KILN_NOT_BUILT_IN.
 *
 * Errors: every function that can fail returns a kiln_status. kiln_last_error() then returns one line for the calling
 * thread that says what happened and what to do. No exception leaves this interface.
 *
 * Ownership: strings and shapes belong to the program that they came from and live as long as it or one of its contexts
 * does.
 *
 * Threads: several threads may share a program. A context runs one call at a time.
 *
 * Memory: kiln_run_from_host takes host pointers on any device. kiln_run takes them for a program on the host. For a
 * program on a GPU (kiln_program_open_on) all tensors are in the GPU's memory, which the caller allocates with HIP or
 * CUDA.
 *
 * Trust: a finalized file holds machine code. It is opened only if a trusted key has signed it: your own
 * (~/.config/kiln/key, created when `kiln finalize` signs its first file) or one in ~/.config/kiln/trusted_keys
 * ($XDG_CONFIG_HOME replaces ~/.config). kiln_program_open_with accepts another list of keys. See docs/cache.md. */
#ifndef KILN_H
#define KILN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_API_VERSION 5

typedef enum kiln_status {
  KILN_OK = 0,
  KILN_USAGE, /* an argument makes no sense: wrong size, wrong index, null */
  KILN_MISSING_FILE,
  KILN_DAMAGED_FILE,  /* truncated or corrupted */
  KILN_NEWER_VERSION, /* the file was written by a newer Kiln */
  KILN_UNSUPPORTED,   /* valid, but not for this Kiln, this device or without a shape */
  KILN_NOT_NATIVE,    /* the file's kernels are not finalized: `kiln finalize --native-file` does that */
  KILN_IO,
  KILN_OUT_OF_MEMORY, /* memory of the host or of the device is used up */
  KILN_INTERNAL,
  KILN_UNTRUSTED,      /* no trusted key has signed the file's native code; since version 4, those below since 5 */
  KILN_MISMATCH,       /* what was checked does not hold */
  KILN_COMPILE_FAILED, /* a code generator, or the compiler of a driver, gave up */
  KILN_TIMED_OUT,
  KILN_NO_DRIVER,    /* the GPU's driver is not installed or does not work */
  KILN_NO_DEVICE,    /* the driver has no such device */
  KILN_WRONG_DEVICE, /* the device is here, but cannot run this code */
  KILN_DEVICE_LOST,  /* the device stopped working: open the program again */
  KILN_NOT_BUILT_IN, /* this library lacks a component that the call needs, such as the compiler */
  KILN_NOT_CACHED,   /* only cached kernels were allowed, and one is missing */
  KILN_UNREACHABLE   /* a server does not answer */
} kiln_status;

typedef enum kiln_type {
  KILN_F64,
  KILN_F32,
  KILN_F16,
  KILN_BF16,
  KILN_F8E4M3,
  KILN_F8E5M2,
  KILN_I64,
  KILN_I32,
  KILN_I16,
  KILN_I8,
  KILN_I4,
  KILN_U64,
  KILN_U32,
  KILN_U16,
  KILN_U8,
  KILN_U4,
  KILN_BOOL /* one byte */
} kiln_type;

typedef struct kiln_program kiln_program; /* loaded kernels, constants and a launch plan; immutable */
typedef struct kiln_context kiln_context; /* the memory of one run; a program may have several */
typedef struct kiln_session kiln_session; /* an open file that gives programs for any sizes */

/* The value of an open dimension. */
typedef struct kiln_dim {
  const char* name;
  int64_t value;
} kiln_dim;

/* A dense, row-major tensor. */
typedef struct kiln_tensor_info {
  const char* name;
  kiln_type type;
  size_t rank;
  const int64_t* dims; /* rank of them */
  size_t bytes;
} kiln_tensor_info;

typedef struct kiln_program_info {
  size_t kernels, launches;
  size_t arena_bytes, constant_bytes, prepared_bytes;
} kiln_program_info;

int kiln_api_version(void);
const char* kiln_status_name(kiln_status status);
/* The message of the last failed call of this thread, "" before the first. Valid until the thread's next failure. */
const char* kiln_last_error(void);

/* Opens a program on the host. `threads` threads share one run; 0 means every processor that this process may use.
 * *program is null after a failure. */
kiln_status kiln_program_open(const char* path, unsigned threads, kiln_program** program);
/* The same on another device: "host", "hip:N" or "cuda:N". If it is not here the status is KILN_NO_DRIVER or
 * KILN_NO_DEVICE, and kiln_last_error lists the libraries that were searched for. */
kiln_status kiln_program_open_on(const char* path, const char* device, unsigned threads, kiln_program** program);
/* Fields that are zero, except `size`, have the defaults of kiln_program_open. Since version 4. */
typedef struct kiln_open_options {
  size_t size;        /* sizeof(kiln_open_options) */
  const char* device; /* null: "host" */
  unsigned threads;
  /* A file of public keys: the file must be signed by one of these. Null: your own and trusted_keys, as above. */
  const char* trusted_keys;
  /* Not 0: run the file's machine code whoever made it. It can do whatever you can. Excludes trusted_keys. */
  int allow_unsigned;
  /* For portable files; since version 5. */
  const kiln_dim* dims; /* of kiln_program_open_with: dim_count values, one for each open dimension */
  size_t dim_count;
  const char* cache_folder; /* null: $KILN_CACHE_DIR, $XDG_CACHE_HOME/kiln or ~/.cache/kiln */
  int no_cache;             /* not 0: no cache is read or written */
  int only_cached;          /* not 0: KILN_NOT_CACHED rather than compile */
  /* The program that compiles. Null: $KILN_COMPILE_WORKER, or kiln-compile-worker beside libkiln.so. */
  const char* compile_worker;
  size_t most_programs; /* of different sizes that a session keeps; the least recently used goes; 0: 8 */
  /* Called while kernels are compiled, by the threads that wait for them, one at a time. May be null. */
  void (*progress)(void* data, size_t done, size_t total);
  /* One line about a problem with the cache or its records, from any thread. Null: nobody is told. */
  void (*warn)(void* data, const char* text);
  void* data; /* for progress and warn */
} kiln_open_options;
/* KILN_UNTRUSTED if the file lacks a trusted signature. `options` may be null: all defaults. */
kiln_status kiln_program_open_with(const char* path, const kiln_open_options* options, kiln_program** program);
void kiln_program_close(kiln_program* program); /* null is allowed; its contexts may go on */

/* Opens libkiln.so now: this file, or with null beside libkiln_runtime.so, else where the loader looks. It stays open.
 * KILN_NOT_BUILT_IN: kiln_last_error lists where it was searched for. Since version 5, as are the functions of
 * sessions. */
kiln_status kiln_load_compiler(const char* library);

/* Opens a file whose sizes come later. kiln_session_program() gives a program for values of all open dimensions. The
 * session keeps the last programs, so that asking for one again costs nothing. They share the file, the device with its
 * constants, the cache and the compiler's processes. Any thread may ask. */
kiln_status kiln_session_open(const char* path, const kiln_open_options* options, kiln_session** session);
void kiln_session_close(kiln_session* session); /* null is allowed; its programs may go on */
typedef struct kiln_dim_info {
  const char* name; /* lives as long as the session */
  int64_t min, max;
} kiln_dim_info;
size_t kiln_session_dim_count(const kiln_session* session);
kiln_status kiln_session_dim(const kiln_session* session, size_t index, kiln_dim_info* info);
/* The caller closes *program. KILN_USAGE names a dimension that lacks a value or has one outside its range. */
kiln_status kiln_session_program(kiln_session* session, const kiln_dim* dims, size_t count, kiln_program** program);

size_t kiln_program_input_count(const kiln_program* program);
size_t kiln_program_output_count(const kiln_program* program);
kiln_status kiln_program_input(const kiln_program* program, size_t index, kiln_tensor_info* info);
kiln_status kiln_program_output(const kiln_program* program, size_t index, kiln_tensor_info* info);
/* The info of an output whose size depends on data has the largest dims. A run fills only the first elements along
 * `axis`. How many is an int64_t that the run writes to output number *count. If the axis always has its full size,
 * *count is the number of outputs. Since version 3. */
kiln_status kiln_program_output_extent(const kiln_program* program, size_t index, size_t axis, size_t* count);
kiln_status kiln_program_get_info(const kiln_program* program, kiln_program_info* info);

/* How work is submitted to a GPU: launch by launch (OFF), as a graph that is built once and replayed (ON), or whichever
 * is faster in the first runs (AUTO). The results are the same bits.
 *
 * NVIDIA's driver 13.0 makes all graphs of a process up to 13 % slower once two streams have received launches.
 * Contexts with ON or AUTO therefore launch on one stream. If the caller launches kernels on other streams, or also
 * uses contexts with KILN_GRAPH_OFF, graphs become slower. */
typedef enum kiln_graph_policy { KILN_GRAPH_OFF, KILN_GRAPH_ON, KILN_GRAPH_AUTO } kiln_graph_policy;

typedef struct kiln_graph_info {
  const char* mode;   /* "off", "measuring", "eager", "replay" */
  const char* reason; /* why runs are eager although a graph was requested, else ""; valid until the context's next
                         call, as is `mode` */
  size_t captures, replays, patches, updates, rebuilds, failures;
  int decided, replay, branches; /* the result of KILN_GRAPH_AUTO; valid if `decided` is not 0 */
  double eager_ms, replay_ms;
} kiln_graph_info;

kiln_status kiln_context_create(const kiln_program* program, kiln_context** context); /* with KILN_GRAPH_AUTO */
kiln_status kiln_context_create_with(const kiln_program* program, kiln_graph_policy graph, kiln_context** context);
kiln_status kiln_context_get_graph_info(kiln_context* context, kiln_graph_info* info);
void kiln_context_destroy(kiln_context* context); /* null is allowed */

/* Runs the program and waits for the results. There is one pointer per input and output, each to as many bytes as its
 * info says, aligned to its element type. Outputs must not overlap each other or an input. Allocates nothing. */
kiln_status kiln_run(kiln_context* context, const void* const* inputs, void* const* outputs);
/* The same with tensors in host memory on any device: they are copied to the device and back, through memory that stays
 * with the context. Since version 5. */
kiln_status kiln_run_from_host(kiln_context* context, const void* const* inputs, void* const* outputs);
/* Enqueues the run on a stream of the caller (a hipStream_t or CUstream; null: the default stream) and does not wait:
 * the results are complete when the stream has executed the run. The stream must outlive the context. KILN_UNSUPPORTED
 * on the host. */
kiln_status kiln_run_on_stream(kiln_context* context, const void* const* inputs, void* const* outputs, void* stream);

#ifdef __cplusplus
}
#endif

#endif
