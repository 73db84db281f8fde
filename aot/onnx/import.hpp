// Converts ONNX models to programs. The program owns all of its data: weights are moved out of the parsed message or
// mapped from external data files, so large tensors are not duplicated. Any thread may import; two imports share no
// state. Errors: error{missing_file, truncated, corrupted} for the file, {invalid_model} for a model that violates
// ONNX's rules, {unsupported} for a model that Kiln cannot express. The message names the node or tensor.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
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

// The choice for a named dimension: a fixed number, or a symbol with a range.
using dim_spec = std::variant<std::int64_t, dim_range>;

// Parses "NAME=VALUE" or "NAME=MIN:MAX[:OPT,...]", the argument of `--dim`. Throws error{usage}.
std::pair<std::string, dim_spec> parse_dim_spec(std::string_view text);

// Parses "NAME=VALUE[,VALUE...]", the argument of `--value`: the elements of an input in row-major order, kept as text.
// Throws error{usage}.
std::pair<std::string, std::vector<std::string>> parse_value_spec(std::string_view text);

// The dims of each element of a sequence input. nullopt means an optional without a value.
using sequence_spec = std::optional<std::vector<std::vector<std::int64_t>>>;

// Parses "NAME=[2,3][2,5]" or "NAME=none", the argument of `--sequence`. Throws error{usage}.
std::pair<std::string, sequence_spec> parse_sequence_spec(std::string_view text);

struct import_options {
  // By the model's dim_param. A name that the model lacks is error{usage}.
  std::map<std::string, dim_spec> dims = {};
  // Inputs that become constants: the elements as text, keyed by the input's name. The program does not have these
  // inputs. An unknown name or a wrong number of elements throws error{usage}.
  std::map<std::string, std::vector<std::string>> values = {};
  // Operators compiled from HIP sources. They take precedence over the built-in operators and are only read during the
  // import.
  const std::vector<spirv::object>* custom_operators = nullptr;
  // Upper bound on the nodes of all graphs, with functions expanded. Calls of functions may expand to a quarter of it.
  std::size_t max_nodes = std::size_t{1} << 18;
  // The folder of external data files, or one file that is used for all of them. If empty, the model's folder is used.
  std::filesystem::path external_weights = {};
  // Inputs that are sequences or optionals. Each element of a sequence becomes an input NAME.0, NAME.1, ...; an
  // optional tensor becomes the input NAME. Sequence outputs are expanded in the same way.
  std::map<std::string, sequence_spec> sequences = {};
  // Dimensions, by the model's dim_param, that may be 1 where they broadcast against a larger one. Of others it is
  // assumed that the two are equal, which makes faster programs. A name that the model lacks is error{usage}.
  std::set<std::string> may_be_one = {};
};

program import_onnx(const std::filesystem::path& model, const import_options& options = {});
// `bytes` need to stay valid during the call only. A model with external data needs options.external_weights.
program import_onnx(std::span<const std::byte> bytes, const import_options& options = {});

// One row of `kiln ops`: an operator that the importer supports, and the range of opsets.
struct onnx_operator {
  std::string_view domain;  // "" is ai.onnx
  std::string_view name;
  int version;  // the newest version of the operator that is implemented
  int min_opset, max_opset;
  std::string_view notes;  // limits on types and attributes; may be empty
};

// Sorted by domain and name.
std::vector<onnx_operator> supported_onnx_operators();
// The newest standard opset that the operator table covers. A newer model is imported with a warning.
int newest_onnx_opset();

}  // namespace kiln
