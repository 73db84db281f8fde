// The view of one node that an operator's handler gets: its inputs as values, its attributes with their types checked,
// and the builder. Handlers report errors through refuse() and invalid(); the scope adds the node's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aot/onnx/builder.hpp"
#include "aot/onnx/model_file.hpp"
#include "ir/error.hpp"

namespace kiln::onnx_import {

class scope;

// Upper bound on dimensions, far above those of real models. Below it, arithmetic on one dimension and a window cannot
// overflow.
inline constexpr std::int64_t largest_dim = std::int64_t{1} << 40;

[[noreturn]] void refuse(const std::string& what);   // error{unsupported}
[[noreturn]] void invalid(const std::string& what);  // error{invalid_model}

// Thrown if the import needs a value that depends on data. The importer then retries with the elements of small integer
// inputs as symbols, so that the program can be specialized to their values.
class value_needed : public error {
 public:
  explicit value_needed(std::string message) : error(error_kind::unsupported, std::move(message)) {}
};

class node {
 public:
  node(scope& owner, builder& b, ::onnx::NodeProto& proto, std::int64_t opset, std::vector<value> inputs)
      : owner(owner), b(b), proto(proto), opset(opset), inputs_(std::move(inputs)) {}

  scope& owner;
  builder& b;
  ::onnx::NodeProto& proto;
  const std::int64_t opset;  // opset of the operator's domain

  // An omitted optional input is an empty value in the list.
  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i]; }
  value in(std::size_t i) const;
  const shape& type(std::size_t i) const { return in(i).type(); }
  const std::vector<dim>& dims(std::size_t i) const { return in(i).type().dims; }
  std::size_t rank(std::size_t i) const { return in(i).type().rank(); }
  const std::vector<value>& all() const { return inputs_; }
  std::vector<value> present() const;
  std::size_t outputs() const { return static_cast<std::size_t>(proto.output_size()); }
  bool wants(std::size_t i) const { return i < outputs() && !proto.output(static_cast<int>(i)).empty(); }
  void refuse_outputs_from(std::size_t i, const std::string& why) const;

  const ::onnx::AttributeProto* attribute(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return attribute(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::optional<std::vector<std::int64_t>> integers(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  ::onnx::GraphProto& graph(std::string_view name) const;
  std::int64_t axis(std::string_view name, std::int64_t otherwise, std::size_t rank) const {
    return normalize_axis(integer(name, otherwise), rank);
  }

  // These return inputs that must be known at import. `what` names the input in the error message.
  known_elements known(std::size_t i, std::string_view what) const;
  std::vector<std::int64_t> numbers(std::size_t i, std::string_view what) const;
  literal constant(std::size_t i, std::string_view what) const;
  double number(std::size_t i, std::string_view what) const { return constant(i, what).at(0); }
  // A list that is an attribute in opsets before `since`, and input `i` from then on.
  std::optional<std::vector<std::int64_t>> numbers_since(std::int64_t since, std::string_view name,
                                                         std::size_t i) const;

 private:
  const ::onnx::AttributeProto* typed(std::string_view name, ::onnx::AttributeProto::AttributeType type) const;
  std::vector<value> inputs_;
};

using handler = std::vector<value> (*)(node&);

// A row of the operator table: the name, the handler, the oldest opset that the handler supports, and a note for `kiln
// ops`. In the standard domain the newest supported opset follows from the operator's version (operator_versions.hpp);
// other domains have no newer versions.
struct operator_row {
  std::string_view name;
  handler import;
  int min_opset = 6;
  std::string_view notes = "";
  std::string_view domain = "";
  bool compounds = false;  // whether it takes sequences and optionals (sequences.hpp)
};

}  // namespace kiln::onnx_import
