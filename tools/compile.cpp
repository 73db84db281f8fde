#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "ir/container/stripped.hpp"
#include "tools/command.hpp"
#include "tools/compile_choice.hpp"
#include "tools/counts.hpp"
#include "tools/model_summary.hpp"

namespace kiln::tools {
namespace {

struct options {
  std::string model, output;
  compile_choice choice;
  bool explain = false, unsigned_kernels = false, strip_weights = false;
};

nlohmann::ordered_json describe(const quantization_report& r) {
  return {{"quantized", r.quantized},         {"bytes_before", r.bytes_before}, {"bytes_after", r.bytes_after},
          {"largest_error", r.largest_error}, {"too_small", r.too_small},       {"too_inexact", r.too_inexact}};
}

// Leaves only zeros in the file, and how the model was compiled.
void strip(compiled_model& compiled, const compile_choice& choice) {
  compiled.result = without_weights(compiled.result);
  compiled.result.metadata[stripped_weights_key] = text_of(choice);
  if (!compiled.steps) return;
  compiled.steps = without_weights(*compiled.steps);
  compiled.steps->metadata[stripped_weights_key] = text_of(choice);
}

int compile_file(const options& o, const output_options& output) {
  using clock = std::chrono::steady_clock;
  auto ms = [](auto a, auto b) { return std::chrono::duration<double, std::milli>(b - a).count(); };
  const auto began = clock::now();
  explanation explained;
  compiled_model compiled = compile_model(o.model, o.choice, o.explain ? &explained : nullptr);
  if (o.strip_weights) strip(compiled, o.choice);
  const auto compile_done = clock::now();
  write_compiled(compiled, o.output, o.unsigned_kernels);
  const auto written = clock::now();
  model_summary summary = summarize(compiled.result);
  nlohmann::ordered_json document{{"model", o.model},
                                  {"output", o.output},
                                  {"bytes", std::filesystem::file_size(o.output)},
                                  {"kernels", summary.kernels},
                                  {"launches", summary.code_objects},
                                  {"interpreted", summary.interpreted},
                                  {"import_ms", compiled.import_ms},
                                  {"compile_ms", compiled.compile_ms},
                                  {"write_ms", ms(compile_done, written)},
                                  {"total_ms", ms(began, written)}};
  const quantization_report& quantized = compiled.quantized;
  if (o.choice.int4_weights) document["int4_weights"] = describe(quantized);
  if (o.explain) document["explain"] = describe(explained);
  output.print(document, [&] {
    print(
        "{}: {:.1f} MB, {} for {}, {} left to the reference interpreter, {:.2f} s "
        "(import {:.2f}, optimize {:.2f}, write {:.2f})\n",
        o.output, static_cast<double>(document["bytes"].get<std::uint64_t>()) / 1e6, counted(summary.kernels, "kernel"),
        counted(summary.code_objects, "code object"), counted(summary.interpreted, "operation"),
        ms(began, written) / 1e3, compiled.import_ms / 1e3, compiled.compile_ms / 1e3, ms(compile_done, written) / 1e3);
    if (o.choice.int4_weights)
      print(
          "{} weights in 4 bits, {:.1f} MB instead of {:.1f} MB, relative error at most {:.3f}; left as they are: {} "
          "small, {} that would lose too much\n",
          quantized.quantized, static_cast<double>(quantized.bytes_after) / 1e6,
          static_cast<double>(quantized.bytes_before) / 1e6, quantized.largest_error, quantized.too_small,
          quantized.too_inexact);
    if (o.explain) print_explanation(explained);
  });
  return 0;
}

}  // namespace

action declare_compile(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.add_option("MODEL", o->model, "ONNX model")->required();
  app.add_option("-o,--output", o->output, "File to write")->required();
  add_compile_options(app, o->choice);
  add_unsigned_option(app, o->unsigned_kernels);
  app.add_flag("--strip-weights", o->strip_weights,
               "Write the file without its weights: its kernels can be finalized and warmed, and kiln refit gives it "
               "weights");
  app.add_flag("--explain", o->explain,
               "Print which rewrites fired where, what they save by estimate, which ones were refused, and why "
               "neighbouring operations are in different kernels");
  return [o](const output_options& output) { return compile_file(*o, output); };
}

}  // namespace kiln::tools
