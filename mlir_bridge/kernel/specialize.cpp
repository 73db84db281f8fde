// Replaces symbolic dimensions by numbers. Values come from three sources. If a dimension of an input or output is
// given, the text of its expression has this value everywhere. Symbols and quotients that follow uniquely from such
// dimensions determine all expressions over them. All other dimensions are inferred by the shape rules from the
// operands. aot/kernels/fusion_module.cpp forms only kernels for which this is enough. Dimensions that are given as
// symbols stay open; a dimension that depends on them keeps those symbols only.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "ir/dim_atoms.hpp"
#include "ir/error.hpp"
#include "ir/invalid_shape.hpp"
#include "mlir_bridge/dialect/convert.hpp"
#include "mlir_bridge/kernel/origin_attributes.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

namespace kiln {
namespace {

// Returns the s >= 0 with expression(symbol = s) = target if there is exactly one. Dimensions increase monotonically
// with their symbols, so this is a bisection. A quotient by an expression that is 0 for some s is not solved.
std::optional<std::int64_t> solve(const dim& expression, const std::string& symbol, std::int64_t target) try {
  constexpr std::int64_t largest = std::int64_t{1} << 31;
  auto at = [&](std::int64_t s) { return expression.substitute({{symbol, s}}).value(); };
  std::int64_t low = 0, high = 1;
  while (high < largest && at(high) < target) high *= 2;
  while (low < high) {
    std::int64_t middle = low + (high - low) / 2;
    if (at(middle) < target) low = middle + 1;
    else high = middle;
  }
  if (at(low) != target || at(low + 1) == target) return std::nullopt;
  return low;
} catch (const error&) {
  return std::nullopt;
}

// Sizes that a model computes in floats are symbols in its kernels (aot/kernels/fusion_module.hpp). Finds out which
// expressions they are in shapes that are still open: which assignment of the expressions to the symbols makes the
// kernel's shapes the given ones. Returns nothing if there is none.
class named_sizes {
 public:
  void add(const shape& symbolic, const shape& given) {
    for (std::size_t i = 0; i < std::min(symbolic.rank(), given.rank()); ++i) {
      pairs_.emplace_back(symbolic.dims[i], given.dims[i]);
      for (const std::string& name : symbolic.dims[i].symbols()) names_.insert(name);
      given_.merge(given.dims[i].symbols());
      replace_atoms(given.dims[i], [&](const dim_atom& atom) -> std::optional<dim> {
        if (atom.is != dim_atom::kind::real) return std::nullopt;
        return sizes_.try_emplace(atom.text, with_operands(atom, atom.operands)).first->second;
      });
    }
  }

  std::map<std::string, dim> find() {
    std::vector<std::string> open;
    std::ranges::set_difference(names_, given_, std::back_inserter(open));
    constexpr std::size_t most = 6;  // all orders of them are tried
    std::map<std::string, dim> result;
    if (open.empty() || open.size() > sizes_.size() || sizes_.size() > most || !assign(open, 0, result)) return {};
    return result;
  }

 private:
  bool assign(const std::vector<std::string>& open, std::size_t index, std::map<std::string, dim>& result) {
    if (index == open.size())
      return std::ranges::all_of(pairs_, [&](const auto& pair) { return pair.first.replace(result) == pair.second; });
    for (const auto& [text, size] : sizes_) {
      if (std::ranges::any_of(result, [&](const auto& used) { return used.second == size; })) continue;
      result.insert_or_assign(open[index], size);
      if (assign(open, index + 1, result)) return true;
      result.erase(open[index]);
    }
    return false;
  }

  std::vector<std::pair<dim, dim>> pairs_;
  std::set<std::string> names_, given_;
  std::map<std::string, dim> sizes_;  // computed in floats, by the texts of the atoms
};

class dim_solver {
 public:
  // `named`: expressions for symbols that the given shapes do not have.
  explicit dim_solver(std::map<std::string, dim> named) : named_(std::move(named)) {}

  // Dims of `concrete` that are still symbolic say nothing.
  void learn(const shape& declared, const shape& concrete, std::string_view what) {
    const shape symbolic = with_names(declared);
    if (symbolic.type != concrete.type || symbolic.rank() != concrete.rank()) mismatch(symbolic, concrete, what);
    for (std::size_t i = 0; i < symbolic.rank(); ++i) {
      if (!concrete.dims[i].is_static()) continue;
      if (auto known = find(symbolic.dims[i])) {
        if (*known != concrete.dims[i].value()) mismatch(symbolic, concrete, what);
      } else {
        values_.emplace(symbolic.dims[i].str(), concrete.dims[i].value());
        open_.emplace_back(symbolic.dims[i], concrete.dims[i].value());
        solve_open();
      }
    }
  }

  std::optional<std::int64_t> find(const dim& d) const {
    if (d.is_static()) return d.value();
    dim rest = reduced(d);
    if (rest.is_static()) return rest.value();
    auto known = values_.find(d.str());
    return known == values_.end() ? std::nullopt : std::optional(known->second);
  }

  shape apply(const shape& declared) const {
    shape result{declared.type, {}};
    for (const dim& d : with_names(declared).dims) {
      auto known = find(d);
      result.dims.push_back(known ? dim(*known) : reduced(d));
    }
    return result;
  }

  [[noreturn]] void mismatch(const shape& symbolic, const shape& concrete, std::string_view what) const {
    throw error(error_kind::invalid_model,
                std::string(what) + " is " + concrete.str() + ", the kernel has " + apply(symbolic).str());
  }

 private:
  shape with_names(shape declared) const {
    if (!named_.empty())
      for (dim& d : declared.dims) d = d.replace(named_);
    return declared;
  }

  void solve_open() {
    for (bool progress = true; progress;) {
      progress = false;
      for (auto& [expression, target] : open_) {
        dim rest = reduced(expression);
        if (learn_atom(rest, target)) {
          progress = true;
          continue;
        }
        std::set<std::string> symbols = rest.symbols();
        if (symbols.size() != 1) continue;
        if (auto solution = solve(rest, *symbols.begin(), target))
          bindings_[*symbols.begin()] = *solution, progress = true;
      }
    }
    for (auto& [expression, target] : open_)
      if (dim rest = reduced(expression); rest.is_static() && rest.value() != target)
        throw error(error_kind::invalid_model, "the shapes contradict each other: " + expression.str() +
                                                   " would be both " + rest.str() + " and " + std::to_string(target));
  }

  // Substitutes known values for symbols and atoms (quotients, minima, maxima).
  dim reduced(const dim& d) const {
    dim total = 0;
    for (const auto& [atoms, coefficient] : d.substitute(bindings_).terms()) {
      dim product = coefficient;
      for (const auto& atom : atoms) product = product * reduced(atom);
      total = total + product;
    }
    return total;
  }

  // The operands of a minimum may contain a quotient whose value is known.
  dim reduced(const std::shared_ptr<const dim_atom>& atom) const {
    if (auto known = atoms_.find(atom->text); known != atoms_.end()) return known->second;
    std::vector<dim> operands;
    for (const dim& operand : atom->operands) {
      operands.push_back(reduced(operand));
      if (!operands.back().is_static()) return dim::from(atom);
    }
    if (atom->is == dim_atom::kind::symbol) return dim::from(atom);
    return with_operands(*atom, operands);
  }

  // rest = coefficient * atom + constant determines the atom.
  bool learn_atom(const dim& rest, std::int64_t target) {
    auto terms = rest.terms();
    if (rest.is_static() || terms.size() > 2 || (terms.size() == 2 && !terms.begin()->first.empty()) ||
        terms.rbegin()->first.size() != 1)
      return false;
    std::int64_t constant = terms.size() == 2 ? terms.begin()->second : 0, coefficient = terms.rbegin()->second;
    std::int64_t value = (coefficient < 0 ? dim(constant) - dim(target) : dim(target) - dim(constant)).value();
    coefficient = (coefficient < 0 ? dim(0) - dim(coefficient) : dim(coefficient)).value();
    if (value % coefficient != 0) return false;
    const dim_atom& atom = *terms.rbegin()->first[0];
    if (atom.is == dim_atom::kind::symbol && value < 0) return false;
    (atom.is == dim_atom::kind::symbol ? bindings_ : atoms_)[atom.text] = value / coefficient;
    return true;
  }

  std::map<std::string, dim> named_;
  std::map<std::string, std::int64_t> values_;
  // Keyed by the atom's text.
  dim_bindings atoms_;
  std::vector<std::pair<dim, std::int64_t>> open_;
  dim_bindings bindings_;
};

void learn_all(dim_solver& solver, llvm::ArrayRef<mlir::Type> symbolic, std::span<const shape> concrete,
               const std::string& what) {
  if (symbolic.size() != concrete.size())
    throw error(error_kind::invalid_model, "the kernel has " + std::to_string(symbolic.size()) + " " + what + "s, " +
                                               std::to_string(concrete.size()) + " were given");
  for (std::size_t i = 0; i < concrete.size(); ++i)
    solver.learn(dialect::to_shape(symbolic[i]), concrete[i], what + " " + std::to_string(i));
}

// Throws if a shape that is given with symbols is not the one that the kernel declares.
void check_symbols(const dim_solver& solver, llvm::ArrayRef<mlir::Type> symbolic, std::span<const shape> given) {
  for (std::size_t i = 0; i < given.size(); ++i)
    if (const shape declared = dialect::to_shape(symbolic[i]); solver.apply(declared) != given[i])
      solver.mismatch(declared, given[i], "input " + std::to_string(i));
}

void set_types(mlir::ValueRange values, std::span<const shape> types) {
  for (auto [v, type] : llvm::zip(values, types)) v.setType(dialect::to_mlir_type(v.getContext(), type));
}

// The shape rule of an operation. `sized`: the kernel had open dimensions, whose values the caller chose.
std::vector<shape> infer(const operation& op, std::span<const shape> inputs, bool sized) try {
  return op.infer(inputs);
} catch (const error& e) {
  if (sized && e.kind() == error_kind::invalid_model) throw error(invalid_shape, e.what());
  throw;
}

void retype(mlir::Operation& op, dim_solver& solver, bool open, bool sized) {
  std::vector<shape> declared = dialect::to_shapes(op.getResultTypes()), wanted;
  for (const shape& type : declared) wanted.push_back(solver.apply(type));
  // Fields that hold dims are taken from `wanted`. If one of them is still open, the inferred dims that depend on it
  // are open, too.
  std::vector<shape> inferred =
      infer(dialect::to_operation(&op, wanted), dialect::to_shapes(op.getOperandTypes()), sized);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (!inferred[i].is_static() && !open)
      throw error(error_kind::invalid_model, "the shapes leave " + inferred[i].str() + " (" +
                                                 op.getName().getStringRef().str() +
                                                 ") open: no input or output says what it is");
    solver.learn(declared[i], inferred[i], "the result of " + op.getName().getStringRef().str());
  }
  set_types(op.getResults(), inferred);
}

// Notes on the kernel, before it gets its sizes, what its generator needs to know of those that it had.
void keep_origin(dialect::KernelOp kernel) try {
  const shape result = dialect::to_shape(kernel.getResultTypes().back());
  if (result.rank() < 2 || result.dims[result.rank() - 2].is_static()) return;
  dim_bindings ones;
  const dim& rows = result.dims[result.rank() - 2];
  for (const std::string& symbol : rows.symbols()) ones[symbol] = 1;
  std::uint64_t static_inputs = 0;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (i < 64 && dialect::to_shape(type).is_static()) static_inputs |= std::uint64_t{1} << i;
  mlir::Builder builder(kernel.getContext());
  // There may be none where all symbols are 1, such as windows of an image of one pixel.
  const std::int64_t fewest = std::max<std::int64_t>(1, rows.substitute(ones).value());
  kernel->setAttr(fewest_rows_attribute, builder.getI64IntegerAttr(fewest));
  kernel->setAttr(static_inputs_attribute, builder.getI64IntegerAttr(static_cast<std::int64_t>(static_inputs)));
} catch (const error&) {
  // The number of rows has no value where all symbols are 1: a quotient by 0.
}

}  // namespace

void portable_kernel::specialize(std::span<const shape> inputs, std::span<const shape> outputs) {
  dialect::KernelOp kernel = impl_->kernel();
  const bool open = !std::ranges::all_of(inputs, &shape::is_static) || !std::ranges::all_of(outputs, &shape::is_static);
  if (open && std::ranges::equal(inputs, input_shapes()) && std::ranges::equal(outputs, output_shapes())) return;
  const bool sized = !std::ranges::all_of(input_shapes(), &shape::is_static);
  named_sizes named;
  if (open) {
    for (std::size_t i = 0; i < std::min(inputs.size(), input_shapes().size()); ++i)
      named.add(input_shapes()[i], inputs[i]);
    for (std::size_t i = 0; i < std::min(outputs.size(), output_shapes().size()); ++i)
      named.add(output_shapes()[i], outputs[i]);
  }
  dim_solver solver(named.find());
  learn_all(solver, kernel.getArgumentTypes(), inputs, "input");
  if (!outputs.empty()) learn_all(solver, kernel.getResultTypes(), outputs, "output");
  if (open) check_symbols(solver, kernel.getArgumentTypes(), inputs);

  if (!open && sized) keep_origin(kernel);
  mlir::Block& body = kernel.getBody().front();
  set_types(body.getArguments(), inputs);
  for (mlir::Operation& op : body.without_terminator())
    if (!llvm::isa<dialect::ConstantOp>(op)) retype(op, solver, open, sized);
  kernel.setFunctionType(
      mlir::FunctionType::get(kernel.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  if (auto result = output_shapes();
      !outputs.empty() && !std::equal(result.begin(), result.end(), outputs.begin(), outputs.end()))
    throw error(error_kind::internal, "a specialized kernel does not give the outputs that it was specialized for");
}

}  // namespace kiln
