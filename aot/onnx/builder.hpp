// Adds operations to one module with ONNX's conventions: it broadcasts like numpy, folds small constants, and tracks
// shape computations as dims (symbolic.hpp). Every instruction gets the origin of the node being imported.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "aot/onnx/fractions.hpp"
#include "aot/onnx/import_budget.hpp"
#include "aot/onnx/symbolic.hpp"
#include "aot/onnx/unify.hpp"
#include "ir/module.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {

class builder {
 public:
  // `known` and `budget` must outlive the builder.
  builder(module& target, dim_knowledge& known, import_budget& budget)
      : target_(target), knowledge_(known), budget_(budget) {}

  module& target() { return target_; }
  dim_knowledge& knowledge() const { return knowledge_; }
  const dim_facts& facts() const { return knowledge_.facts; }
  void set_origin(std::string origin) { origin_ = std::move(origin); }

  // Returns the first output; output(v, i) gives the others. Folds to a constant if all inputs are constants and the
  // result is small.
  value add(operation op, std::vector<value> inputs, std::vector<module*> bodies = {});
  static value output(value first, std::uint32_t index) { return {first.producer, index}; }

  value constant(literal data);
  value scalar(element_type type, double x) { return constant(literal::scalar(type, x)); }
  value integers(const std::vector<std::int64_t>& values) { return constant(literal::from_int64(values)); }
  // A tensor i64[n], or i64[] if `rank` is 0, of dims that may be symbolic.
  value dims_tensor(const std::vector<dim>& dims, std::size_t rank = 1);
  // The value of an expression as i64[]. It may be negative.
  value data_of(const dim& d);

  // The literal of a constant, or of a small broadcast of one.
  std::optional<literal> constant_of(value v) const;
  // The elements of a small tensor of floats that the model computes from sizes, if they are known.
  std::optional<known_fractions> fractions_of_value(value v) const;
  // The elements as dims, if they are known.
  std::optional<known_elements> known(value v) const;
  // The one known value that all elements share, if there is one. Works for results with symbolic dims, too.
  std::optional<dim> uniform(value v) const;
  // Evaluates the producer of v again, whose inputs may be known by now, and records the result.
  std::optional<known_elements> know_again(value v);
  void set_known(value v, known_elements elements) { known_[v] = std::move(elements); }
  // Records that `count` (i64[1]) holds the value of the symbol.
  void set_count(const dim& symbol, value count) {
    counts_.emplace(symbol.str(), count);
    known_[count] = {symbol};
  }

  // Broadcasts by numpy's rule. Dimensions that are neither equal nor 1 are assumed to be equal (unify.hpp), unless
  // they are equal for no size but one of them may be 1, or the options say that one of them may be: then the larger
  // one is the result, and a guard checks the sizes.
  std::vector<dim> broadcast_shape(const std::vector<dim>& a, const std::vector<dim>& b);
  // Ensures that the dimensions are equal, or assumes it from now on. Throws if they can never be equal.
  void need_equal(const dim& a, const dim& b, const std::string& what);

  value broadcast_to(value x, const std::vector<dim>& dims);
  std::vector<value> broadcast_together(std::vector<value> values);
  value unary(scalar_function f, value x) { return add(elementwise{f}, {x}); }
  value binary(scalar_function f, value a, value b) { return add(elementwise{f}, broadcast_together({a, b})); }
  value binary(scalar_function f, value a, double b) { return binary(f, a, scalar(a.type().type, b)); }
  value where(value condition, value yes, value no) {
    return add(elementwise{scalar_function::where}, broadcast_together({condition, yes, no}));
  }
  value to_type(value x, element_type type) { return x.type().type == type ? x : add(convert{type}, {x}); }
  value with_dims(value x, const std::vector<dim>& dims) { return x.type().dims == dims ? x : add(reshape{dims}, {x}); }
  value permuted(value x, const std::vector<std::int64_t>& permutation);
  // Elements [start, start + length) along one axis.
  value slice_axis(value x, std::int64_t axis, std::int64_t start, dim length);
  // Like slice_axis, for a start that may be symbolic and any step other than 0: element i is x[start + i * step].
  value slice_from(value x, std::int64_t axis, const dim& start, const dim& length, std::int64_t step);
  // Pads one axis by lengths that may be symbolic. Negative lengths crop.
  value pad_axis(value x, std::int64_t axis, const dim& before, const dim& after, pad_mode mode, double fill);
  value reduced(reduction_kind kind, value x, std::vector<std::int64_t> axes, bool keep_dims);
  // Reshapes a vector [n] to [1, ..., n, ..., 1] of the given rank, with n at `axis`.
  value along_axis(value vector, std::int64_t axis, std::size_t rank);
  value iota_like(element_type type, const std::vector<dim>& dims, std::int64_t axis) {
    return add(iota{type, dims, axis}, {});
  }

 private:
  // Whether constant_of() would return a literal.
  bool is_constant(value v) const;
  value add_checked(operation op, std::vector<value> inputs);
  std::optional<known_elements> known_result(const operation& op, const std::vector<value>& inputs,
                                             const std::vector<shape>& shapes, const shape& output) const;
  std::optional<known_fractions> fraction_result(const operation& op, const std::vector<value>& inputs,
                                                 const std::vector<shape>& shapes, const shape& output) const;
  // The larger of two dims that can only broadcast where one of them is 1, or of which the options say that one may be;
  // nullopt for others.
  std::optional<dim> larger_if_one(const dim& a, const dim& b);
  void relabel(operation& op, std::vector<value>& inputs, const dim& from, const dim& to);
  std::optional<value> folded(const operation& op, const std::vector<value>& inputs, const std::vector<shape>& outputs);
  module& target_;
  dim_knowledge& knowledge_;
  import_budget& budget_;
  std::string origin_;
  std::optional<dim> uniform_result(const operation& op, const std::vector<value>& inputs,
                                    const std::vector<shape>& shapes, const shape& output) const;
  // Scalar constants and their broadcasts are created only once, because quantized models repeat each scale and bound
  // thousands of times.
  using scalar_key = std::pair<element_type, std::uint64_t>;  // the bytes of the element
  std::map<scalar_key, value> scalars_;
  std::map<value, std::vector<value>> spread_scalars_;
  std::map<value, known_elements> known_;
  std::map<value, known_fractions> fractions_;  // of results that are not integers
  std::map<value, dim> uniform_;
  std::map<std::string, value> counts_;
  // Dims that are 1 or equal to the second one, where one is broadcast to the other.
  std::vector<std::pair<dim, dim>> stretched_;
};

}  // namespace kiln::onnx_import
