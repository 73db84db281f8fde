#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "aot/onnx/import.hpp"
#include "aot/onnx/model_parts.hpp"
#include "aot/pipeline.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "ir/size_stages.hpp"
#include "jit/comparison.hpp"
#include "spirv/library/reference.hpp"
#include "tools/bisection.hpp"
#include "tools/command.hpp"
#include "tools/custom_ops.hpp"
#include "tools/kernel_comparison.hpp"
#include "tools/npy.hpp"
#include "tools/opened_model.hpp"
#include "tools/quantizer_steps.hpp"
#include "tools/sequence_option.hpp"
#include "tools/supplied_tensors.hpp"

namespace kiln::tools {
namespace {

struct options : model_options {
  std::vector<std::string> sequences;
  std::string bisect;
  bool per_kernel = false, fp16 = false, bf16 = false, int4_weights = false;
};

void print_part(const nlohmann::ordered_json& found) {
  if (found["nodes"].empty()) {
    print("no part of the model differs on its own ({} tried)\n", found["parts_tried"].get<int>());
    return;
  }
  print("smallest part that differs: {} nodes in {}, its inputs in {} ({} parts tried)\n", found["nodes"].size(),
        found["file"].get<std::string>(), found["inputs"].get<std::string>(), found["parts_tried"].get<int>());
  for (const auto& node : found["nodes"]) print("  {}\n", node.get<std::string>());
}

// Before kernels are formed, the only code objects are those of custom operators and of the library.
bool lacks_references(const program& imported) {
  for (const module& m : imported.modules())
    for (const instruction& i : m.instructions())
      if (i.op().is<code_object>() && !spirv::find_library_reference(imported, i)) return true;
  return false;
}

// Throws error{usage} where only supplied outputs can be compared.
void require_references(const program& imported) {
  if (lacks_references(imported))
    throw error(error_kind::usage,
                "the model has custom operators, which have no built-in reference: give the expected outputs beside "
                "the inputs, with --inputs FOLDER (NAME.npy or output_N.pb)");
}

// What the model itself computes with: f32 outputs are no more exact than the numbers that they were made of. The
// reference does not round rows of products that may be rounded.
exactness exactness_of(const program& imported, const options& o) {
  exactness found = o.fp16 || o.bf16 ? exactness::halves : exactness::own_types;
  for (const module& m : imported.modules())
    for (const instruction& i : m.instructions()) {
      if (const auto* product = i.op().get_if<dot>(); product && product->left_bits != 0) return exactness::bytes;
      if (!i.inputs().empty() && (i.op().is<elementwise>() || i.op().is<dot>() || i.op().is<convolution>()))
        if (const element_type type = i.outputs()[0].type; type == element_type::f16 || type == element_type::bf16)
          found = exactness::halves;
    }
  return found;
}

// How many outputs the model has; the counts of those whose size depends on data come after them.
std::size_t own_outputs(const module& m) {
  std::size_t own = m.outputs().size();
  for (value v : m.outputs())
    for (; v.producer->op().is<bounded>(); v = v.producer->inputs()[0])
      own = std::min(
          own, static_cast<std::size_t>(std::ranges::find(m.outputs(), v.producer->inputs()[1]) - m.outputs().begin()));
  return own;
}

// The sizes of another import of the model that is open: those that data decide are the ones that it computed.
dim_bindings sizes_for(const program& p, const opened_model& opened) {
  dim_bindings sizes = sizes_of_inputs(p, opened.named_inputs());
  for (const std::string& name : data_decided_sizes(p))
    if (const auto found = opened.instance().sizes().find(name); found != opened.instance().sizes().end())
      sizes.insert(*found);
  return sizes;
}

// Every tensor of the model that some node reads, and its inputs and outputs, computed by the reference.
std::map<std::string, literal> reference_values(const model_parts& parts, import_options importing,
                                                const opened_model& opened) {
  const std::string bytes = parts.with_all_outputs();
  const program all = import_onnx(std::as_bytes(std::span(bytes)), importing);
  const program bound = all.bind(sizes_for(all, opened));
  const auto computed = evaluate(bound.main(), opened.inputs(), spirv::library_runner(bound));
  std::map<std::string, literal> values = opened.named_inputs();
  for (std::size_t i = 0; i < computed.size(); ++i)
    values.insert_or_assign(bound.main().output_names()[i], computed[i]);
  return values;
}

// Compiles and runs parts of the model as the model was, and finds the smallest that differs.
nlohmann::ordered_json find_smallest_part(const std::string& model, const options& o, const import_options& importing,
                                          const compile_options& compiling, const opened_model& opened,
                                          exactness computed) {
  const model_parts parts(model);
  const auto values = reference_values(parts, importing, opened);
  import_options of_part;
  of_part.custom_operators = importing.custom_operators;
  const output_options nothing{.json = false, .quiet = true, .verbose = false};
  auto differs = [&](const model_parts::part& part) {
    const scratch_folder folder;
    write_part_inputs(part, values, folder.path());
    options as_model = o;
    as_model.inputs_dir = folder.path();
    as_model.inputs.clear(), as_model.shapes.clear(), as_model.dims.clear();
    opened_model run(compile(import_onnx(std::as_bytes(std::span(part.bytes)), of_part), compiling), as_model, nothing);
    const auto got = run.run_once();
    for (std::size_t i = 0; i < part.outputs.size(); ++i)
      if (!compare(got[i], as_type(values.at(part.outputs[i]), got[i].type().type), computed).ok) return true;
    return false;
  };
  return bisect(parts, values, differs, o.bisect);
}

// The compiled model, and what its results are compared with.
struct verified {
  std::string model;
  std::vector<spirv::object> custom;
  import_options importing;  // uses `custom`
  compile_options compiling;
  program compiled, reference;
};

void verify_model_itself(options& o, verified& v) {
  if (o.fp16 && o.bf16) throw error(error_kind::usage, "--fp16 and --bf16 exclude each other");
  v.model = o.file;
  for (const auto& [name, number] : parse_bindings(o.dims)) v.importing.dims.insert_or_assign(name, number);
  o.dims.clear();
  read_sequences(o.sequences, v.importing);
  v.importing.external_weights = o.weights.sources.external_weights;
  v.importing.max_nodes = o.weights.sources.max_nodes;
  v.custom = compile_custom_ops(o.weights.sources.custom_ops);
  v.importing.custom_operators = &v.custom;
  program imported = import_onnx(v.model, v.importing);
  v.reference = imported.clone();
  if (o.fp16) v.compiling.precision = element_type::f16;
  if (o.bf16) v.compiling.precision = element_type::bf16;
  v.compiling.int4_weights = o.int4_weights;
  v.compiled = compile(std::move(imported), v.compiling);
}

// A file without weights and the model that has them: the options are those of the file.
void verify_plan(options& o, verified& v) {
  if (o.fp16 || o.bf16 || o.int4_weights || !o.sequences.empty())
    throw error(error_kind::usage,
                "with --weights the model is compiled as the file was: leave out --fp16, --bf16, "
                "--int4-weights and --sequence");
  if (!o.bisect.empty())
    throw error(error_kind::usage, "--bisect takes parts of an ONNX model: verify " + o.weights.model + " itself");
  v.model = o.weights.model;
  const stripped_plan plan = read_stripped(o.file, o.weights.sources);
  o.fp16 = plan.compiled_with.fp16, o.bf16 = plan.compiled_with.bf16;
  o.int4_weights = plan.compiled_with.int4_weights;
  v.compiling = compile_options_of(plan.compiled_with);
  v.compiled = compile_like(plan, o.file, v.model, &v.reference).result;
}

int verify_model(options o, const output_options& output) {
  verified v;
  if (o.weights.model.empty()) verify_model_itself(o, v);
  else verify_plan(o, v);
  const std::string& model = v.model;
  program& reference = v.reference;
  // Quantization is no error of the kernels: they must agree with the reference of the quantized program.
  if (o.int4_weights) optimize(reference, v.compiling);
  if (o.inputs_dir.empty()) require_references(reference);
  opened_model opened(std::move(v.compiled), o, output);
  auto got = opened.run_once();
  auto names = reference.main().output_names();
  std::vector<literal> expected;
  std::string against = o.int4_weights ? "reference of the program with quantized weights" : "reference";
  if (!o.inputs_dir.empty()) {
    const std::size_t own = own_outputs(reference.main());
    for (std::size_t i = 0; i < own; ++i)
      if (auto data = find_supplied(o.inputs_dir, names[i], "output", i)) expected.push_back(*data);
    if (expected.size() == own) against = "supplied outputs";
    else if (!expected.empty())
      throw error(error_kind::missing_file,
                  fmt::format("{}: has some of the {} expected outputs, not all", o.inputs_dir, own));
  }
  const program bound = reference.bind(sizes_for(reference, opened));
  if (expected.empty()) {
    require_references(reference);
    expected = evaluate(bound.main(), opened.inputs(), spirv::library_runner(bound));
  }
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = as_type(expected[i], got[i].type().type);
  moved_reference moved = [](double) { return std::vector<literal>{}; };
  if (!lacks_references(reference)) moved = moved_program(bound, opened.inputs(), spirv::library_runner(bound));

  const exactness computed = exactness_of(reference, o);
  bool ok = true;
  auto outputs = nlohmann::ordered_json::array();
  const auto found = compare_with_steps(got, expected, computed, moved);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ok &= found[i].ok;
    outputs.push_back(describe(names[i], found[i]));
  }
  nlohmann::ordered_json document = opened.describe();
  document["model"] = model;
  document["against"] = against;
  document["outputs"] = outputs;
  if (o.per_kernel) {
    document["per_kernel"] = compare_kernels(opened, computed);
    for (const auto& row : document["per_kernel"]) {
      if (row["ok"].get<bool>()) continue;
      document["first_difference"] = row;
      ok = false;
      break;
    }
  }
  document["ok"] = ok;
  if (!o.bisect.empty() && !ok)
    document["bisect"] = find_smallest_part(model, o, v.importing, v.compiling, opened, computed);
  output.print(document, [&] {
    for (const auto& row : outputs)
      print("{:<4} {:<24} max error {:.3g}, RMS {:.3g}, relative {:.3g} (tolerance {:.0g}) {}\n",
            row["ok"].get<bool>() ? "ok" : "BAD", row["name"].get<std::string>(), row["max_error"].get<double>(),
            row["rms_error"].get<double>(), row["relative_norm"].get<double>(), row["tolerance"].get<double>(),
            row["reason"].get<std::string>());
    if (document.contains("first_difference"))
      print("first kernel that differs: {} ({}), relative {:.3g}\n",
            document["first_difference"]["name"].get<std::string>(),
            document["first_difference"]["origin"].get<std::string>(),
            document["first_difference"]["relative_norm"].get<double>());
    else if (o.per_kernel) print("{} kernel outputs agree one by one\n", document["per_kernel"].size());
    if (document.contains("bisect")) print_part(document["bisect"]);
    print("{} {} its {} ({} kernels, {} interpreted)\n", model, ok ? "agrees with" : "DIFFERS from", against,
          document["kernels"].get<int>(), document["interpreted"].get<int>());
  });
  return ok ? 0 : 1;
}

}  // namespace

action declare_verify(CLI::App& app) {
  auto o = std::make_shared<options>();
  add_model_options(app, *o);
  allow_sources_alone(app);
  app.get_option("FILE")->description("ONNX model, or a file without weights with --weights");
  app.get_option("--inputs")
      ->description(
          "Folder with NAME.npy, or input_N.pb and output_N.pb; expected outputs are used where all are there");
  add_sequence_option(app, o->sequences);
  app.add_flag("--per-kernel", o->per_kernel, "Compare every kernel on its own and name the first that differs");
  app.add_option(
      "--bisect", o->bisect,
      "If an output differs: find the smallest part of the model that does, and write it to this .onnx file, its "
      "inputs into the folder of the same name");
  app.add_flag("--fp16", o->fp16, "Compile in f16");
  app.add_flag("--bf16", o->bf16, "Compile in bf16");
  app.add_flag("--int4-weights", o->int4_weights,
               "Compile with weights of 4 bits; the reference computes with the same quantized weights");
  return [o](const output_options& output) { return verify_model(*o, output); };
}

}  // namespace kiln::tools
