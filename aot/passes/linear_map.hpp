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
  value input = {};                         // [B, C, spatial...]; for a product [M, C]
  value weights = {};                       // as the operation has them
  value bias = {};                          // one number per output channel, or one for all; null without one
  value result = {};                        // with the bias
  bool is_dot = false, transposed = false;  // transposed: the product's weights are [F, C]
  std::int64_t channels = 0, filters = 0, groups = 1;
  convolution geometry = {};              // its lists have an entry for each spatial axis
  std::vector<std::int64_t> window = {};  // one entry for each spatial axis

  std::int64_t taps() const;
  // Multiplications of the whole map, and elements of its weights. Symbolic dims are assumed to be small.
  double products() const;
  double weight_elements() const;
};

// `v` as a linear map: a product, or a bias added to a product that nothing else uses. None for any other value.
std::optional<linear_map> find_linear_map(const module& m, value v);

// Weights and bias as numbers; weights are [filters, channels / groups, window...].
struct linear_numbers {
  std::vector<double> weights, bias;  // no bias: empty
};
linear_numbers numbers_of(const linear_map& map);

// The same weights for fewer groups, of which the map's number is a multiple: zeros where groups were apart.
std::vector<double> with_groups(const linear_map& map, const std::vector<double>& weights, std::int64_t groups);

// The literal for weights [filters, channels / groups, window...] in the layout of `like`'s operation; none if a number
// is too large for the type.
std::optional<literal> weight_literal(const linear_map& like, const std::vector<double>& weights);

// outer(inner(x)) as one map: its geometry, window, groups and channels are set; `input` is inner's. If the composition
// is not exact or not supported, `refusal` says why.
struct composition {
  linear_map map;
  std::string_view refusal = {};
};
composition compose(const linear_map& outer, const linear_map& inner);

linear_numbers composed_numbers(const linear_map& outer, const linear_map& inner, const linear_map& composed);

}  // namespace kiln
