#include "aot/kernels/fusion_module.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "aot/kernels/traits.hpp"
#include "aot/passes/facts.hpp"
#include "ir/dim_atoms.hpp"

namespace kiln {
namespace {

// Determines which dims can be computed from the shapes of a kernel's parameters and outputs, with the same rules as
// the finalizer (mlir_bridge/kernel/specialize.cpp).
class told_dims {
 public:
  void add(const shape& type) { whole_.insert(whole_.end(), type.dims.begin(), type.dims.end()); }

  void solve() {
    for (std::size_t before = known_.size() + 1; before != known_.size();) {
      before = known_.size();
      for (const dim& d : whole_)
        if (const dim_atom* told = told_by(d)) known_.insert(told->text);
    }
  }

  bool has(const dim& d) const { return std::ranges::find(whole_, d) != whole_.end() || unknown(d).empty(); }

 private:
  // Returns the only unknown atom of the dim, if the value of the dim determines it: the atom occurs in exactly one
  // term, or it is a symbol in which the dim is monotonically increasing.
  const dim_atom* told_by(const dim& d) const {
    auto open = unknown(d);
    if (open.size() != 1) return nullptr;
    const dim_atom* atom = open.begin()->second;
    bool grows = atom->is == dim_atom::kind::symbol;
    std::size_t uses = 0;
    const auto terms = d.terms();
    for (const auto& [atoms, coefficient] : terms) {
      uses +=
          static_cast<std::size_t>(std::ranges::count_if(atoms, [&](const auto& a) { return a->text == atom->text; }));
      grows &= coefficient > 0 || atoms.empty();
      for (const auto& a : atoms) grows &= a->is == dim_atom::kind::symbol;
    }
    return uses == 1 || grows ? atom : nullptr;
  }

  bool is_known(const dim_atom& atom) const {
    if (known_.contains(atom.text)) return true;
    return atom.is != dim_atom::kind::symbol &&
           std::ranges::all_of(atom.operands, [&](const dim& d) { return unknown(d).empty(); });
  }

  // The atoms are owned by the dims of whole_ and of the kernel.
  std::map<std::string, const dim_atom*> unknown(const dim& d) const {
    std::map<std::string, const dim_atom*> open;
    const auto terms = d.terms();
    for (const auto& [atoms, coefficient] : terms)
      for (const auto& atom : atoms)
        if (!is_known(*atom)) open.emplace(atom->text, atom.get());
    return open;
  }

  std::vector<dim> whole_;
  std::set<std::string> known_;  // by the texts of the atoms
};

// Names the sizes that a model computes in floats: to a kernel they are symbols, whose values come from the shapes of
// its parameters and outputs.
class computed_sizes {
 public:
  dim operator()(const dim& d) {
    return replace_atoms(d, [&](const dim_atom& atom) -> std::optional<dim> {
      if (atom.is != dim_atom::kind::real) return std::nullopt;
      const std::string name(std::string(computed_prefix) + std::to_string(names_.size()));
      return names_.try_emplace(atom.text, dim::symbol(name)).first->second;
    });
  }
  shape operator()(shape s) {
    for (dim& d : s.dims) d = (*this)(d);
    return s;
  }
  operation operator()(const operation& op) {
    if (op.is<constant>()) return op;
    attribute_list fields = op.attributes();
    bool changed = false;
    for (auto& field : fields)
      if (auto* dims = std::get_if<std::vector<dim>>(&field.second))
        for (dim& d : *dims)
          if (dim named = (*this)(d); named != d) d = named, changed = true;
    return changed ? make_operation(op.name(), fields) : op;
  }

 private:
  std::map<std::string, dim> names_;  // by the texts of the atoms
};

class copier {
 public:
  copier(const partition& whole, std::size_t index) : whole_(whole), index_(index) {
    made_.body = std::make_unique<module>("kernel");
  }

  fusion_copy run() {
    const fusion& source = whole_.fusions[index_];
    for (value v : source.outputs) find_parameters(v);
    std::vector<value> outputs;
    std::vector<std::string> names;
    for (value v : source.outputs) {
      names.push_back("o" + std::to_string(outputs.size()));
      outputs.push_back(copy(v));
    }
    made_.body->set_outputs(std::move(outputs), std::move(names));
    made_.symbol = symbol();
    find_untold();
    return std::move(made_);
  }

 private:
  bool is_member(value v) const {
    auto found = whole_.owner.find(v.producer);
    return found != whole_.owner.end() && found->second == index_;
  }

  // Whether the value comes from outside, i.e. is in memory when the kernel starts.
  bool is_outside(value v) const {
    const operation& op = v.producer->op();
    if (is_member(v)) return false;
    if (whole_.owner.contains(v.producer) || role_of(op) == kernel_role::structure ||
        whole_.in_memory.contains(v.producer))
      return true;
    return op.is<reshape>() && is_outside(v.producer->inputs()[0]);  // an alias is cheaper than index arithmetic
  }

  static bool is_scalar_constant(value v) {
    const literal* data = module::constant(v);
    return data && data->splat().has_value();
  }

  // `memory`: the anchor needs this operand as a tensor in memory.
  bool is_parameter(value v, bool memory) const { return is_outside(v) && (memory || !is_scalar_constant(v)); }

  bool needs_memory(const instruction& user, std::size_t operand) const {
    return role_of(user.op()) == kernel_role::anchor && operand_reads(user.op(), operand) == 0;
  }

  void find_parameters(value v, bool memory = false) {
    memory &= !is_member(v);
    if (!met_.insert({v, memory}).second) return;
    if (is_parameter(v, memory)) {
      if (copies_.contains({v, memory})) return;
      value p = made_.body->add_parameter("p" + std::to_string(made_.arguments.size()), computed_(v.type()));
      made_.arguments.push_back(v);
      copies_[{v, false}] = copies_[{v, true}] = p;
      return;
    }
    if (is_outside(v)) return;
    for (std::size_t k = 0; k < v.producer->inputs().size(); ++k)
      find_parameters(v.producer->inputs()[k], needs_memory(*v.producer, k));
  }

  value copy(value v, bool memory = false) {
    memory &= !is_member(v);  // the kernel computes its members once
    if (auto found = copies_.find({v, memory}); found != copies_.end()) return found->second;
    value made = is_outside(v) ? copy_scalar(v) : copy_instruction(v);
    for (std::uint32_t i = 0; i < v.producer->outputs().size(); ++i)
      copies_[{{v.producer, i}, memory}] = value{made.producer, is_outside(v) ? 0 : i};
    return copies_.at({v, memory});
  }

  value copy_scalar(value v) {
    const literal& data = *module::constant(v);
    auto first = data.bytes().first(storage_bytes(data.type().type, 1));
    value scalar =
        made_.body->add_constant(literal({data.type().type, {}}, std::vector<std::byte>(first.begin(), first.end())));
    return v.type().rank() == 0 ? scalar : made_.body->add(broadcast{computed_(v.type()).dims}, {scalar});
  }

  value copy_instruction(value v) {
    const instruction& at = *v.producer;
    std::vector<value> inputs;
    for (std::size_t k = 0; k < at.inputs().size(); ++k) inputs.push_back(copy(at.inputs()[k], needs_memory(at, k)));
    if (!at.origin().empty() &&
        std::find(made_.origins.begin(), made_.origins.end(), at.origin()) == made_.origins.end())
      made_.origins.push_back(at.origin());
    value made = made_.body->add(computed_(at.op()), std::move(inputs));
    sources_.emplace_back(made.producer, &at);
    return made;
  }

  // Finds the instructions that introduce underivable dims, for example a broadcast of a scalar that is only summed.
  void find_untold() {
    told_dims told;
    for (value v : made_.body->parameters()) told.add(v.type());
    for (value v : made_.body->outputs()) told.add(v.type());
    told.solve();
    auto open = [&](const shape& type) {
      return !std::ranges::all_of(type.dims, [&](const dim& d) { return told.has(d); });
    };
    for (auto [copy, source] : sources_)
      if (std::ranges::any_of(copy->outputs(), open) &&
          std::ranges::none_of(copy->inputs(), [&](value v) { return open(v.type()); }))
        made_.untold.push_back(source);
  }

  std::string symbol() const {
    constexpr std::size_t longest = 60;
    std::string text;
    bool anchored = false;
    std::size_t left_out = 0;
    for (const instruction& i : made_.body->instructions()) {
      anchored |= role_of(i.op()) == kernel_role::anchor;
      if (role_of(i.op()) == kernel_role::structure || i.op().is<broadcast>() || i.op().is<reshape>()) continue;
      if (text.size() + i.op().name().size() > longest) {
        ++left_out;
        continue;
      }
      text += (text.empty() ? "" : "_") + std::string(i.op().name());
    }
    if (left_out) text += "_and_" + std::to_string(left_out);
    if (text.empty()) text = "broadcast";
    // Without an anchor the name gets a prefix ("map_exp"), so that a kernel does not hide a function of the C library.
    return anchored ? text : "map_" + text;
  }

  const partition& whole_;
  std::size_t index_;
  fusion_copy made_;
  computed_sizes computed_;
  std::map<std::pair<value, bool>, value> copies_;
  std::set<std::pair<value, bool>> met_;
  std::vector<std::pair<const instruction*, const instruction*>> sources_;  // pairs of a copy and its source
};

}  // namespace

fusion_copy copy_fusion(const partition& whole, std::size_t index) { return copier(whole, index).run(); }

}  // namespace kiln
