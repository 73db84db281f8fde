#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "ir/container/container.hpp"
#include "tools/command.hpp"
#include "tools/counts.hpp"
#include "tools/model_summary.hpp"
#include "tools/plan_weights.hpp"

namespace kiln::tools {
namespace {

struct options {
  std::string plan, weights, output;
  compile_choice sources;
  bool unsigned_kernels = false;
};

int refit(const options& o, const output_options& output) {
  const compiled_model compiled = compile_like(read_stripped(o.plan, o.sources), o.plan, o.weights);
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
    print("{}: {:.1f} MB, {}, {} of {}\n", o.output, static_cast<double>(document["bytes"].get<std::uint64_t>()) / 1e6,
          counted(summary.kernels, "kernel"), counted(objects, "native object"), o.plan);
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
