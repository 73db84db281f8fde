#include "tools/plan_weights.hpp"

#include <fmt/format.h>

#include <array>

#include "ir/container/stripped.hpp"
#include "ir/error.hpp"
#include "ir/trust/native_consent.hpp"

namespace kiln::tools {
namespace {

constexpr std::array source_options{"--external-weights", "--custom-op", "--include-root", "--max-nodes"};

}  // namespace

void add_weights_options(CLI::App& app, weights_choice& choice) {
  CLI::Option* weights = app.add_option(
      "--weights", choice.model, "ONNX model with the weights of a FILE that has none (kiln compile --strip-weights)");
  add_source_options(app, choice.sources);
  for (const char* name : source_options) app.get_option(name)->needs(weights);
}

void allow_sources_alone(CLI::App& app) {
  for (const char* name : source_options) app.get_option(name)->remove_needs(app.get_option("--weights"));
}

stripped_plan read_stripped(const std::string& file, const compile_choice& sources) {
  program plan = read_program(file, native_consent{.allow_unsigned = true});
  const auto choice = plan.metadata.find(stripped_weights_key);
  if (choice == plan.metadata.end())
    throw error(error_kind::usage, fmt::format("{}: it has weights already; only what kiln compile --strip-weights "
                                               "wrote takes them from a model",
                                               file));
  compile_choice compiled_with = compile_choice_from(choice->second);
  compiled_with.custom_ops = sources.custom_ops;
  compiled_with.external_weights = sources.external_weights;
  compiled_with.max_nodes = sources.max_nodes;
  return {std::move(plan), std::move(compiled_with)};
}

compiled_model compile_like(const stripped_plan& plan, const std::string& file, const std::string& model,
                            program* imported) {
  compiled_model compiled = compile_model(model, plan.compiled_with, nullptr, imported);
  if (const std::string different = structural_difference(plan.plan, compiled.result); !different.empty())
    throw error(error_kind::mismatch,
                fmt::format("{}: it is another model than that of {}: {}; compile it anew", model, file, different));
  return compiled;
}

}  // namespace kiln::tools
