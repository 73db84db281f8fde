#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "tools/command.hpp"
#include "tools/model_session.hpp"
#include "tools/tuning_choice.hpp"

namespace kiln::tools {
namespace {

struct options : model_options {
  std::string output_dir;
};

int run_model(const options& o, const output_options& output) {
  const double budget_ms = tuning_budget_ms(o);
  model_session session(o, output);
  auto outputs = session.run_once();
  const auto& ports = session.executable().plan().outputs;
  if (!o.output_dir.empty()) write_outputs(o.output_dir, session.executable().plan(), outputs);
  // The answer is out; what is left of the time goes into better kernels for the next run.
  double tuning_seconds = 0;
  if (o.tune != "off") {
    auto begin = std::chrono::steady_clock::now();
    tune_session(session, {.effort = parse_effort(o.tune)}, budget_ms, output);
    tuning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  auto document = session.describe();
  document["tuning"]["seconds"] = tuning_seconds;
  auto list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < ports.size(); ++i)
    list.push_back({{"name", ports[i].name}, {"shape", outputs[i].type().str()}});
  document["outputs"] = list;
  output.print(document, [&] {
    const jit_report& jit = session.report;
    print("{} on {} ({}, {} threads)\n", o.file, document["device"].get<std::string>(),
          document["target"].get<std::string>(), document["threads"].get<int>());
    print("  {} kernels, {} launches, {} interpreted; cache {} hits, {} misses\n", document["kernels"].get<int>(),
          document["launches"].get<int>(), document["interpreted"].get<int>(), jit.hits, jit.misses);
    print("  read {:.1f} ms, finalize {:.1f} ms, load {:.1f} ms, first run {:.1f} ms\n", session.read_ms,
          session.finalize_ms, session.load_ms, session.first_run_ms);
    for (std::size_t i = 0; i < ports.size(); ++i)
      print("  output {:<24} {}\n", ports[i].name, outputs[i].type().str());
  });
  return 0;
}

}  // namespace

action declare_run(CLI::App& app) {
  auto o = std::make_shared<options>();
  add_model_options(app, *o);
  app.add_option("--output-dir", o->output_dir, "Folder for NAME.npy of every output");
  return [o](const output_options& output) { return run_model(*o, output); };
}

}  // namespace kiln::tools
