#include "tools/compile_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/container/signed_native.hpp"
#include "ir/error.hpp"
#include "ir/json.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "tools/decoder_import.hpp"
#include "tools/sequence_option.hpp"
#include "tools/shape_option.hpp"

namespace kiln::tools {
namespace {

// Importing and folding a model allocates and frees many literals of megabytes. By default malloc returns each to the
// system, which zeroes its pages again for the next one. That costs a tenth of the processor time.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 64 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

// Refuses what this version does not do, and options that exclude each other.
void check(const compile_choice& c) {
  if (c.int8)
    throw error(error_kind::unsupported,
                "--int8: this version does not quantize; compile a QDQ model, which needs no flag");
  if (c.fp16 && c.bf16) throw error(error_kind::usage, "--fp16 and --bf16 exclude each other");
  check_disabled_passes(c.disabled_passes);
}

// Fixes the open dimensions that the shapes of --shape decide. Their names are known only after an import.
void fix_dimensions(const std::string& model, const compile_choice& c, import_options& importing) {
  if (c.shapes.empty()) return;
  const program imported = import_with_empty_past(model, importing);
  for (const auto& [name, size] : bind_shapes(given_shapes(imported, c.shapes)))
    importing.dims.insert_or_assign(name, size);
}

import_options import_options_of(const compile_choice& c) {
  import_options importing;
  // Maps a name to the text that was given for it.
  std::map<std::string, std::string> dims;
  for (const std::string& text : c.dims) {
    auto spec = parse_dim_spec(text);
    if (auto [before, fresh] = dims.emplace(spec.first, text); before->second != text)
      throw error(error_kind::usage, fmt::format("--dim {}: it was {} before; give it once", text, before->second));
    importing.dims.insert(std::move(spec));
  }
  for (const std::string& text : c.values) {
    auto spec = parse_value_spec(text);
    if (!importing.values.insert(spec).second)
      throw error(error_kind::usage, fmt::format("--value {}: the input has a value already; give it once", text));
  }
  read_sequences(c.sequences, importing);
  importing.may_be_one.insert(c.may_be_one.begin(), c.may_be_one.end());
  importing.external_weights = c.external_weights;
  importing.max_nodes = c.max_nodes;
  return importing;
}

// The key that signs the kernels of custom operators. Null if there are none, if they must not be signed, or if there
// is no key.
const signing_key* key_for(const program& compiled, const std::string& file, bool unsigned_kernels, user_keys* user) {
  if (unsigned_kernels || !container::needs_consent(compiled)) return nullptr;
  const signing_key* own = user ? user->own() : nullptr;
  if (!own)
    spdlog::warn("{} has custom operators, is not signed, and runs with --allow-unsigned-native only: {}", file,
                 user ? user->why() : "there is no folder for your key: set HOME");
  return own;
}

}  // namespace

compile_options compile_options_of(const compile_choice& c) {
  compile_options compiling;
  if (c.fp16) compiling.precision = element_type::f16;
  if (c.bf16) compiling.precision = element_type::bf16;
  compiling.dump_dir = c.dump_dir;
  compiling.int4_weights = c.int4_weights;
  compiling.disabled = c.disabled_passes;
  return compiling;
}

compiled_model compile_model(const std::string& model, const compile_choice& c, explanation* explained,
                             program* imported) {
  keep_freed_memory();
  check(c);
  using clock = std::chrono::steady_clock;
  const auto ms = [](auto a, auto b) { return std::chrono::duration<double, std::milli>(b - a).count(); };
  const auto began = clock::now();
  import_options importing = import_options_of(c);
  auto custom = compile_custom_ops(c.custom_ops);
  importing.custom_operators = &custom;
  fix_dimensions(model, c, importing);
  program source = import_with_empty_past(model, importing);
  if (imported) *imported = source.clone();
  const auto import_done = clock::now();
  compiled_model result;
  compile_options compiling = compile_options_of(c);
  ask_for_steps(source, compiling, result.steps);
  compiling.quantized = &result.quantized;
  if (explained) {
    compiling.log = &explained->log;
    compiling.boundaries = &explained->boundaries;
  }
  result.result = compile(std::move(source), compiling);
  result.import_ms = ms(began, import_done);
  result.compile_ms = ms(import_done, clock::now());
  return result;
}

void write_compiled(const compiled_model& compiled, const std::string& file, bool unsigned_kernels,
                    container_extras extras) {
  write_options writing;
  writing.dialect_version = dialect_version();
  writing.extras = std::move(extras);
  if (compiled.steps) writing.steps = &*compiled.steps;
  const auto user = user_keys::of_this_user();
  writing.sign_with = key_for(compiled.result, file, unsigned_kernels, user.get());
  write_program(compiled.result, file, writing);
}

std::string text_of(const compile_choice& c) {
  return nlohmann::ordered_json{{"dims", c.dims},
                                {"shapes", c.shapes},
                                {"values", c.values},
                                {"sequences", c.sequences},
                                {"may_be_one", c.may_be_one},
                                {"fp16", c.fp16},
                                {"bf16", c.bf16},
                                {"int4_weights", c.int4_weights},
                                {"disabled_passes", c.disabled_passes}}
      .dump();
}

compile_choice compile_choice_from(const std::string& text) {
  compile_choice c;
  try {
    const auto json = parse_json(text);
    json.at("dims").get_to(c.dims);
    json.at("shapes").get_to(c.shapes);
    json.at("values").get_to(c.values);
    json.at("sequences").get_to(c.sequences);
    if (json.contains("may_be_one")) json.at("may_be_one").get_to(c.may_be_one);
    json.at("fp16").get_to(c.fp16);
    json.at("bf16").get_to(c.bf16);
    json.at("int4_weights").get_to(c.int4_weights);
    json.at("disabled_passes").get_to(c.disabled_passes);
  } catch (const nlohmann::json::exception& e) {
    throw error(error_kind::corrupted, fmt::format("the options that it was compiled with: {}", problem_of(e)));
  }
  return c;
}

void add_source_options(CLI::App& app, compile_choice& choice) {
  app.add_option("--external-weights", choice.external_weights,
                 "File or folder with the model's external data, instead of the one that the model names");
  add_custom_op_options(app, choice.custom_ops);
  app.add_option("--max-nodes", choice.max_nodes,
                 "Refuse a model with more nodes, counted after its functions are expanded")
      ->check(CLI::PositiveNumber);
}

void add_unsigned_option(CLI::App& app, bool& unsigned_kernels) {
  app.add_flag("--unsigned", unsigned_kernels,
               "Do not sign the kernels of custom operators with your own key (~/.config/kiln/key)");
}

void add_compile_options(CLI::App& app, compile_choice& choice) {
  app.add_option("--dim", choice.dims,
                 "NAME=VALUE fixes a symbolic dimension; NAME=MIN:MAX[:OPT,...] keeps it open within a range");
  app.add_option("--shape", choice.shapes,
                 "INPUT:1x3x224x224 (or INPUT:scalar) fixes the dimensions of an input; several, separated by commas");
  app.add_option(
      "--value", choice.values,
      "NAME=VALUE[,VALUE...] makes an input a constant: one that decides axes, sizes, repeats, pads, k or a shape");
  app.add_option(
      "--may-be-one", choice.may_be_one,
      "NAME of an open dimension that may be 1 where it broadcasts against a larger one; otherwise the two are "
      "assumed to be equal");
  add_sequence_option(app, choice.sequences);
  app.add_flag("--fp16", choice.fp16, "Compute and store in f16; inputs and outputs keep their types");
  app.add_flag("--bf16", choice.bf16, "The same in bf16");
  app.add_flag("--int8", choice.int8, "Quantize to int8");
  app.add_flag("--int4-weights", choice.int4_weights,
               "Quantize the constant weights of matrix products to 4 bits, in groups of up to 128");
  add_source_options(app, choice);
  app.add_option("--dump-ir", choice.dump_dir, "Folder to write the program's text to after every pass");
  app.add_option("--disable-pass", choice.disabled_passes,
                 fmt::format("Leave out a pass of the optimizer, to find the one that a problem comes from: {}",
                             fmt::join(disableable_passes(), ", ")));
}

}  // namespace kiln::tools
