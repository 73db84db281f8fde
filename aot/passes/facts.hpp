// Queries about values that several passes share: is a value constant, are all its elements equal, what is behind its
// broadcast. "Constant-like" means a constant, or broadcasts, reshapes and transposes of one. Such values stay small in
// the graph (a splat is a scalar and a broadcast); only constant folding or a kernel materializes them.
#pragma once

#include <optional>
#include <vector>

#include "ir/module.hpp"
#include "ir/ops/all.hpp"

namespace kiln {

// The number that all elements are equal to, looking through broadcast, reshape, transpose and slice.
std::optional<double> splat_of(value v);
bool is_splat(value v, double number);

bool is_constant_like(value v);
// Returns the elements of a value for which is_constant_like holds.
literal evaluate_constant_like(value v);
bool is_float(value v);

// The function of an elementwise instruction; none for any other instruction.
std::optional<scalar_function> function_of(value v);
bool is_function(value v, scalar_function f);

// Exactly one use, counting module outputs.
bool has_single_use(const module& m, value v);

// The dims of v, with leading 1s up to `rank`.
std::vector<dim> padded_dims(const std::vector<dim>& dims, std::size_t rank);

// Returns the value behind v's broadcasts if the elements of v depend on one axis at most. `axis` is set to that axis
// (0 if they depend on none), and the returned value has dims of 1 on every other axis. Returns null if they depend on
// several axes.
value along_one_axis(value v, std::size_t axis);

std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& permutation);
bool is_identity(const std::vector<std::int64_t>& permutation);
std::vector<dim> permute(const std::vector<dim>& dims, const std::vector<std::int64_t>& permutation);
// True if a transpose by this permutation keeps the order of all dims other than 1, so that no element moves in memory.
bool moves_nothing(const std::vector<dim>& dims, const std::vector<std::int64_t>& permutation);

}  // namespace kiln
