#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>

#include "aot/onnx/import.hpp"
#include "aot/pipeline.hpp"
#include "ir/container/container.hpp"
#include "ir/container/signed_native.hpp"
#include "ir/error.hpp"
#include "ir/trust/user_keys.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "tools/command.hpp"
#include "tools/custom_ops.hpp"
#include "tools/decoder_import.hpp"
#include "tools/explanation.hpp"
#include "tools/model_summary.hpp"
#include "tools/sequence_option.hpp"
#include "tools/shape_option.hpp"

namespace kiln::tools {
namespace {

struct options {
  std::string model, output, external_weights, dump_dir;
  std::vector<std::string> dims, shapes, values, sequences;
  custom_op_choice custom_ops;
  std::vector<std::string> disabled_passes;
  bool fp16 = false, bf16 = false, int8 = false, int4_weights = false, explain = false, unsigned_kernels = false;
  std::size_t max_nodes = import_options{}.max_nodes;
};

// Refuses options of the command line that this version of the compiler does not implement.
void refuse_unsupported(const options& o) {
  if (o.int8)
    throw error(error_kind::unsupported,
                "--int8: this version does not quantize; compile a QDQ model, which needs no flag");
}

nlohmann::ordered_json describe(const quantization_report& r) {
  return {{"quantized", r.quantized},         {"bytes_before", r.bytes_before}, {"bytes_after", r.bytes_after},
          {"largest_error", r.largest_error}, {"too_small", r.too_small},       {"too_inexact", r.too_inexact}};
}

// Importing and folding a model allocates and frees many literals of megabytes. By default malloc returns each to the
// system, which zeroes its pages again for the next one. That costs a tenth of the processor time.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 64 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

// The key that signs the kernels of custom operators, which can do as much as native code: this user's own, because
// this user chose their sources. Null if there are none, if they must not be signed, or, with a warning, if there is no
// key.
const signing_key* key_for(const program& compiled, const options& o, user_keys* user) {
  if (o.unsigned_kernels || !container::needs_consent(compiled)) return nullptr;
  const signing_key* own = user ? user->own() : nullptr;
  if (!own)
    spdlog::warn("{} has custom operators, is not signed, and runs with --allow-unsigned-native only: {}", o.output,
                 user ? user->why() : "there is no folder for your key: set HOME");
  return own;
}

// Fixes the open dimensions that the shapes of --shape decide. Their names are known only after an import.
void fix_dimensions(const options& o, import_options& importing) {
  if (o.shapes.empty()) return;
  const program imported = import_with_empty_past(o.model, importing);
  for (const auto& [name, size] : bind_shapes(given_shapes(imported, o.shapes)))
    importing.dims.insert_or_assign(name, size);
}

int compile_model(const options& o, const output_options& output) {
  keep_freed_memory();
  refuse_unsupported(o);
  if (o.fp16 && o.bf16) throw error(error_kind::usage, "--fp16 and --bf16 exclude each other");
  check_disabled_passes(o.disabled_passes);
  using clock = std::chrono::steady_clock;
  auto began = clock::now();
  import_options importing;
  // Maps a name to the text that was given for it.
  std::map<std::string, std::string> dims;
  for (const std::string& text : o.dims) {
    auto spec = parse_dim_spec(text);
    if (auto [before, fresh] = dims.emplace(spec.first, text); before->second != text)
      throw error(error_kind::usage, fmt::format("--dim {}: it was {} before; give it once", text, before->second));
    importing.dims.insert(std::move(spec));
  }
  for (const std::string& text : o.values) {
    auto spec = parse_value_spec(text);
    if (!importing.values.insert(spec).second)
      throw error(error_kind::usage, fmt::format("--value {}: the input has a value already; give it once", text));
  }
  read_sequences(o.sequences, importing);
  importing.external_weights = o.external_weights;
  importing.max_nodes = o.max_nodes;
  auto custom = compile_custom_ops(o.custom_ops);
  importing.custom_operators = &custom;
  fix_dimensions(o, importing);
  program imported = import_with_empty_past(o.model, importing);
  auto import_done = clock::now();
  compile_options compiling;
  if (o.fp16) compiling.precision = element_type::f16;
  if (o.bf16) compiling.precision = element_type::bf16;
  compiling.dump_dir = o.dump_dir;
  std::optional<program> steps;
  ask_for_steps(imported, compiling, steps);
  quantization_report quantized;
  compiling.int4_weights = o.int4_weights;
  compiling.quantized = &quantized;
  compiling.disabled = o.disabled_passes;
  explanation explained;
  if (o.explain) {
    compiling.log = &explained.log;
    compiling.boundaries = &explained.boundaries;
  }
  program compiled = compile(std::move(imported), compiling);
  auto compile_done = clock::now();
  write_options writing;
  writing.dialect_version = dialect_version();
  if (steps) writing.steps = &*steps;
  const auto user = user_keys::of_this_user();
  writing.sign_with = key_for(compiled, o, user.get());
  write_program(compiled, o.output, writing);
  auto written = clock::now();
  auto ms = [](auto a, auto b) { return std::chrono::duration<double, std::milli>(b - a).count(); };
  model_summary summary = summarize(compiled);
  nlohmann::ordered_json document{{"model", o.model},
                                  {"output", o.output},
                                  {"bytes", std::filesystem::file_size(o.output)},
                                  {"kernels", summary.kernels},
                                  {"launches", summary.code_objects},
                                  {"interpreted", summary.interpreted},
                                  {"import_ms", ms(began, import_done)},
                                  {"compile_ms", ms(import_done, compile_done)},
                                  {"write_ms", ms(compile_done, written)},
                                  {"total_ms", ms(began, written)}};
  if (o.int4_weights) document["int4_weights"] = describe(quantized);
  if (o.explain) document["explain"] = describe(explained);
  output.print(document, [&] {
    print(
        "{}: {:.1f} MB, {} kernels for {} code objects, {} operations left to the reference interpreter, {:.2f} s "
        "(import {:.2f}, optimize {:.2f}, write {:.2f})\n",
        o.output, static_cast<double>(document["bytes"].get<std::uint64_t>()) / 1e6, summary.kernels,
        summary.code_objects, summary.interpreted, ms(began, written) / 1e3, ms(began, import_done) / 1e3,
        ms(import_done, compile_done) / 1e3, ms(compile_done, written) / 1e3);
    if (o.int4_weights)
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
  app.add_option("--dim", o->dims,
                 "NAME=VALUE fixes a symbolic dimension; NAME=MIN:MAX[:OPT,...] keeps it open within a range");
  app.add_option("--shape", o->shapes,
                 "INPUT:1x3x224x224 (or INPUT:scalar) fixes the dimensions of an input; several, separated by commas");
  app.add_option(
      "--value", o->values,
      "NAME=VALUE[,VALUE...] makes an input a constant: one that decides axes, sizes, repeats, pads, k or a shape");
  add_sequence_option(app, o->sequences);
  app.add_flag("--fp16", o->fp16, "Compute and store in f16; inputs and outputs keep their types");
  app.add_flag("--bf16", o->bf16, "The same in bf16");
  app.add_flag("--int8", o->int8, "Quantize to int8");
  app.add_flag("--int4-weights", o->int4_weights,
               "Quantize the constant weights of matrix products to 4 bits, in groups of up to 128");
  app.add_option("--external-weights", o->external_weights,
                 "File or folder with the model's external data, instead of the one that the model names");
  add_custom_op_options(app, o->custom_ops);
  app.add_flag("--unsigned", o->unsigned_kernels,
               "Do not sign the kernels of custom operators with your own key (~/.config/kiln/key)");
  app.add_option("--max-nodes", o->max_nodes,
                 "Refuse a model with more nodes, counted after its functions are expanded")
      ->check(CLI::PositiveNumber);
  app.add_option("--dump-ir", o->dump_dir, "Folder to write the program's text to after every pass");
  app.add_flag("--explain", o->explain,
               "Print which rewrites fired where, what they save by estimate, which ones were refused, and why "
               "neighbouring operations are in different kernels");
  app.add_option("--disable-pass", o->disabled_passes,
                 fmt::format("Leave out a pass of the optimizer, to find the one that a problem comes from: {}",
                             fmt::join(disableable_passes(), ", ")));
  return [o](const output_options& output) { return compile_model(*o, output); };
}

}  // namespace kiln::tools
