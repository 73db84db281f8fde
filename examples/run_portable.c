/* Opens a portable .kiln file on any device and runs it once, with zeros as inputs:
 *     run_portable FILE [DEVICE [NAME=VALUE...]]
 * It links libkiln_runtime only. The kernels that the cache lacks are compiled by libkiln.so, which the runtime opens. */
#include <kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(kiln_status status) {
  if (status == KILN_OK) return;
  fprintf(stderr, "%s: %s\n", kiln_status_name(status), kiln_last_error());
  exit(1);
}

static void show_progress(void* data, size_t done, size_t total) {
  (void)data;
  fprintf(stderr, "compiled %zu of %zu kernels\n", done, total);
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: run_portable FILE [DEVICE [NAME=VALUE...]]\n"), 2;
  kiln_dim dims[16];
  kiln_open_options options = {.size = sizeof options, .device = argc > 2 ? argv[2] : "host", .dims = dims};
  options.progress = show_progress;
  for (int i = 3; i < argc && options.dim_count < 16; ++i) {
    char* value = strchr(argv[i], '=');
    if (!value) return fprintf(stderr, "%s: it is not NAME=VALUE\n", argv[i]), 2;
    *value = 0;
    dims[options.dim_count++] = (kiln_dim){argv[i], strtoll(value + 1, NULL, 10)};
  }
  kiln_program* program;
  kiln_context* context;
  check(kiln_program_open_with(argv[1], &options, &program));
  check(kiln_context_create(program, &context));
  const size_t inputs = kiln_program_input_count(program), outputs = kiln_program_output_count(program);
  const void** in = calloc(inputs + 1, sizeof *in);
  void** out = calloc(outputs + 1, sizeof *out);
  kiln_tensor_info info;
  for (size_t i = 0; i < inputs; ++i) check(kiln_program_input(program, i, &info)), in[i] = calloc(1, info.bytes + 1);
  for (size_t i = 0; i < outputs; ++i) check(kiln_program_output(program, i, &info)), out[i] = calloc(1, info.bytes + 1);
  check(kiln_run_from_host(context, in, out));
  for (size_t i = 0; i < outputs; ++i) {
    check(kiln_program_output(program, i, &info));
    printf("%s %zu bytes", info.name, info.bytes);
    if (info.type == KILN_F32)
      for (size_t k = 0; k < 4 && k < info.bytes / sizeof(float); ++k) printf(" %.6g", ((float*)out[i])[k]);
    printf("\n");
  }
  for (size_t i = 0; i < inputs; ++i) free((void*)in[i]);
  for (size_t i = 0; i < outputs; ++i) free(out[i]);
  free(in), free(out);
  kiln_context_destroy(context);
  kiln_program_close(program);
  return 0;
}
