// Products with constant weights as linear maps, and their composition: matrix products by a constant matrix and
// convolutions (channels first) whose weights are constant, each with a constant bias that may follow it.
//
//   result[b, f, p...] = bias[f] + sum over c, w... of weights[f, c, w...] · input[b, c, p · stride + w · dilation -
//   pad]
//
// A matrix product is such a map without spatial axes. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/module.hpp"
#include "ir/ops/contraction.hpp"

namespace kiln {

struct linear_map {
  // [B, C, spatial...]; for a matrix product [M, C].
  value input = {};
  // In the layout of the operation.
  value weights = {};
  // One number per output channel, or one for all channels; null if there is no bias.
  value bias = {};
  // The result, including the bias.
  value result = {};
  // With `transposed`, the weights of a matrix product are [F, C].
  bool is_dot = false, transposed = false;
  std::int64_t channels = 0, filters = 0, groups = 1;
  convolution geometry = {};              // its lists have an entry for each spatial axis
  std::vector<std::int64_t> window = {};  // one entry for each spatial axis

  std::int64_t taps() const;
  // Number of multiplications in the whole map, and of elements in its weights. Symbolic dims are assumed to be small.
  double products() const;
  double weight_elements() const;
};

// Returns `v` as a linear map if it is a product, or a bias added to a product that has no other use. Otherwise
// nullopt.
std::optional<linear_map> find_linear_map(const module& m, value v);

// Weights and bias as doubles; weights are [filters, channels / groups, window...].
struct linear_numbers {
  // `bias` is empty if there is none.
  std::vector<double> weights, bias;
};
linear_numbers numbers_of(const linear_map& map);

// Expands the weights to a smaller number of groups, which divides the map's number, with zeros between groups.
std::vector<double> with_groups(const linear_map& map, const std::vector<double>& weights, std::int64_t groups);

// Returns weights [filters, channels / groups, window...] as a literal in the layout of `like`'s operation, or nullopt
// if a number is too large for the type.
std::optional<literal> weight_literal(const linear_map& like, const std::vector<double>& weights);

// The composition outer(inner(x)) as one map: its geometry, window, groups and channels are set, and `input` is
// inner's. If the composition is not exact or not supported, `refusal` holds the reason.
struct composition {
  linear_map map;
  std::string_view refusal = {};
};
composition compose(const linear_map& outer, const linear_map& inner);

linear_numbers composed_numbers(const linear_map& outer, const linear_map& inner, const linear_map& composed);

}  // namespace kiln
