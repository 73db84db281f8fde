#include "aot/passes/fuse_horizontally.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "aot/kernels/traits.hpp"
#include "aot/passes/facts.hpp"
#include "aot/passes/quantized_matrix.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/cancellation.hpp"

namespace kiln {
namespace {

// Upper bound on the bytes of joined weights. They are copies that stay in memory until the model is written.
constexpr std::size_t most_joined_bytes = std::size_t{1} << 30;

struct joined_axes {
  // The axis along which columns lie, in the weights and in the result.
  std::size_t weights, result;
};

// Returns the column axes of a product that can be joined with others; nullopt for any other instruction.
std::optional<joined_axes> axes_of(const instruction& at) {
  const auto* d = at.op().get_if<dot>();
  const auto* c = at.op().get_if<convolution>();
  if ((!d && !c) || !is_float(at.outputs()[0].type)) return std::nullopt;
  const value weights = at.inputs()[1];
  if (d && d->transpose_b && at.outputs()[0].rank() == 2 && read_quantized_matrix(weights)) return joined_axes{0, 1};
  if (!module::constant(weights) || !weights.type().is_static()) return std::nullopt;
  if (d) {
    if (weights.type().rank() != 2 || at.outputs()[0].rank() != 2) return std::nullopt;
    return joined_axes{d->transpose_b ? 0u : 1u, 1};
  }
  if (c->groups != 1 || c->layout != tensor_layout::channels_first) return std::nullopt;
  return joined_axes{0, 1};
}

// Products with equal keys can be joined: same operation, same operand, and weights of the same window and type.
std::string key_of(const instruction& at, joined_axes axes) {
  std::vector<dim> window = at.inputs()[1].type().dims;
  window[axes.weights] = 1;
  const value x = at.inputs()[0];
  std::string packing;
  if (const auto matrix = read_quantized_matrix(at.inputs()[1]))
    packing = std::string(name(matrix->elements.type().type)) + std::to_string(matrix->group) +
              (matrix->zero_points ? "z" : "");
  return at.op().str() + packing + shape{at.inputs()[1].type().type, window}.str() + std::to_string(x.index) + "/" +
         std::to_string(reinterpret_cast<std::uintptr_t>(x.producer));
}

// A value that exists once for each of the joined products and equals a slice of `whole`.
struct joined_value {
  value whole;
  std::vector<value> parts;
};

class fusion_of_products {
 public:
  fusion_of_products(module& m, place at, std::vector<instruction*> products, joined_axes axes)
      : m_(m), write_(m, at), products_(std::move(products)), axes_(axes) {
    for (const instruction* p : products_) lengths_.push_back(p->outputs()[0].dims[axes.result].value());
  }

  // Joins the products if this saves launches. Returns the number of saved launches, 0 if nothing changed.
  std::size_t apply() {
    plan();
    const std::size_t after = 1 + readers_that_need_a_launch();
    if (after >= products_.size()) return 0;
    build();
    return products_.size() - after;
  }

 private:
  // An elementwise operation that follows all of the products, or an addition of constants that follows at least the
  // first one.
  struct step {
    operation op;
    // For each operand: the index of a joined value, or -1 and one constant per product (null means zeros).
    std::vector<int> operands = {};
    std::vector<std::vector<value>> constants = {};
    // The results, one for each product.
    std::vector<value> results = {};
  };

  int find(std::size_t part, value v) const {
    for (std::size_t i = values_.size(); i-- > 0;)
      if (values_[i][part] == v) return static_cast<int>(i);
    return -1;
  }

  value column_constant(value v) const {
    if (!is_constant_like(v) || v.type().rank() != products_[0]->outputs()[0].rank()) return {};
    const value source = along_one_axis(v, axes_.result);
    return source && source.type().is_static() ? source : value{};
  }

  // Returns the step that `user` of the first product begins, together with the corresponding operations of the other
  // products. Returns nullopt if one has no such operation.
  std::optional<step> step_of(instruction* user) {
    if (!user->op().is<elementwise>() || user->outputs().size() != 1) return std::nullopt;
    step made{.op = user->op(), .results = {user->output()}};
    for (value input : user->inputs()) {
      const int number = find(0, input);
      const value data = number < 0 ? column_constant(input) : value{};
      if (number < 0 && !data) return std::nullopt;
      made.operands.push_back(number);
      made.constants.push_back({data});
    }
    for (std::size_t part = 1; part < products_.size(); ++part)
      if (!add_partner(made, part)) return std::nullopt;
    return made;
  }

  bool add_partner(step& made, std::size_t part) {
    const auto first = std::ranges::find_if(made.operands, [](int number) { return number >= 0; });
    const value begin = values_[static_cast<std::size_t>(*first)][part];
    for (instruction* user : begin.producer->users()) {
      if (!(user->op() == made.op)) continue;
      std::vector<value> data(made.operands.size());
      bool same = true;
      for (std::size_t k = 0; same && k < data.size(); ++k) {
        const value input = user->inputs()[k];
        if (made.operands[k] >= 0) same = values_[static_cast<std::size_t>(made.operands[k])][part] == input;
        else same = static_cast<bool>(data[k] = column_constant(input));
      }
      if (!same) continue;
      for (std::size_t k = 0; k < data.size(); ++k) made.constants[k].push_back(data[k]);
      made.results.push_back(user->output());
      return true;
    }
    return add_zeros(made, begin);
  }

  // If some products have a bias and this one has none, adds zeros as its bias. In attention, keys often have no bias.
  static bool add_zeros(step& made, value part) {
    const auto* e = made.op.get_if<elementwise>();
    if (!e || e->function != scalar_function::add || made.operands.size() != 2) return false;
    if (made.operands[0] >= 0 && made.operands[1] >= 0) return false;
    for (auto& data : made.constants) data.push_back({});
    made.results.push_back(part);
    return true;
  }

  // Collects steps for as long as the same operation follows all products.
  void plan() {
    values_.emplace_back();
    for (instruction* p : products_) values_[0].push_back(p->output());
    for (std::size_t i = 0; i < values_.size(); ++i)
      for (instruction* user : std::vector<instruction*>(values_[i][0].producer->users())) {
        if (find(0, user->output()) >= 0) continue;
        if (auto next = step_of(user)) {
          values_.push_back(next->results);
          steps_.push_back(*std::move(next));
        }
      }
  }

  bool is_joined(const instruction* user) const {
    return std::ranges::any_of(steps_, [&](const step& s) {
      return std::ranges::any_of(s.results, [&](value r) { return r.producer == user; });
    });
  }

  // Returns the number of readers that need a launch of their own: those that must read memory, and operations in front
  // of them.
  std::size_t readers_that_need_a_launch() const {
    std::set<const instruction*> readers, seen;
    for (const auto& parts : values_)
      for (value part : parts) {
        if (std::ranges::find(m_.outputs(), part) != m_.outputs().end()) readers.insert(part.producer);
        for (instruction* user : part.producer->users())
          if (!is_joined(user)) visit(part, user, true, seen, readers);
      }
    return readers.size();
  }

  // `moved_only` is true if nothing is computed between the product's part and `v`.
  void visit(value v, instruction* user, bool moved_only, std::set<const instruction*>& seen,
             std::set<const instruction*>& readers) const {
    if (role_of(user->op()) == kernel_role::inlinable) {
      // A concat or gather is a separate kernel in any case.
      if (!keeps_indices(user->op()) && is_irregular(user->op()) && !user->op().is<transpose>()) return;
      if (!seen.insert(user).second) return;
      const bool moves = moved_only && !keeps_indices(user->op());
      if (std::ranges::find(m_.outputs(), user->output()) != m_.outputs().end()) readers.insert(user);
      for (instruction* next : user->users()) visit(user->output(), next, moves, seen, readers);
      return;
    }
    for (std::size_t k = 0; k < user->inputs().size(); ++k)
      if (user->inputs()[k] == v && operand_reads(user->op(), k) == 0 &&
          !(moved_only && reads_views(user->op(), k, v.producer->op())))
        readers.insert(user);
  }

  value joined_weights() {
    if (!module::constant(products_[0]->inputs()[1])) {
      std::vector<quantized_matrix> matrices;
      for (const instruction* p : products_) matrices.push_back(*read_quantized_matrix(p->inputs()[1]));
      const quantized_matrix whole = joined_rows(matrices);
      return add_quantized_matrix(m_, products_[0], whole, {whole.rows, whole.depth});
    }
    std::vector<literal> weights;
    for (const instruction* p : products_) weights.push_back(*module::constant(p->inputs()[1]));
    const concat along{static_cast<std::int64_t>(axes_.weights)};
    return write_.constant(std::move(along.evaluate(weights)[0]));
  }

  void build() {
    std::vector<value> whole{write_.add(products_[0]->op(), {products_[0]->inputs()[0], joined_weights()})};
    for (const step& s : steps_) {
      std::vector<value> operands;
      for (std::size_t k = 0; k < s.operands.size(); ++k)
        operands.push_back(s.operands[k] >= 0 ? whole[static_cast<std::size_t>(s.operands[k])]
                                              : joined_constants(s.constants[k], whole[0].type()));
      whole.push_back(write_.add(s.op, std::move(operands)));
    }
    // Replace the last values first: a part to which a zero bias was added appears in two rows, and its readers must
    // get the later one.
    for (std::size_t i = whole.size(); i-- > 0;) replace_parts(values_[i], whole[i]);
  }

  // Concatenates one constant per product to one value for each column of the joined product.
  value joined_constants(const std::vector<value>& parts, const shape& type) {
    std::vector<double> numbers;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<double> part = parts[i] ? evaluate_constant_like(parts[i]).to_doubles() : std::vector<double>{0};
      part.resize(static_cast<std::size_t>(lengths_[i]), part[0]);
      numbers.insert(numbers.end(), part.begin(), part.end());
    }
    std::vector<dim> dims(type.rank() - axes_.result, dim(1));
    dims[0] = static_cast<std::int64_t>(numbers.size());
    const element_type element = parts[0].type().type;
    return write_.broadcast_to(write_.constant(literal::from_doubles({element, dims}, numbers)), type.dims);
  }

  void replace_parts(const std::vector<value>& parts, value whole) {
    const std::size_t rank = whole.type().rank();
    slice part{std::vector<std::int64_t>(rank, 0), whole.type().dims, std::vector<std::int64_t>(rank, 1)};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      part.lengths[axes_.result] = lengths_[i];
      const bool read_outside =
          std::ranges::any_of(parts[i].producer->users(), [&](const instruction* user) { return !is_joined(user); }) ||
          std::ranges::find(m_.outputs(), parts[i]) != m_.outputs().end();
      if (read_outside) m_.replace(parts[i], write_.add(part, {whole}));
      part.starts[axes_.result] += lengths_[i];
    }
  }

  module& m_;
  rewriter write_;
  std::vector<instruction*> products_;
  joined_axes axes_;
  std::vector<std::int64_t> lengths_;
  // The joined values: first the products, then the results of the steps.
  std::vector<std::vector<value>> values_;
  std::vector<step> steps_;
};

}  // namespace

bool fuse_horizontally::apply(module& m) const {
  std::map<std::string, std::vector<instruction*>> groups;
  std::map<const instruction*, place> places;
  std::vector<std::string> order;
  for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
    auto axes = axes_of(*here);
    if (!axes || !m.has_uses(&*here)) continue;
    const std::string key = key_of(*here, *axes);
    auto [group, fresh] = groups.try_emplace(key);
    if (fresh) order.push_back(key);
    group->second.push_back(&*here);
    places[&*here] = here;
  }
  bool changed = false;
  for (const std::string& key : order) {
    check_stop();
    const std::vector<instruction*>& products = groups.at(key);
    if (products.size() < 2) continue;
    const std::string origin = products[0]->origin();
    std::size_t bytes = 0;
    for (const instruction* p : products) bytes += p->inputs()[1].type().bytes();
    if (bytes > most_joined_bytes) {
      if (log) log->refused(name(), "the joined weights would take too much memory", origin);
      continue;
    }
    const double read_once = estimated_elements(products[0]->inputs()[0].type()) *
                             static_cast<double>(storage_bits(products[0]->inputs()[0].type().type)) / 8;
    const std::size_t saved = fusion_of_products(m, places.at(products[0]), products, *axes_of(*products[0])).apply();
    if (log && saved == 0) log->refused(name(), "reading the parts would take as many launches as it saves", origin);
    if (log && saved > 0)
      log->fired(name(), products[0]->op().name(), origin, {0, read_once * static_cast<double>(products.size() - 1)});
    changed |= saved > 0;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
