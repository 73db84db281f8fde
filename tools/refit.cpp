#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "ir/container/container.hpp"
#include "ir/container/stripped.hpp"
#include "ir/error.hpp"
#include "ir/trust/native_consent.hpp"
#include "tools/command.hpp"
#include "tools/compile_choice.hpp"
#include "tools/model_summary.hpp"

namespace kiln::tools {
namespace {

struct options {
  std::string plan, weights, output;
  compile_choice sources;  // of these only where the parts of the model are
  bool unsigned_kernels = false;
};

// Compiles the model as the plan was compiled. The result must have the plan's kernels, so that the objects and the
// tuning records of the plan are those of the result.
int refit(const options& o, const output_options& output) {
  // Nothing of the plan is run, so it needs no trusted signature.
  const program plan = read_program(o.plan, native_consent{.allow_unsigned = true});
  const auto choice = plan.metadata.find(stripped_weights_key);
  if (choice == plan.metadata.end())
    throw error(error_kind::usage,
                fmt::format("{}: it has weights already; refit takes what kiln compile --strip-weights wrote", o.plan));
  compile_choice compiling = compile_choice_from(choice->second);
  compiling.custom_ops = o.sources.custom_ops;
  compiling.external_weights = o.sources.external_weights;
  compiling.max_nodes = o.sources.max_nodes;
  const compiled_model compiled = compile_model(o.weights, compiling, nullptr);
  if (const std::string different = structural_difference(plan, compiled.result); !different.empty())
    throw error(error_kind::mismatch, fmt::format("{}: it is another model than that of {}: {}; compile it anew",
                                                  o.weights, o.plan, different));
  container_extras extras = read_extras(o.plan);
  const std::size_t objects = extras.objects.size();
  write_compiled(compiled, o.output, o.unsigned_kernels, std::move(extras));
  const model_summary summary = summarize(compiled.result);
  nlohmann::ordered_json document{{"plan", o.plan},
                                  {"weights", o.weights},
                                  {"output", o.output},
                                  {"bytes", std::filesystem::file_size(o.output)},
                                  {"kernels", summary.kernels},
                                  {"objects", objects},
                                  {"compile_ms", compiled.import_ms + compiled.compile_ms}};
  output.print(document, [&] {
    print("{}: {:.1f} MB, {} kernels, {} native objects of {}\n", o.output,
          static_cast<double>(document["bytes"].get<std::uint64_t>()) / 1e6, summary.kernels, objects, o.plan);
  });
  return 0;
}

}  // namespace

action declare_refit(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.add_option("PLAN", o->plan, ".kiln file without weights")->required();
  app.add_option("--weights", o->weights, "ONNX model with the weights: the same graph")->required();
  app.add_option("-o,--output", o->output, "File to write")->required();
  add_source_options(app, o->sources);
  add_unsigned_option(app, o->unsigned_kernels);
  return [o](const output_options& output) { return refit(*o, output); };
}

}  // namespace kiln::tools
