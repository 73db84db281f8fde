// Questions that several passes ask of a value: is it constant, is it one number everywhere, what lies behind its
// broadcast. "Constant-like" is a constant or what broadcasts, reshapes and transposes make of one: such values are
// kept small in the graph (a splat is a scalar and a broadcast) and are materialized only by constant folding or inside
// a kernel.
#pragma once

#include <optional>
#include <vector>

#include "ir/module.hpp"
#include "ir/ops/all.hpp"

namespace kiln {

// The number that every element has, looking through broadcast, reshape, transpose and slice.
std::optional<double> splat_of(value v);
bool is_splat(value v, double number);

bool is_constant_like(value v);
bool is_float(value v);

// The function of an elementwise instruction; none for anything else.
std::optional<scalar_function> function_of(value v);
bool is_function(value v, scalar_function f);
bool is_commutative(scalar_function f);

// Exactly one use, counting module outputs.
bool has_single_use(const module& m, value v);

// The dims of v, with 1s in front up to `rank`.
std::vector<dim> padded_dims(const std::vector<dim>& dims, std::size_t rank);

// For a value whose elements depend on at most one axis of its dims: looks behind broadcasts. `axis` is set to that
// axis (0 where it depends on none), and the returned value has dims that are 1 everywhere but there. Null where it
// depends on more.
value along_one_axis(value v, std::size_t axis);

std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& permutation);
bool is_identity(const std::vector<std::int64_t>& permutation);
std::vector<dim> permute(const std::vector<dim>& dims, const std::vector<std::int64_t>& permutation);
// True where a transpose by this permutation keeps the order of all dims other than 1: nothing moves in memory.
bool moves_nothing(const std::vector<dim>& dims, const std::vector<std::int64_t>& permutation);

}  // namespace kiln
