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
 * program on a GPU (kiln_program_open_on) all tensors are in the GPU's memory, which the caller allocates with HIP,
 * CUDA or kiln_device_allocate.
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

#define KILN_API_VERSION 14

/* As in C, every int is a value of these types, also of those that an older library does not know. */
#ifdef __cplusplus
#define KILN_INT : int
#else
#define KILN_INT
#endif

typedef enum kiln_status KILN_INT {
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
  KILN_NO_DRIVER,        /* the GPU's driver is not installed or does not work */
  KILN_NO_DEVICE,        /* the driver has no such device */
  KILN_WRONG_DEVICE,     /* the device is here, but cannot run this code */
  KILN_DEVICE_LOST,      /* the device stopped working: open the program again */
  KILN_NOT_BUILT_IN,     /* this library lacks a component that the call needs, such as the compiler */
  KILN_NOT_CACHED,       /* only cached kernels were allowed, and one is missing */
  KILN_UNREACHABLE,      /* a server does not answer */
  KILN_INVALID_SHAPE,    /* the model does not take these sizes, or an input of this shape; since version 9 */
  KILN_INVALID_SEQUENCE, /* ids or a mask that a language model cannot take; since version 10, as is the next one */
  KILN_CONTEXT_FULL      /* a sequence has no room for more ids */
} kiln_status;

typedef enum kiln_type KILN_INT {
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
  KILN_BOOL, /* one byte */
  KILN_F8E4M3FNUZ,
  KILN_F8E5M2FNUZ,
  KILN_F8E8M0,
  KILN_F4E2M1, /* two per byte, the first in the low bits, like KILN_I4 and KILN_U4 */
  KILN_I2,     /* four per byte */
  KILN_U2
} kiln_type;

typedef struct kiln_program kiln_program;         /* loaded kernels, constants and a launch plan; immutable */
typedef struct kiln_context kiln_context;         /* the memory of one run; a program may have several */
typedef struct kiln_session kiln_session;         /* an open file that gives programs for any sizes */
typedef struct kiln_description kiln_description; /* what a file says about its inputs and outputs; immutable */

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

/* How hard the tuner tries: the promising configurations of a kernel, more of them, or all. */
typedef enum kiln_tuning KILN_INT {
  KILN_TUNING_OFF,
  KILN_TUNING_QUICK,
  KILN_TUNING_FULL,
  KILN_TUNING_EXHAUSTIVE
} kiln_tuning;

/* Whether kernels are compiled for the exact sizes with which a program runs. LAZY: those of the first sizes; later
 * sizes use kernels that serve many sizes, compiled once, and sizes that run often get kernels of their own from a
 * thread in the background. EAGER: for each set of sizes, while the caller waits. OFF: never where a kernel can serve
 * many sizes; excludes tuning. */
typedef enum kiln_specialization KILN_INT {
  KILN_SPECIALIZE_LAZY,
  KILN_SPECIALIZE_EAGER,
  KILN_SPECIALIZE_OFF
} kiln_specialization;

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
  /* A file of public keys: the file must be signed by one of these. Null: your own and trusted_keys, as above.
   * A list that others than you and root can change or replace is refused: KILN_UNTRUSTED. */
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
  void* data; /* for progress, warn, allocate and release */
  /* For portable files; since version 6. A thread in the background tunes the kernels while the model runs, the hottest
   * first, and the next run takes those that it has found. It takes at most a fifth of the device's time, and stops
   * after this many seconds (0: 30). What it finds is kept in the cache for later processes. */
  kiln_tuning tuning;
  double tuning_seconds;
  /* For portable files with open dimensions; since version 7. */
  kiln_specialization specialization;
  /* The caller's memory, for the device "host" alone; since version 13. Kiln calls `allocate` for the memory of runs,
   * for tensors and for constants in another layout, also while the file is open and from any thread, several at once;
   * it returns memory aligned to `alignment` (a power of two), or null. `release` takes it back, at the latest when the
   * last program, context or session of this file is closed. Null: operator new. Both are given or neither. Constants
   * that lie in the file or the cache are mapped from there. */
  void* (*allocate)(void* data, size_t bytes, size_t alignment);
  void (*release)(void* data, void* memory, size_t bytes);
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
/* The caller closes *program. KILN_USAGE names a dimension that lacks a value. KILN_INVALID_SHAPE names one
 * outside its range, or those that break a rule of the model. The session stays usable. */
kiln_status kiln_session_program(kiln_session* session, const kiln_dim* dims, size_t count, kiln_program** program);

/* An input as the caller has it. */
typedef struct kiln_given_input {
  size_t rank;
  const int64_t* dims;
  /* Its elements, in host memory. Read only if elements of this input are sizes, or if the model computes sizes from
   * them: the session then has dimensions called "value.INPUT.ELEMENT" or "value.TENSOR.ELEMENT". Null: `dims` of the
   * call gives those. */
  const void* data;
} kiln_given_input;
/* The same for the sizes that these inputs decide: one entry per input, in the order of the model. `dims` gives the
 * open dimensions that no input decides. KILN_INVALID_SHAPE names an input that contradicts the model, another input or
 * `dims`. Since version 8. */
kiln_status kiln_session_program_for(kiln_session* session, const kiln_given_input* inputs, size_t input_count,
                                     const kiln_dim* dims, size_t dim_count, kiln_program** program);

/* Decoding with a language model; since version 10, as is everything up to kiln_sequences_load(). Opens a decoder: a
 * `.kiln` file that takes ids and gives logits, with or without a past (docs/generate.md). `context`: most ids of a
 * sequence; 0: as many as the model takes. Kernels serve all lengths: `tuning`, `dims` and KILN_SPECIALIZE_EAGER in the
 * options are KILN_USAGE. Any thread may use a decoder and its sequences; its calls wait for each other. */
typedef struct kiln_decoder kiln_decoder;
typedef struct kiln_sequences kiln_sequences; /* a batch of sequences of one length, often just one */
kiln_status kiln_decoder_open(const char* path, const kiln_open_options* options, int64_t context,
                              kiln_decoder** decoder);
void kiln_decoder_close(kiln_decoder* decoder); /* null is allowed; its sequences may go on */
typedef struct kiln_decoder_info {
  int64_t vocabulary; /* number of logits for the next id */
  int64_t context;    /* most ids of a sequence; 0: nothing limits them */
} kiln_decoder_info;
kiln_status kiln_decoder_get_info(const kiln_decoder* decoder, kiln_decoder_info* info);

/* A decoder has any number of batches; each has caches of its own, and all share kernels and weights. */
kiln_status kiln_sequences_create(kiln_decoder* decoder, kiln_sequences** sequences);
void kiln_sequences_destroy(kiln_sequences* sequences); /* null is allowed */
/* Appends ids [rows, count] and stores the logits [rows, vocabulary] for the ids that follow, unless `logits` is null.
 * The first call decides the number of rows. KILN_INVALID_SEQUENCE: an id is not in the vocabulary. KILN_CONTEXT_FULL:
 * there is no room for so many. After a failure the sequences are as they were. */
kiln_status kiln_sequences_append(kiln_sequences* sequences, size_t rows, size_t count, const int64_t* ids,
                                  float* logits);
/* rows is 0 before the first ids. Either pointer may be null. */
kiln_status kiln_sequences_get_length(const kiln_sequences* sequences, size_t* rows, int64_t* length);
/* How the next id is chosen from the logits (docs/generate.md). Zeros, except `size`, have the defaults. */
typedef enum kiln_sampling_method KILN_INT {
  KILN_SAMPLE_GREEDY,
  KILN_SAMPLE_TOP_K,
  KILN_SAMPLE_TOP_P
} kiln_sampling_method;
typedef struct kiln_sampling {
  size_t size; /* sizeof(kiln_sampling) */
  kiln_sampling_method method;
  double temperature;        /* 0: 1 */
  size_t top_k;              /* 0: 50 */
  double top_p;              /* 0: 0.9 */
  double repetition_penalty; /* 0: 1, which is none */
  uint64_t seed;             /* row r has the seed `seed + r` */
} kiln_sampling;
/* Stores an id for each row, chosen from the logits of the last ids. It does not append them. Null: the likeliest ones.
 * Random numbers begin anew with the first call, after a reset, and with other options than those of the last call. */
kiln_status kiln_sequences_choose(kiln_sequences* sequences, const kiln_sampling* sampling, int64_t* ids);
/* Takes back the last `count` ids of each row, for drafts. Free if caches are updated in place, else the ids that
 * remain are run again. */
kiln_status kiln_sequences_rollback(kiln_sequences* sequences, int64_t count);
kiln_status kiln_sequences_reset(kiln_sequences* sequences); /* no ids */
kiln_status kiln_sequences_copy(kiln_sequences* sequences, kiln_sequences** copy);
/* Writes ids and caches into a file, and goes on from there with a decoder of the same model, perhaps in another
 * process. KILN_DAMAGED_FILE, or KILN_MISMATCH for the file of another model. */
kiln_status kiln_sequences_save(kiln_sequences* sequences, const char* path);
kiln_status kiln_sequences_load(kiln_decoder* decoder, const char* path, kiln_sequences** sequences);

/* Reads what a file says about itself. Needs no device, no compiler and no signature: nothing of the file runs. Since
 * version 8, as are the functions of descriptions. Names and texts live as long as the description. */
kiln_status kiln_description_open(const char* path, kiln_description** description);
void kiln_description_close(kiln_description* description); /* null is allowed */
typedef struct kiln_port {
  const char* name;
  kiln_type type;
  size_t rank;
  const char* const* dims; /* rank of them: a number, an open dimension, or an expression such as "2*seq+1" */
  int decides_sizes;       /* of an input: not 0 if elements of it are open dimensions ("value.INPUT.ELEMENT") */
} kiln_port;
size_t kiln_description_dim_count(const kiln_description* description);
kiln_status kiln_description_dim(const kiln_description* description, size_t index, kiln_dim_info* info);
size_t kiln_description_input_count(const kiln_description* description);
size_t kiln_description_output_count(const kiln_description* description);
kiln_status kiln_description_input(const kiln_description* description, size_t index, kiln_port* port);
kiln_status kiln_description_output(const kiln_description* description, size_t index, kiln_port* port);
/* 0 for a file without weights (kiln compile --strip-weights), which cannot be opened to run: `kiln refit` gives it
 * some. Since version 11. */
int kiln_description_has_weights(const kiln_description* description);

size_t kiln_program_input_count(const kiln_program* program);
size_t kiln_program_output_count(const kiln_program* program);
kiln_status kiln_program_input(const kiln_program* program, size_t index, kiln_tensor_info* info);
kiln_status kiln_program_output(const kiln_program* program, size_t index, kiln_tensor_info* info);
/* The info of an output whose size depends on data has the largest dims. A run fills only the first elements along
 * `axis`. How many is an int64_t that the run writes to output number *count. If the axis always has its full size,
 * *count is the number of outputs. Since version 3. */
kiln_status kiln_program_output_extent(const kiln_program* program, size_t index, size_t axis, size_t* count);
kiln_status kiln_program_get_info(const kiln_program* program, kiln_program_info* info);

/* What the tuner of kiln_open_options.tuning has done. It starts after the program's first run, with copies of that
 * run's inputs; if that run is on a stream of the caller, the call waits for its end. All zeros without tuning. Since
 * version 6. */
typedef struct kiln_tuning_info {
  size_t kernels, tuned, improved; /* in all; that were timed; for which something faster was found */
  size_t swaps;                    /* how often a context took faster kernels */
  double seconds;                  /* that tuning took, once it is done */
  int done;
} kiln_tuning_info;
/* KILN_INTERNAL if an error has ended tuning; *info is filled nevertheless. */
kiln_status kiln_program_get_tuning_info(const kiln_program* program, kiln_tuning_info* info);

/* How work is submitted to a GPU: launch by launch (OFF), as a graph that is built once and replayed (ON), or whichever
 * is faster in the first runs (AUTO). The results are the same bits.
 *
 * NVIDIA's driver 13.0 makes all graphs of a process up to 13 % slower once two streams have received launches.
 * Contexts with ON or AUTO therefore launch on one stream. If the caller launches kernels on other streams, or also
 * uses contexts with KILN_GRAPH_OFF, graphs become slower. */
typedef enum kiln_graph_policy KILN_INT { KILN_GRAPH_OFF, KILN_GRAPH_ON, KILN_GRAPH_AUTO } kiln_graph_policy;

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
/* Graphs that are ready on the context's device, those of all contexts and sessions of this process, and the device
 * memory that the driver keeps for them. Drivers do not tell, so the bytes are an estimate. While they are more than
 * `most_bytes`, contexts make only the graph that they need, and sessions drop the programs that were asked for the
 * longest ago. Zeros on the host. Since version 14. */
typedef struct kiln_graph_memory {
  size_t graphs, bytes, most_bytes;
} kiln_graph_memory;
kiln_status kiln_context_get_graph_memory(const kiln_context* context, kiln_graph_memory* memory);
void kiln_context_destroy(kiln_context* context); /* null is allowed */

/* Runs the program and waits for the results. There is one pointer per input and output, each to as many bytes as its
 * info says, aligned to its element type. Outputs must not overlap each other or an input. Allocates nothing, except in
 * a run that changes to other kernels (tuning, specialization). */
kiln_status kiln_run(kiln_context* context, const void* const* inputs, void* const* outputs);
/* The same with tensors in host memory on any device: they are copied to the device and back, through memory that stays
 * with the context. Since version 5. */
kiln_status kiln_run_from_host(kiln_context* context, const void* const* inputs, void* const* outputs);
/* Enqueues the run on a stream of the caller (a hipStream_t or CUstream; null: the default stream) and does not wait:
 * the results are complete when the stream has executed the run. The stream must outlive the context. KILN_UNSUPPORTED
 * on the host, KILN_USAGE for a stream of another device. */
kiln_status kiln_run_on_stream(kiln_context* context, const void* const* inputs, void* const* outputs, void* stream);

/* Memory of devices, for callers that have neither HIP nor CUDA. Since version 12, as is everything up to
 * kiln_device_copy(). Any thread may use a device. Its memory is that of every program on the device of this name. */
typedef struct kiln_device kiln_device;
/* How many devices of a kind ("hip" or "cuda") there are; 0 without a driver. */
size_t kiln_device_count(const char* kind);
/* "host", "hip:N" or "cuda:N". */
kiln_status kiln_device_open(const char* name, kiln_device** device);
void kiln_device_close(kiln_device* device); /* null is allowed; frees its memory */
/* Memory that any stream may use at once. *memory is null for 0 bytes and after a failure. */
kiln_status kiln_device_allocate(kiln_device* device, size_t bytes, void** memory);
/* Null is allowed. No stream may still use the memory. KILN_USAGE if this device did not allocate it. */
kiln_status kiln_device_free(kiln_device* device, void* memory);
/* Copies that are complete on return: from the host, to the host, between two places of the device's memory. They do
 * not wait for streams of the caller. */
kiln_status kiln_device_upload(kiln_device* device, void* to, const void* from, size_t bytes);
kiln_status kiln_device_download(kiln_device* device, void* to, const void* from, size_t bytes);
kiln_status kiln_device_copy(kiln_device* device, void* to, const void* from, size_t bytes);

/* All functions as a table, for programs that load the library at run time: one symbol to look up, and the rest comes
 * by its place. Functions are added at the end and never change their place or their meaning. Since version 10. */
typedef struct kiln_api_table {
  size_t size; /* of the library's table: functions beyond it are not there */
  int version; /* of the library: KILN_API_VERSION of its header */
  int (*api_version)(void);
  const char* (*status_name)(kiln_status status);
  const char* (*last_error)(void);
  kiln_status (*program_open)(const char* path, unsigned threads, kiln_program** program);
  kiln_status (*program_open_on)(const char* path, const char* device, unsigned threads, kiln_program** program);
  kiln_status (*program_open_with)(const char* path, const kiln_open_options* options, kiln_program** program);
  void (*program_close)(kiln_program* program);
  kiln_status (*load_compiler)(const char* library);
  kiln_status (*session_open)(const char* path, const kiln_open_options* options, kiln_session** session);
  void (*session_close)(kiln_session* session);
  size_t (*session_dim_count)(const kiln_session* session);
  kiln_status (*session_dim)(const kiln_session* session, size_t index, kiln_dim_info* info);
  kiln_status (*session_program)(kiln_session* session, const kiln_dim* dims, size_t count, kiln_program** program);
  kiln_status (*session_program_for)(kiln_session* session, const kiln_given_input* inputs, size_t input_count,
                                     const kiln_dim* dims, size_t dim_count, kiln_program** program);
  kiln_status (*description_open)(const char* path, kiln_description** description);
  void (*description_close)(kiln_description* description);
  size_t (*description_dim_count)(const kiln_description* description);
  kiln_status (*description_dim)(const kiln_description* description, size_t index, kiln_dim_info* info);
  size_t (*description_input_count)(const kiln_description* description);
  size_t (*description_output_count)(const kiln_description* description);
  kiln_status (*description_input)(const kiln_description* description, size_t index, kiln_port* port);
  kiln_status (*description_output)(const kiln_description* description, size_t index, kiln_port* port);
  size_t (*program_input_count)(const kiln_program* program);
  size_t (*program_output_count)(const kiln_program* program);
  kiln_status (*program_input)(const kiln_program* program, size_t index, kiln_tensor_info* info);
  kiln_status (*program_output)(const kiln_program* program, size_t index, kiln_tensor_info* info);
  kiln_status (*program_output_extent)(const kiln_program* program, size_t index, size_t axis, size_t* count);
  kiln_status (*program_get_info)(const kiln_program* program, kiln_program_info* info);
  kiln_status (*program_get_tuning_info)(const kiln_program* program, kiln_tuning_info* info);
  kiln_status (*context_create)(const kiln_program* program, kiln_context** context);
  kiln_status (*context_create_with)(const kiln_program* program, kiln_graph_policy graph, kiln_context** context);
  kiln_status (*context_get_graph_info)(kiln_context* context, kiln_graph_info* info);
  void (*context_destroy)(kiln_context* context);
  kiln_status (*run)(kiln_context* context, const void* const* inputs, void* const* outputs);
  kiln_status (*run_from_host)(kiln_context* context, const void* const* inputs, void* const* outputs);
  kiln_status (*run_on_stream)(kiln_context* context, const void* const* inputs, void* const* outputs, void* stream);
  kiln_status (*decoder_open)(const char* path, const kiln_open_options* options, int64_t context,
                              kiln_decoder** decoder);
  void (*decoder_close)(kiln_decoder* decoder);
  kiln_status (*decoder_get_info)(const kiln_decoder* decoder, kiln_decoder_info* info);
  kiln_status (*sequences_create)(kiln_decoder* decoder, kiln_sequences** sequences);
  void (*sequences_destroy)(kiln_sequences* sequences);
  kiln_status (*sequences_append)(kiln_sequences* sequences, size_t rows, size_t count, const int64_t* ids,
                                  float* logits);
  kiln_status (*sequences_get_length)(const kiln_sequences* sequences, size_t* rows, int64_t* length);
  kiln_status (*sequences_choose)(kiln_sequences* sequences, const kiln_sampling* sampling, int64_t* ids);
  kiln_status (*sequences_rollback)(kiln_sequences* sequences, int64_t count);
  kiln_status (*sequences_reset)(kiln_sequences* sequences);
  kiln_status (*sequences_copy)(kiln_sequences* sequences, kiln_sequences** copy);
  kiln_status (*sequences_save)(kiln_sequences* sequences, const char* path);
  kiln_status (*sequences_load)(kiln_decoder* decoder, const char* path, kiln_sequences** sequences);
  int (*description_has_weights)(const kiln_description* description); /* since version 11 */
  size_t (*device_count)(const char* kind);                            /* since version 12, as are those below */
  kiln_status (*device_open)(const char* name, kiln_device** device);
  void (*device_close)(kiln_device* device);
  kiln_status (*device_allocate)(kiln_device* device, size_t bytes, void** memory);
  kiln_status (*device_free)(kiln_device* device, void* memory);
  kiln_status (*device_upload)(kiln_device* device, void* to, const void* from, size_t bytes);
  kiln_status (*device_download)(kiln_device* device, void* to, const void* from, size_t bytes);
  kiln_status (*device_copy)(kiln_device* device, void* to, const void* from, size_t bytes);
  kiln_status (*context_get_graph_memory)(const kiln_context* context,
                                          kiln_graph_memory* memory); /* since version 14 */
} kiln_api_table;
/* The table, if the library has all functions of this version (KILN_API_VERSION of the caller's header); else null.
 * Valid as long as the library is loaded. */
const kiln_api_table* kiln_api(int version);

#ifdef __cplusplus
}
#endif

#endif
