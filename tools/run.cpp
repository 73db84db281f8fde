#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "tools/command.hpp"
#include "tools/counts.hpp"
#include "tools/opened_model.hpp"
#include "tools/shape_list.hpp"
#include "tools/tuning_report.hpp"

namespace kiln::tools {
namespace {

struct options : model_options {
  std::string output_dir, shape_list;
  bool dump = false;
};

nlohmann::ordered_json elements_of(const literal& tensor) {
  auto list = nlohmann::ordered_json::array();
  for (std::int64_t i = 0; i < tensor.type().element_count(); ++i) {
    const double number = tensor.at(i);
    // JSON has no infinities.
    if (std::isfinite(number)) list.push_back(number);
    else list.push_back(fmt::format("{}", number));
  }
  return list;
}

// Eight to a line.
void print_elements(const literal& tensor) {
  const std::int64_t count = tensor.type().element_count();
  for (std::int64_t i = 0; i < count; i += 8) {
    print("   ");
    for (std::int64_t k = i; k < std::min(i + 8, count); ++k) print(" {:.6g}", tensor.at(k));
    print("\n");
  }
}

int run_model(const options& o, const output_options& output) {
  const double budget_ms = tuning_budget_ms(o);
  opened_model model(o, output);
  auto outputs = model.run_once();
  const auto& ports = model.executable().plan().outputs;
  if (!o.output_dir.empty()) model.write_outputs(o.output_dir, outputs);
  // The answer is out; what is left of the time goes into better kernels for the next run.
  double tuning_seconds = 0;
  if (o.tune != "off") {
    auto begin = std::chrono::steady_clock::now();
    model.tune({.effort = parse_effort(o.tune)}, budget_ms);
    tuning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  auto document = model.describe();
  document["tuning"]["seconds"] = tuning_seconds;
  auto list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < ports.size(); ++i)
    list.push_back({{"name", ports[i].name}, {"shape", outputs[i].type().str()}});
  if (o.dump)
    for (std::size_t i = 0; i < ports.size(); ++i) list[i]["elements"] = elements_of(outputs[i]);
  document["outputs"] = list;
  output.print(document, [&] {
    const jit_report& jit = model.instance().report();
    print("{} on {} ({}{})\n", o.file, document["device"].get<std::string>(), document["target"].get<std::string>(),
          threads_text(document));
    print("  {}, {}, {} interpreted; cache {} hits, {} misses\n", counted(document["kernels"].get<int>(), "kernel"),
          counted(document["launches"].get<int>(), "launch", "launches"), document["interpreted"].get<int>(), jit.hits,
          jit.misses);
    print("  read {:.1f} ms, finalize {:.1f} ms, load {:.1f} ms, first run {:.1f} ms\n", model.read_ms(),
          model.instance().finalize_ms(), model.instance().load_ms(), model.first_run_ms());
    for (std::size_t i = 0; i < ports.size(); ++i) {
      print("  output {:<24} {}\n", ports[i].name, outputs[i].type().str());
      if (o.dump) print_elements(outputs[i]);
    }
  });
  return 0;
}

int run_shapes(const options& o, const output_options& output) {
  if (o.tune != "off" || o.dump)
    throw error(error_kind::usage,
                fmt::format("--shape-list: {} is for one set of sizes", o.dump ? "--dump-output" : "--tune"));
  const auto document = run_shape_list(o, read_shape_list(o.shape_list), o.output_dir, output);
  output.print(document, [&] { print_shape_list(document); });
  return 0;
}

}  // namespace

action declare_run(CLI::App& app) {
  auto o = std::make_shared<options>();
  o->specialize = "lazy";
  add_model_options(app, *o);
  app.add_option("--output-dir", o->output_dir, "Folder for NAME.npy of every output");
  app.add_flag("--dump-output", o->dump, "Print the elements of every output");
  app.add_option("--shape-list", o->shape_list,
                 "File with a set of sizes on each line, such as batch=1 or x:1x3x224x224: runs once at each, in one "
                 "session, and writes the outputs of set N to N in the --output-dir");
  return [o](const output_options& output) {
    return o->shape_list.empty() ? run_model(*o, output) : run_shapes(*o, output);
  };
}

}  // namespace kiln::tools
