#include "tools/shape_list.hpp"

#include <fmt/format.h>

#include <optional>
#include <sstream>

#include "ir/error.hpp"
#include "ir/read_file.hpp"
#include "tools/counts.hpp"
#include "tools/model_list.hpp"

namespace kiln::tools {
namespace {

constexpr std::size_t most_bytes = 1 << 20;

model_options at_set(model_options options, const shape_set& set) {
  options.dims.insert(options.dims.end(), set.dims.begin(), set.dims.end());
  options.shapes.insert(options.shapes.end(), set.shapes.begin(), set.shapes.end());
  return options;
}

nlohmann::ordered_json run_set(opened_model& model, const std::string& folder, const std::string& text) {
  const auto outputs = model.run_once();
  const plan& plan = model.executable().plan();
  if (!folder.empty()) model.write_outputs(folder, outputs);
  auto list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    list.push_back({{"name", plan.outputs[i].name}, {"shape", outputs[i].type().str()}});
  return {{"sizes", text},
          {"finalize_ms", model.instance().finalize_ms()},
          {"compiled", model.instance().report().misses},
          {"run_ms", model.first_run_ms()},
          {"outputs", std::move(list)}};
}

}  // namespace

std::vector<shape_set> read_shape_list(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file, most_bytes));
  std::vector<shape_set> sets;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    shape_set set{++number, {}, {}, {}};
    try {
      for (const std::string& word : split_words(std::string_view(line).substr(0, line.find('#')))) {
        (word.find('=') == std::string::npos ? set.shapes : set.dims).push_back(word);
        set.text += (set.text.empty() ? "" : " ") + word;
      }
    } catch (const error& e) {
      throw error(e.kind(), fmt::format("{}, line {}: {}", file.string(), number, e.what()));
    }
    if (!set.text.empty()) sets.push_back(std::move(set));
  }
  if (sets.empty())
    throw error(error_kind::usage,
                fmt::format("{}: it has no sizes; write a line such as batch=1 for each set", file.string()));
  return sets;
}

nlohmann::ordered_json run_shape_list(const model_options& options, const std::vector<shape_set>& sets,
                                      const std::string& output_dir, const output_options& output) {
  std::optional<opened_model> model;
  auto rows = nlohmann::ordered_json::array();
  for (const shape_set& set : sets) {
    try {
      if (model) model->move_to(at_set(options, set));
      else model.emplace(at_set(options, set), output);
      const std::string folder = output_dir.empty() ? "" : fmt::format("{}/{}", output_dir, rows.size());
      rows.push_back(run_set(*model, folder, set.text));
    } catch (const error& e) {
      throw error(e.kind(), fmt::format("{} (line {} of the list of shapes)", e.what(), set.line));
    }
  }
  nlohmann::ordered_json document = model->describe();
  for (const char* of_one_set : {"load_ms", "finalize_ms", "first_run_ms"}) document.erase(of_one_set);
  document["sets"] = std::move(rows);
  return document;
}

void print_shape_list(const nlohmann::ordered_json& document) {
  print("{} on {} ({}{})\n", document["file"].get<std::string>(), document["device"].get<std::string>(),
        document["target"].get<std::string>(), threads_text(document));
  for (const auto& set : document["sets"]) {
    print("  {}: {} compiled in {:.1f} ms, run in {:.3f} ms\n", set["sizes"].get<std::string>(),
          counted(set["compiled"].get<std::int64_t>(), "kernel"), set["finalize_ms"].get<double>(),
          set["run_ms"].get<double>());
    for (const auto& port : set["outputs"])
      print("    output {:<24} {}\n", port["name"].get<std::string>(), port["shape"].get<std::string>());
  }
}

}  // namespace kiln::tools
