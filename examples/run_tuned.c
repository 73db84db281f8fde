/* Runs a portable .kiln file, with zeros as inputs, while its kernels are tuned in the background:
 *     run_tuned FILE [DEVICE [SECONDS]]
 * Prints how far the tuner came, and fails if a later run gives another answer than the first. */
#include <kiln.h>
#include <stdio.h>
#include <stdlib.h>

static void check(kiln_status status) {
  if (status == KILN_OK) return;
  fprintf(stderr, "%s: %s\n", kiln_status_name(status), kiln_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: run_tuned FILE [DEVICE [SECONDS]]\n"), 2;
  kiln_open_options options = {.size = sizeof options, .device = argc > 2 ? argv[2] : "host"};
  options.tuning = KILN_TUNING_QUICK;
  options.tuning_seconds = argc > 3 ? atof(argv[3]) : 0;
  kiln_program* program;
  kiln_context* context;
  check(kiln_program_open_with(argv[1], &options, &program));
  check(kiln_context_create(program, &context));
  const size_t inputs = kiln_program_input_count(program), outputs = kiln_program_output_count(program);
  const void** in = calloc(inputs + 1, sizeof *in);
  void **out = calloc(outputs + 1, sizeof *out), **first = calloc(outputs + 1, sizeof *first);
  kiln_tensor_info info;
  for (size_t i = 0; i < inputs; ++i) check(kiln_program_input(program, i, &info)), in[i] = calloc(1, info.bytes + 1);
  for (size_t i = 0; i < outputs; ++i) {
    check(kiln_program_output(program, i, &info));
    out[i] = calloc(1, info.bytes + 1), first[i] = calloc(1, info.bytes + 1);
  }
  check(kiln_run_from_host(context, in, first));
  kiln_tuning_info tuning;
  size_t runs = 0;
  do {
    check(kiln_run_from_host(context, in, out));
    check(kiln_program_get_tuning_info(program, &tuning));
    for (size_t i = 0; i < outputs; ++i) {
      check(kiln_program_output(program, i, &info));
      if (info.type != KILN_F32) continue;
      for (size_t k = 0; k < info.bytes / sizeof(float); ++k) {
        const float a = ((float*)first[i])[k], b = ((float*)out[i])[k];
        const float limit = 1e-3f * (a > 1 ? a : a < -1 ? -a : 1);
        if (!(a - b <= limit && b - a <= limit)) return fprintf(stderr, "%s[%zu]: %g, %g\n", info.name, k, a, b), 1;
      }
    }
  } while (++runs < 5 || !tuning.done);
  check(kiln_run_from_host(context, in, out));
  printf("%zu of %zu kernels tuned, %zu improved, %zu swaps\n", tuning.tuned, tuning.kernels, tuning.improved,
         tuning.swaps);
  for (size_t i = 0; i < inputs; ++i) free((void*)in[i]);
  for (size_t i = 0; i < outputs; ++i) free(out[i]), free(first[i]);
  free(in), free(out), free(first);
  kiln_context_destroy(context);
  kiln_program_close(program);
  return 0;
}
