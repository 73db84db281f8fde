#include "ir/independent_rows.hpp"

#include <algorithm>
#include <array>

#include "ir/ops/all.hpp"
#include "ir/ops/segment_sum.hpp"

namespace kiln {
namespace {

// A coefficient times a product of symbols.
struct monomial {
  std::int64_t coefficient = 1;
  dim symbols = 1;
};

std::optional<monomial> as_monomial(const dim& d) {
  if (d.is_static()) return monomial{d.value(), 1};
  const auto terms = d.terms();
  if (terms.size() != 1) return std::nullopt;
  const auto& [atoms, coefficient] = *terms.begin();
  monomial result{coefficient, 1};
  for (const auto& atom : atoms) {
    if (atom->is != dim_atom::kind::symbol) return std::nullopt;
    result.symbols = result.symbols * dim::from(atom);
  }
  return result;
}

// Returns true if the two sets have a symbol in common.
bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::ranges::any_of(a, [&](const std::string& symbol) { return b.contains(symbol); });
}

// The product of symbols that a kernel counts as rows.
struct row_count {
  dim rows;
  std::set<std::string> symbols;
};

// Returns the product of those symbols in `product` that count rows.
dim row_symbols(const dim& product, const row_count& count) {
  dim result = 1;
  if (product.is_static()) return result;
  const auto terms = product.terms();
  for (const auto& atom : terms.begin()->first)
    if (count.symbols.contains(atom->text)) result = result * dim::from(atom);
  return result;
}

// Returns the number of leading axes that count rows. Together they have rows * (the size of the last of them inside a
// row) elements. Only the last of these dims may have a size inside a row, because otherwise rows would not be
// contiguous. Returns 0 if the tensor has no rows, nullopt if its dims depend on the number of rows in another way.
std::optional<std::size_t> leading_axes(const shape& s, const row_count& count) {
  if (!has_rows(s, count.rows)) return 0;
  dim found = 1;
  for (std::size_t axis = 0; axis < s.rank(); ++axis) {
    const auto size = as_monomial(s.dims[axis]);
    if (!size) return std::nullopt;
    const dim here = row_symbols(size->symbols, count);
    found = found * here;
    if (found == count.rows) {
      const bool rest_is_inside = std::all_of(s.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, s.dims.end(),
                                              [&](const dim& d) { return !meet(d.symbols(), count.symbols); });
      return rest_is_inside ? std::optional(axis + 1) : std::nullopt;
    }
    if (size->coefficient != 1 || here != size->symbols) return std::nullopt;
  }
  return std::nullopt;
}

// An instruction whose result has rows on its leading `axes` axes.
struct row_step {
  const instruction& at;
  std::size_t axes;
  // Number of leading axes of each input; 0 if all rows read the same tensor.
  std::vector<std::size_t> inputs;

  const shape& input(std::size_t i) const { return at.inputs()[i].type(); }
  const shape& output() const { return at.outputs()[0]; }
  // Returns true if the input has the same rows as the output on the same axes.
  bool follows(std::size_t i) const {
    return i < inputs.size() && inputs[i] == axes &&
           std::equal(output().dims.begin(), output().dims.begin() + static_cast<std::ptrdiff_t>(axes),
                      input(i).dims.begin());
  }
  bool all_follow() const {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!follows(i)) return false;
    return !inputs.empty();
  }
  bool shared(std::size_t i) const { return i < inputs.size() && inputs[i] == 0; }
  // Returns true if the input has no rows and, right-aligned with the output as in a broadcast, is the same for every
  // row.
  bool same_for_all_rows(std::size_t i) const {
    const std::size_t missing = output().rank() - input(i).rank();
    for (std::size_t axis = missing; axis < axes; ++axis)
      if (input(i).dims[axis - missing] != dim(1)) return false;
    return shared(i);
  }
  bool inside_rows(std::int64_t axis, std::size_t input_number = 0) const {
    if (axis < 0) axis += static_cast<std::int64_t>(input(input_number).rank());
    return axis >= static_cast<std::int64_t>(axes);
  }
  bool inside_rows(const std::vector<std::int64_t>& list) const {
    return std::ranges::all_of(list, [this](std::int64_t axis) { return inside_rows(axis); });
  }
};

// One overload per operation: returns true if row i of the result depends only on row i of the operands.

bool keeps(const row_step& s, const elementwise&) { return s.all_follow(); }
bool keeps(const row_step& s, const convert&) { return s.all_follow(); }
bool keeps(const row_step& s, const bit_cast&) { return s.all_follow(); }

bool keeps(const row_step& s, const broadcast&) {
  return s.shared(0) ? s.same_for_all_rows(0) : s.input(0).rank() == s.output().rank() && s.follows(0);
}

// Rows are contiguous on both sides.
bool keeps(const row_step& s, const reshape&) { return !s.shared(0); }

bool keeps(const row_step& s, const transpose& op) {
  for (std::size_t axis = 0; axis < s.axes; ++axis)
    if (op.permutation[axis] != static_cast<std::int64_t>(axis)) return false;
  return s.follows(0);
}

bool keeps(const row_step& s, const slice& op) {
  for (std::size_t axis = 0; axis < s.axes; ++axis)
    if (op.starts[axis] != 0 || op.steps[axis] != 1) return false;
  return s.follows(0);
}

bool keeps(const row_step& s, const pad& op) {
  for (std::size_t axis = 0; axis < s.axes; ++axis)
    if (op.before[axis] != 0 || op.after[axis] != 0) return false;
  return s.follows(0);
}

bool keeps(const row_step& s, const concat& op) { return s.inside_rows(op.axis) && s.all_follow(); }

bool keeps(const row_step& s, const gather& op) {
  const bool of_rows = s.follows(0) && s.shared(1) && s.inside_rows(op.axis);
  const bool looked_up = s.shared(0) && s.follows(1) && op.axis == 0;
  return of_rows || looked_up;
}

bool keeps(const row_step& s, const gather_elements& op) { return s.all_follow() && s.inside_rows(op.axis); }

bool keeps(const row_step& s, const gather_nd& op) {
  const bool of_rows = s.all_follow() && op.batch_dims >= static_cast<std::int64_t>(s.axes);
  const bool looked_up = s.shared(0) && s.follows(1) && op.batch_dims == 0 && s.axes < s.input(1).rank();
  return of_rows || looked_up;
}

bool keeps(const row_step& s, const iota& op) { return op.axis >= static_cast<std::int64_t>(s.axes); }

bool keeps(const row_step& s, const resize& op) {
  for (std::size_t axis = 0; axis < s.axes; ++axis)
    if (op.scales[axis] != 0 && op.scales[axis] != 1) return false;
  return s.follows(0);
}

bool keeps(const row_step& s, const dot& op) {
  const std::size_t batch = s.output().rank() - 2;
  const bool products_of_rows = s.axes <= batch && s.all_follow();
  // The rows of the left operand are all multiplied by the same right operand.
  const bool rows_of_a = s.axes == batch + 1 && !op.transpose_a && s.follows(0) && s.shared(1);
  return products_of_rows || rows_of_a;
}

bool image_batch(const row_step& s) {
  if (s.axes != 1 || !s.follows(0)) return false;
  for (std::size_t i = 1; i < s.inputs.size(); ++i)
    if (!s.shared(i)) return false;
  return true;
}

bool keeps(const row_step& s, const convolution&) { return image_batch(s); }
bool keeps(const row_step& s, const transposed_convolution&) { return image_batch(s); }
bool keeps(const row_step& s, const pooling&) { return image_batch(s); }

bool keeps(const row_step& s, const reduce& op) { return s.follows(0) && s.inside_rows(op.axes); }
bool keeps(const row_step& s, const normalize& op) { return s.follows(0) && s.inside_rows(op.axes); }
bool keeps(const row_step& s, const arg_reduce& op) { return s.follows(0) && s.inside_rows(op.axis); }
bool keeps(const row_step& s, const softmax& op) { return s.follows(0) && s.inside_rows(op.axis); }
bool keeps(const row_step& s, const cumulative_sum& op) { return s.follows(0) && s.inside_rows(op.axis); }
bool keeps(const row_step& s, const top_k& op) { return s.follows(0) && s.inside_rows(op.axis); }

bool keeps(const row_step& s, const attention&) {
  const bool operands = s.follows(0) && s.follows(1) && s.follows(2) && s.axes + 3 <= s.output().rank();
  const bool mask =
      s.inputs.size() < 4 || s.same_for_all_rows(3) || (s.input(3).rank() == s.output().rank() && s.follows(3));
  return operands && mask;
}

bool keeps(const row_step& s, const scatter_elements& op) { return s.all_follow() && s.inside_rows(op.axis); }

template <class Op>
bool rule(const row_step& s) {
  const Op* op = s.at.op().get_if<Op>();
  return op && keeps(s, *op);
}

// Operations without an overload above mix rows (scatter_nd, segment_sum), or their leading axis is not independent
// (recurrent: time steps).
template <class... Ops>
bool any_rule(const row_step& s) {
  return (rule<Ops>(s) || ...);
}

bool keeps_rows(const row_step& s) {
  return any_rule<elementwise, convert, bit_cast, broadcast, reshape, transpose, slice, pad, concat, gather,
                  gather_elements, gather_nd, iota, resize, dot, convolution, transposed_convolution, pooling, reduce,
                  normalize, arg_reduce, softmax, cumulative_sum, top_k, attention, scatter_elements>(s);
}

// Returns the products of leading open dims that may count rows, the longest first.
std::vector<dim> candidates(const shape& s) {
  std::vector<dim> result;
  dim rows = 1;
  for (const dim& d : s.dims) {
    const auto size = as_monomial(d);
    if (!size) break;
    if (size->symbols.is_static()) {
      if (size->coefficient != 1) break;
      continue;
    }
    rows = rows * size->symbols;
    const std::size_t factors = rows.terms().begin()->first.size();
    // A symbol occurs more than once.
    if (rows.symbols().size() != factors) break;
    result.insert(result.begin(), rows);
    if (size->coefficient != 1) break;
  }
  return result;
}

bool keeps_rows(const instruction& i, const row_count& rows) {
  std::vector<std::size_t> inputs, outputs;
  for (value v : i.inputs()) {
    const auto axes = leading_axes(v.type(), rows);
    if (!axes) return false;
    inputs.push_back(*axes);
  }
  for (const shape& s : i.outputs()) {
    const auto axes = leading_axes(s, rows);
    if (!axes) return false;
    outputs.push_back(*axes);
  }
  const bool shared = std::ranges::all_of(outputs, [](std::size_t axes) { return axes == 0; });
  if (shared) return std::ranges::all_of(inputs, [](std::size_t axes) { return axes == 0; });
  if (i.op().is<parameter>()) return true;
  return std::ranges::count(outputs, outputs[0]) == static_cast<std::ptrdiff_t>(outputs.size()) &&
         keeps_rows(row_step{i, outputs[0], std::move(inputs)});
}

}  // namespace

bool has_rows(const shape& s, const dim& rows) {
  const auto symbols = rows.symbols();
  return std::ranges::any_of(s.dims, [&](const dim& d) { return !d.is_static() && meet(d.symbols(), symbols); });
}

std::optional<dim> independent_rows(const module& kernel) {
  if (kernel.outputs().empty()) return std::nullopt;
  for (const dim& rows : candidates(kernel.outputs()[0].type())) {
    const row_count count{rows, rows.symbols()};
    const bool all_outputs = std::ranges::all_of(kernel.outputs(), [&](value v) { return has_rows(v.type(), rows); });
    if (all_outputs &&
        std::ranges::all_of(kernel.instructions(), [&](const instruction& i) { return keeps_rows(i, count); }))
      return rows;
  }
  return std::nullopt;
}

void record_rows(program& p, const std::string& payload, const dim& rows) {
  p.metadata["rows:" + payload] = rows.str();
}

std::optional<dim> recorded_rows(const program& p, const std::string& payload) {
  const auto found = p.metadata.find("rows:" + payload);
  return found == p.metadata.end() ? std::nullopt : std::optional(dim::parse(found->second));
}

dim_bindings block_of_rows(const dim& rows, std::int64_t count, dim_bindings sizes) {
  for (const std::string& symbol : rows.symbols()) {
    sizes[symbol] = count;
    count = 1;
  }
  return sizes;
}

}  // namespace kiln
