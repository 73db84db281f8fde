#include "aot/onnx/graph.hpp"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>

#include "aot/onnx/custom.hpp"
#include "aot/onnx/empty_pasts.hpp"
#include "aot/onnx/input_values.hpp"
#include "aot/onnx/node_order.hpp"
#include "aot/onnx/operator_versions.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/refused_operators.hpp"
#include "ir/bind_shapes.hpp"
#include "ir/dims_differ.hpp"

namespace kiln::onnx_import {
namespace {

constexpr int max_depth = 32;
// Maximum number of bytes of a node's name in messages.
constexpr std::size_t max_label = 200;

std::string label_of(const ::onnx::NodeProto& proto, int index) {
  std::string label = proto.name().empty() ? proto.op_type() + "_" + std::to_string(index) : proto.name();
  return label.size() <= max_label ? label : label.substr(0, max_label) + "...";
}

// Paddle writes -1 for an open dimension.
bool is_open(const ::onnx::TensorShapeProto::Dimension& d) { return !d.has_dim_value() || d.dim_value() == -1; }

// Placeholder names that exporters write for unknown dimensions. Two dimensions with such a name may have different
// sizes.
constexpr std::string_view no_names[] = {"", "?", "*", "-1", "None", "none", "unknown"};

std::string dimension_name(const ::onnx::ValueInfoProto& info, int index) {
  const std::string& given = info.type().tensor_type().shape().dim(index).dim_param();
  return std::ranges::count(no_names, given) ? info.name() + "_dim" + std::to_string(index) : given;
}

const dim_spec* spec_of(const import_state& state, const std::string& name, const std::string& symbol) {
  auto found = state.options.dims.find(name);
  if (found == state.options.dims.end()) found = state.options.dims.find(symbol);
  return found == state.options.dims.end() ? nullptr : &found->second;
}

dim declared_dim(import_state& state, const ::onnx::ValueInfoProto& info, int index) {
  const auto& d = info.type().tensor_type().shape().dim(index);
  if (!is_open(d)) {
    if (d.dim_value() < 0)
      invalid("input '" + info.name() + "' has the negative dimension " + std::to_string(d.dim_value()));
    if (d.dim_value() > largest_dim)
      invalid("input '" + info.name() + "' has a dimension of " + std::to_string(d.dim_value()));
    return d.dim_value();
  }
  std::string name = dimension_name(info, index);
  const dim_spec* given = spec_of(state, name, dim::symbol(name).str());
  if (const auto* number = given ? std::get_if<std::int64_t>(given) : nullptr) return *number;
  dim_bindings fixed;
  for (const auto& [symbol, original] : state.dimensions.symbol_names) {
    const dim_spec* spec = spec_of(state, original, symbol);
    if (const auto* number = spec ? std::get_if<std::int64_t>(spec) : nullptr) fixed[symbol] = *number;
  }
  return state.dimensions.meanings.at(name).substitute(fixed).replace(state.equal);
}

// Before IR version 4 every initializer was also listed as an input.
std::unordered_set<std::string> default_inputs(const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string> names;
  for (const auto& i : graph.initializer()) names.insert(i.name());
  for (const auto& i : graph.sparse_initializer()) names.insert(i.values().name());
  return names;
}

void collect_outer_names(const ::onnx::GraphProto& graph, std::vector<std::string>& found,
                         std::unordered_set<std::string>& seen) {
  std::unordered_set<std::string> defined;
  for (const auto& i : graph.input()) defined.insert(i.name());
  for (const auto& i : graph.initializer()) defined.insert(i.name());
  for (const auto& i : graph.sparse_initializer()) defined.insert(i.values().name());
  auto use = [&](const std::string& name) {
    if (!name.empty() && !defined.contains(name) && seen.insert(name).second) found.push_back(name);
  };
  for (const auto& n : graph.node()) {
    for (const auto& name : n.input()) use(name);
    for (const auto& a : n.attribute())
      if (a.has_g())
        for (const auto& name : outer_names(a.g())) use(name);
    for (const auto& name : n.output()) defined.insert(name);
  }
  for (const auto& o : graph.output()) use(o.name());
}

// Returns the opset version of a domain. onnxruntime writes models that use its own domains without importing them;
// version 1 is assumed for these.
std::optional<std::int64_t> opset_of(const import_state& state, const std::string& domain) {
  if (auto found = state.opsets.find(domain); found != state.opsets.end()) return found->second;
  return domain.empty() ? std::nullopt : std::optional<std::int64_t>(1);
}

// Returns the row for an operator at the model's opset. Throws with the operator's name if there is none.
const operator_row& operator_of(const import_state& state, const std::string& domain, const std::string& name) {
  auto opset = opset_of(state, domain);
  const operator_row* row = find_operator(domain, name);
  if (!row || !opset) {
    std::string_view advice = advice_about(domain, name);
    refuse("operator " + name + " of domain '" + domain + "' is not supported; " +
           (advice.empty() ? "see kiln ops" : std::string(advice)));
  }
  // For a model newer than the table a warning was printed; its operators are interpreted as those of the newest known
  // opset.
  const operator_version* version = domain.empty() ? find_operator_version(name) : nullptr;
  std::int64_t last = version ? version->last_opset() : *opset,
               asked = std::min<std::int64_t>(*opset, domain.empty() ? newest_opset : *opset);
  if (asked < row->min_opset || asked > last)
    refuse("operator " + name + " of opset " + std::to_string(*opset) + " is not supported, only " +
           std::to_string(row->min_opset) + " to " + std::to_string(last) + "; see kiln ops");
  return *row;
}

}  // namespace

// Treats the elements of a small integer or boolean input as symbols.
void know_elements(import_state& state, builder& b, const std::string& name, value input) {
  const shape& type = input.type();
  bool fits = type.is_static() && (type.type == element_type::boolean || is_integer(type.type)) &&
              type.element_count() <= max_value_elements && !(state.plain_inputs && state.plain_inputs->contains(name));
  if (!fits) return;
  known_elements elements;
  for (std::int64_t i = 0; i < type.element_count(); ++i) {
    dim symbol = value_symbol(name, i);
    state.known.facts.set_range(symbol.str(), least_value(state, symbol),
                                type.type == element_type::boolean ? 1 : INT64_MAX);
    elements.push_back(symbol);
  }
  b.set_known(input, std::move(elements));
}

void read_dimensions(import_state& state, const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string> defaults = default_inputs(graph);
  std::vector<std::string> names;
  for (const auto& i : graph.input()) {
    if (defaults.contains(i.name()) || !i.type().has_tensor_type()) continue;
    for (int k = 0; k < i.type().tensor_type().shape().dim_size(); ++k)
      if (is_open(i.type().tensor_type().shape().dim(k))) names.push_back(dimension_name(i, k));
  }
  state.dimensions = read_dim_params(names);
  const std::set<std::string> growing = state.pasts_may_be_empty ? growing_dimensions(graph) : std::set<std::string>();
  for (const auto& [symbol, name] : state.dimensions.symbol_names) {
    for (std::string_view taken : {count_prefix, value_prefix})
      if (symbol.starts_with(taken))
        refuse("dimension '" + name + "': names that begin with " + std::string(taken) + " are reserved");
    if (state.options.may_be_one.contains(name) || state.options.may_be_one.contains(symbol))
      state.known.may_be_one.insert(symbol);
    const dim_spec* spec = spec_of(state, name, symbol);
    if (const auto* range = spec ? std::get_if<dim_range>(spec) : nullptr)
      state.known.facts.set_range(symbol, range->min, range->max);
    if (spec || !growing.contains(name)) continue;
    state.known.facts.set_range(symbol, 0, INT64_MAX);
    state.has_empty_pasts = true;
  }
}

std::vector<std::string> outer_names(const ::onnx::GraphProto& graph) {
  std::vector<std::string> found;
  std::unordered_set<std::string> seen;
  collect_outer_names(graph, found, seen);
  return found;
}

shape declared_shape(import_state& state, const ::onnx::ValueInfoProto& info) {
  std::string what = "input '" + info.name() + "'";
  if (!info.type().has_tensor_type()) refuse(what + " is not a tensor");
  const auto& tensor = info.type().tensor_type();
  if (tensor.elem_type() == ::onnx::TensorProto::STRING)
    refuse(what +
           " has element type string; encode text outside, and cut the model behind the encoder "
           "(onnx.utils.extract_model)");
  shape result{element_type_of(tensor.elem_type(), what), {}};
  if (!tensor.has_shape()) refuse(what + " has no rank; run ONNX shape inference on the model first");
  check_rank(tensor.shape().dim_size(), what);
  for (int i = 0; i < tensor.shape().dim_size(); ++i) result.dims.push_back(declared_dim(state, info, i));
  return result;
}

void scope::add_inputs(const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string> defaults = default_inputs(graph);
  for (const auto& i : graph.input()) {
    if (defaults.contains(i.name())) continue;
    if (i.name().empty()) invalid("a graph input has no name");
    if (auto given = state_.options.values.find(i.name()); given != state_.options.values.end()) {
      define(i.name(), given_input(b_, i.name(), declared_shape(state_, i), given->second));
      continue;
    }
    if (!i.type().has_tensor_type()) {
      define(i.name(), add_compound_input(state_, b_, i));
      continue;
    }
    value made = b_.target().add_parameter(i.name(), declared_shape(state_, i));
    define(i.name(), made);
    if (state_.values_as_symbols) know_elements(state_, b_, i.name(), made);
  }
}

void scope::run(::onnx::GraphProto& graph) {
  if (++state_.depth > max_depth) invalid("graphs are nested more than " + std::to_string(max_depth) + " deep");
  for (auto& i : *graph.mutable_sparse_initializer()) {
    std::string name = i.values().name();
    define(name, b_.constant(tensor(i, "sparse initializer '" + name + "'")));
  }
  for (auto& i : *graph.mutable_initializer())
    if (values_.contains(i.name()) || !initializers_.emplace(i.name(), &i).second)
      invalid("initializer '" + i.name() + "' is defined twice");
  order_nodes(graph);
  for (int i = 0; i < graph.node_size(); ++i) import_node(*graph.mutable_node(i), i);
  --state_.depth;
}

std::vector<value> scope::outputs(const ::onnx::GraphProto& graph) {
  std::vector<value> results;
  for (const auto& o : graph.output()) {
    value v = find(o.name());
    if (!v) invalid("graph output '" + o.name() + "' is not produced by any node");
    results.push_back(v);
  }
  return results;
}

void scope::define(const std::string& name, value v) {
  if (initializers_.contains(name) || !values_.emplace(name, v).second)
    invalid("value '" + name + "' is defined twice");
}

value scope::imported(const std::string& name) const {
  auto found = values_.find(name);
  return found == values_.end() ? value{} : found->second;
}

value scope::find(const std::string& name) {
  if (auto found = values_.find(name); found != values_.end()) return found->second;
  if (auto found = initializers_.find(name); found != initializers_.end()) {
    std::string what = "initializer '" + name + "'";
    bool text = found->second->data_type() == ::onnx::TensorProto::STRING;
    value made =
        text ? text_constant(b_, state_.texts, *found->second, what) : b_.constant(tensor(*found->second, what));
    made.producer->set_origin(name);
    initializers_.erase(found);
    return values_[name] = made;
  }
  value outer = around_ ? around_->find(name) : value{};
  if (!outer || &around_->b_ == &b_) return outer;
  if (find_compound(state_, outer))
    refuse("'" + name +
           "' is a sequence or an optional, which a body of If or Loop can only use if the condition or the " +
           "number of trips is known at import");
  // Constants of other modules are repeated in a body. All other outer values are parameters of the body (control.cpp).
  const literal* data = module::constant(outer);
  if (!data) return {};
  return values_[name] = b_.constant(*data);
}

std::vector<value> scope::import_function(const ::onnx::FunctionProto& function, const ::onnx::NodeProto& call,
                                          const std::vector<value>& inputs) {
  if (++state_.depth > max_depth) invalid("functions call each other more than " + std::to_string(max_depth) + " deep");
  auto opsets = state_.opsets;
  for (const auto& o : function.opset_import()) state_.opsets[standard_domain(o.domain())] = o.version();
  auto attributes = call_attributes(function, call);
  scope inside(state_, b_, nullptr);
  for (int i = 0; i < function.input_size(); ++i) {
    bool given = static_cast<std::size_t>(i) < inputs.size() && inputs[static_cast<std::size_t>(i)];
    if (given) inside.define(function.input(i), inputs[static_cast<std::size_t>(i)]);
    else inside.absent_.insert(function.input(i));
  }
  for (int i = 0; i < function.node_size(); ++i) {
    state_.budget.take_function_node(function.node(i).ByteSizeLong());
    ::onnx::NodeProto copy = function.node(i);  // a function may be called again
    bind_attributes(copy, attributes);
    inside.import_node(copy, i);
  }
  std::vector<value> results;
  for (const auto& name : function.output()) results.push_back(inside.find(name));
  state_.opsets = std::move(opsets);
  --state_.depth;
  return results;
}

std::vector<value> scope::import_operator(::onnx::NodeProto& proto, const std::string& domain,
                                          std::vector<value> inputs) {
  const operator_row& row = operator_of(state_, domain, proto.op_type());
  node n(*this, b_, proto, opset_of(state_, domain).value(), std::move(inputs));
  for (std::size_t i = 0; i < n.inputs() && !row.compounds; ++i) refuse_compound(n, i);
  bool moves = moves_elements(domain, proto.op_type()), reads = reads_texts(domain, proto.op_type());
  const std::vector<std::string>* list = n.has(0) ? state_.texts.of(n.in(0)) : nullptr;
  for (std::size_t i = 0; i < n.inputs(); ++i)
    if (n.has(i) && state_.texts.of(n.in(i)) && (i > 0 || (!moves && !reads)))
      refuse("input " + std::to_string(i) + " is text; cut the model before this node (onnx.utils.extract_model)");
  if (!list || !moves) return row.import(n);
  bool cast = proto.op_type() == "Cast";
  if (cast && n.integer("to", 0) != ::onnx::TensorProto::STRING) refuse("text cannot become numbers");
  auto results = cast ? std::vector<value>{n.in(0)} : row.import(n);
  state_.texts.mark(results.at(0), *list);
  return results;
}

void scope::import_node(::onnx::NodeProto& proto, int index) {
  std::string label = label_of(proto, index), domain = standard_domain(proto.domain());
  std::string what = "node '" + label + "' (" + proto.op_type() + "): ";
  try {
    state_.budget.take_node();
    std::vector<value> inputs;
    for (const auto& name : proto.input()) {
      value v = name.empty() ? value{} : find(name);
      if (!v && !name.empty() && !absent_.contains(name))
        invalid("input '" + name + "' is not produced by any node before it");
      inputs.push_back(v);
    }
    b_.set_origin(label + " (" + proto.op_type() + ")");
    std::vector<value> results;
    if (auto function = state_.functions.find(key_of(proto)); function != state_.functions.end()) {
      results = import_function(*function->second, proto, inputs);
    } else if (auto custom = custom_operators(state_, domain, proto.op_type()); !custom.empty()) {
      node n(*this, b_, proto, opset_of(state_, domain).value_or(1), std::move(inputs));
      for (std::size_t i = 0; i < n.inputs(); ++i) refuse_compound(n, i);
      results = import_custom(n, custom);
    } else {
      results = import_operator(proto, domain, std::move(inputs));
    }
    for (int i = 0; i < proto.output_size(); ++i) {
      if (proto.output(i).empty()) continue;
      if (static_cast<std::size_t>(i) >= results.size() || !results[static_cast<std::size_t>(i)])
        invalid("has " + std::to_string(proto.output_size()) + " outputs, the operator gives " +
                std::to_string(results.size()));
      define(proto.output(i), results[static_cast<std::size_t>(i)]);
    }
  } catch (const dims_differ& e) {
    throw dims_differ(what + e.what(), e.a(), e.b());
  } catch (const value_needed& e) {
    throw value_needed(what + e.what());
  } catch (const negative_value_wanted&) {
    throw;
  } catch (const error& e) {
    throw error(e.kind(), what + e.what());
  } catch (const std::bad_alloc&) {
    throw error(error_kind::invalid_model, what + "needs more memory than is available");
  } catch (const std::length_error&) {
    throw error(error_kind::invalid_model, what + "has a size that is out of range");
  } catch (const std::out_of_range&) {
    throw error(error_kind::invalid_model, what + "has too few axes or elements");
  }
}

}  // namespace kiln::onnx_import
