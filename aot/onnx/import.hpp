// ONNX models to programs. The program owns everything it needs: weights are moved out of the parsed message or mapped
// from external data files, never copied twice. Any thread may import; two imports share nothing. Fails with
// error{missing_file, truncated, corrupted} for the file, {invalid_model} for a model that breaks ONNX's rules,
// {unsupported} for what Kiln cannot express; the message names the node or tensor.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/program.hpp"

namespace kiln {

namespace spirv {
struct object;
}

// What a named dimension becomes: a number, or a symbol that stays open within a range.
using dim_spec = std::variant<std::int64_t, dim_range>;

// "NAME=VALUE" or "NAME=MIN:MAX[:OPT,...]", as `--dim` takes it. Throws error{usage}.
std::pair<std::string, dim_spec> parse_dim_spec(std::string_view text);

struct import_options {
  std::map<std::string, dim_spec> dims = {};  // by the model's dim_param; a name that the model lacks is error{usage}
  // From HIP sources. They are asked before our own operators, and only read during the import.
  const std::vector<spirv::object>* custom_operators = nullptr;
  // Of all graphs, with functions expanded: a file of kilobytes can stand for billions.
  std::size_t max_nodes = std::size_t{1} << 18;
  // The folder of external data files, or one file in place of all; empty: the model's folder.
  std::filesystem::path external_weights = {};
};

program import_onnx(const std::filesystem::path& model, const import_options& options = {});
// `bytes` are only read during the call. External data needs options.external_weights here.
program import_onnx(std::span<const std::byte> bytes, const import_options& options = {});

// One row of `kiln ops`: an operator that the importer knows and the opsets in which it knows it.
struct onnx_operator {
  std::string_view domain;  // "" is ai.onnx
  std::string_view name;
  int version;  // the newest version of the operator that is implemented
  int min_opset, max_opset;
  std::string_view notes;  // types and limits, empty where there are none
};

// Sorted by domain and name.
std::vector<onnx_operator> supported_onnx_operators();
// The newest standard opset that the table was compared with. A newer model is imported with a warning.
int newest_onnx_opset();

}  // namespace kiln
