/* Runs a file of native kernels (kiln finalize --native-file) on the host, with zeros as inputs: run_native FILE
 * It links libkiln_runtime, which holds no compiler, and opens nothing else. */
#include <kiln.h>
#include <stdio.h>
#include <stdlib.h>

static void check(kiln_status status) {
  if (status == KILN_OK) return;
  fprintf(stderr, "%s: %s\n", kiln_status_name(status), kiln_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: run_native FILE\n"), 2;
  kiln_program* program;
  kiln_context* context;
  check(kiln_program_open(argv[1], 0, &program));
  check(kiln_context_create(program, &context));
  const size_t inputs = kiln_program_input_count(program), outputs = kiln_program_output_count(program);
  const void** in = calloc(inputs + 1, sizeof *in);
  void** out = calloc(outputs + 1, sizeof *out);
  kiln_tensor_info info;
  for (size_t i = 0; i < inputs; ++i) check(kiln_program_input(program, i, &info)), in[i] = calloc(1, info.bytes + 1);
  for (size_t i = 0; i < outputs; ++i) check(kiln_program_output(program, i, &info)), out[i] = calloc(1, info.bytes + 1);
  check(kiln_run(context, in, out));
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
