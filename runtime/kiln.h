/* The C interface of Kiln's runtime: open a finalized `.kiln` file, look at its inputs and outputs, run it on the host.
 *
 * Every function that can fail returns a kiln_status; kiln_last_error() then says what happened and what to do, in one
 * line, for the calling thread. Pointers to strings and shapes live as long as the program they came from. A program
 * may be shared by threads; a context runs one call at a time. No exception leaves this interface. A finalized file
 * holds machine code. It is opened only where a key that you trust has signed it: your own (~/.config/kiln/key, made
 * when `kiln finalize` signs its first file) or one in ~/.config/kiln/trusted_keys ($XDG_CONFIG_HOME is obeyed);
 * kiln_program_open_with names others. On a GPU (kiln_program_open_on) tensors are in its memory, which the caller has
 * from HIP or CUDA. */
#ifndef KILN_H
#define KILN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_API_VERSION 4

typedef enum kiln_status {
  KILN_OK = 0,
  KILN_USAGE, /* an argument makes no sense: wrong size, wrong index, null */
  KILN_MISSING_FILE,
  KILN_DAMAGED_FILE,  /* truncated or corrupted */
  KILN_NEWER_VERSION, /* the file was written by a newer Kiln */
  KILN_UNSUPPORTED,   /* valid, but not for this Kiln, this device or without a shape */
  KILN_NOT_NATIVE,    /* the file's kernels are not finalized: `kiln finalize --native-file` does that */
  KILN_IO,
  KILN_OUT_OF_MEMORY,
  KILN_INTERNAL,
  KILN_UNTRUSTED /* no trusted key has signed the file's native code; since version 4 */
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
typedef struct kiln_context kiln_context; /* memory of one run at a time */

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

/* `threads` share one run, 0 for every processor this process may use. *program is null after a failure. */
kiln_status kiln_program_open(const char* path, unsigned threads, kiln_program** program);
/* On another device: "host", "hip:N" or "cuda:N". KILN_OUT_OF_MEMORY where it is not here; kiln_last_error says what
 * was looked for. */
kiln_status kiln_program_open_on(const char* path, const char* device, unsigned threads, kiln_program** program);
/* Zeros are the defaults of kiln_program_open. Since version 4. */
typedef struct kiln_open_options {
  size_t size;        /* sizeof(kiln_open_options) */
  const char* device; /* null: "host" */
  unsigned threads;
  const char*
      trusted_keys;   /* file of public keys: these and no others may have signed the file; null: yours, as above */
  int allow_unsigned; /* not 0: the file's machine code runs whoever made it, and can do whatever you can */
} kiln_open_options;
/* KILN_UNTRUSTED where nobody who is trusted has signed the file; null options are defaults. */
kiln_status kiln_program_open_with(const char* path, const kiln_open_options* options, kiln_program** program);
void kiln_program_close(kiln_program* program); /* after its contexts; null is fine */

size_t kiln_program_input_count(const kiln_program* program);
size_t kiln_program_output_count(const kiln_program* program);
kiln_status kiln_program_input(const kiln_program* program, size_t index, kiln_tensor_info* info);
kiln_status kiln_program_output(const kiln_program* program, size_t index, kiln_tensor_info* info);
/* An output whose size depends on data has its largest dims in its info; a run fills the first of them along `axis`, as
 * many as the int64_t says that it leaves in output *count. *count is the number of outputs for an axis that is always
 * whole. Since version 3. */
kiln_status kiln_program_output_extent(const kiln_program* program, size_t index, size_t axis, size_t* count);
kiln_status kiln_program_get_info(const kiln_program* program, kiln_program_info* info);

/* How a GPU is given its work: launch by launch, as a graph that is made once and replayed, or whichever of the two
 * turns out to be faster on the first runs. Results are the same bits. NVIDIA's driver 13.0 makes graphs of a process
 * up to a tenth slower once two streams have been given launches; these contexts make theirs on one, and a caller who
 * launches kernels on others, or uses KILN_GRAPH_OFF beside graphs, pays for it. */
typedef enum kiln_graph_policy { KILN_GRAPH_OFF, KILN_GRAPH_ON, KILN_GRAPH_AUTO } kiln_graph_policy;

typedef struct kiln_graph_info {
  const char* mode; /* "off", "measuring", "eager", "replay" */
  const char*
      reason; /* why runs are eager where a graph was wanted, "" otherwise; both until the context's next call */
  size_t captures, replays, patches, updates, rebuilds, failures;
  int decided, replay, branches; /* what KILN_GRAPH_AUTO found out, once it has */
  double eager_ms, replay_ms;
} kiln_graph_info;

kiln_status kiln_context_create(const kiln_program* program, kiln_context** context); /* with KILN_GRAPH_AUTO */
kiln_status kiln_context_create_with(const kiln_program* program, kiln_graph_policy graph, kiln_context** context);
kiln_status kiln_context_get_graph_info(kiln_context* context, kiln_graph_info* info);
void kiln_context_destroy(kiln_context* context); /* null is fine */

/* One pointer per input and output, each to as many bytes as its info says, aligned to its element type; outputs
 * overlap nothing. Allocates nothing. The results are there on return. */
kiln_status kiln_run(kiln_context* context, const void* const* inputs, void* const* outputs);
/* The same in the order of a stream of the caller's (a hipStream_t or CUstream, null for the default stream), which
 * must outlive the context. Waits for nothing: the results are there when the stream has come so far. KILN_UNSUPPORTED
 * on the host. */
kiln_status kiln_run_on_stream(kiln_context* context, const void* const* inputs, void* const* outputs, void* stream);

#ifdef __cplusplus
}
#endif

#endif
