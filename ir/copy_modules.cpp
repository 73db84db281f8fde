#include "ir/copy_modules.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/invalid_shape.hpp"
#include "ir/nearest_name.hpp"
#include "ir/ops/choice.hpp"
#include "ir/ops/structure.hpp"

namespace kiln {
namespace {

// The sizes that an error is about, to follow its message: "; the sizes are batch = 3, seq = 7".
std::string sizes_text(const dim_bindings& sizes) {
  std::string text;
  for (const auto& [name, value] : sizes) text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(value);
  return text.empty() ? "" : "; the sizes are " + text;
}

dim_bindings sizes_of(const dim& d, const dim_bindings& sizes) {
  const auto symbols = d.symbols();
  dim_bindings in;
  for (const auto& [name, value] : sizes)
    if (symbols.contains(name)) in.emplace(name, value);
  return in;
}

std::string sizes_in(const dim& d, const dim_bindings& sizes) { return sizes_text(sizes_of(d, sizes)); }

// Dimensions in models with blocks or many strides are expressions of hundreds of characters, which say nothing to a
// reader.
std::string shortened(std::string text, std::size_t most) {
  if (text.size() > most) text.replace(most - 3, std::string::npos, "...");
  return text;
}

// The sizes that a guard does not allow. Begins with the model's dimension and its value, where there is only one and
// the guard compares expressions of it; one line that can be read.
std::string failed_guard(const dim_guard& guard, const dim_guard& bound, const dim_bindings& sizes) {
  constexpr std::size_t most_of_dim = 48, most_of_reason = 120;
  const dim_bindings in = sizes_of(guard.a - guard.b, sizes);
  const std::string a = guard.a.str(), b = guard.b.str();
  const std::string rule = "'" + shortened(a, most_of_dim) + "' = " + bound.a.str() + " and '" +
                           shortened(b, most_of_dim) + "' = " + bound.b.str() +
                           " must be equal: " + shortened(guard.why, most_of_reason);
  if (in.size() != 1 || std::max(a.size(), b.size()) <= most_of_dim) return "dimensions " + rule + sizes_text(in);
  return "dimension '" + in.begin()->first + "' = " + std::to_string(in.begin()->second) +
         " does not fit the model: dimensions " + rule;
}

// Copies the modules of `from` into `to`, whose main module must be empty, and substitutes `bindings`. A choice whose
// condition is a number for `decided` is replaced by the body it takes; bodies that are no longer used are not copied.
class module_copier {
 public:
  module_copier(const program& from, program& to, const dim_bindings& bindings, const dim_bindings& decided)
      : from_(from), to_(to), bindings_(bindings), decided_(decided) {}

  void run() {
    for (const module& m : from_.modules()) modules_[&m] = modules_.empty() ? &to_.main() : &to_.add_module(m.name());
    copy_module(from_.main());
    if (inlined_) to_.erase_unreachable_modules();
    else
      for (const module& m : from_.modules()) copy_module(m);
  }

 private:
  // The shapes of an instruction with bodies depend on the bodies, so copy those first. They may precede or follow
  // their users in the list.
  void copy_module(const module& m) {
    if (!done_.insert(&m).second) return;
    module& target = *modules_.at(&m);
    target.set_outputs(copy_instructions(m, target, nullptr), m.output_names());
  }

  // `arguments` are the values of the parameters if a body is inlined, otherwise null. Returns the outputs.
  std::vector<value> copy_instructions(const module& m, module& target, const std::vector<value>* arguments) {
    std::map<std::pair<const instruction*, std::uint32_t>, value> copies;
    auto copy_of = [&](value v) { return copies.at({v.producer, v.index}); };
    std::size_t parameters = 0;
    for (const instruction& i : m.instructions()) {
      std::vector<value> inputs, made;
      for (value v : i.inputs()) inputs.push_back(copy_of(v));
      // Skip constants: they have no symbols, and substitute() would hash their bytes.
      operation op = bindings_.empty() || i.op().is<constant>() ? i.op() : i.op().substitute(bindings_);
      const module* taken = taken_body(i);
      if (const auto* p = i.op().get_if<parameter>()) {
        made = {arguments ? arguments->at(parameters)
                          : target.add_parameter(p->name_in_module, i.outputs()[0].substitute(bindings_))};
        ++parameters;
      } else if (taken) {
        inlined_ = true;
        made = copy_instructions(*taken, target, &inputs);
      } else {
        std::vector<module*> bodies;
        for (const module* body : i.bodies()) {
          copy_module(*body);
          bodies.push_back(modules_.at(body));
        }
        value first = added(target, std::move(op), std::move(inputs), std::move(bodies), i.origin());
        for (std::uint32_t k = 0; k < i.outputs().size(); ++k) made.push_back({first.producer, k});
      }
      if (!bindings_.empty()) refuse_negative_sizes(i);
      if (!(taken || (arguments && i.op().is<parameter>()))) made[0].producer->set_origin(i.origin());
      for (std::uint32_t k = 0; k < i.outputs().size(); ++k) copies[{&i, k}] = made.at(k);
    }
    std::vector<value> outputs;
    for (value v : m.outputs()) outputs.push_back(copy_of(v));
    return outputs;
  }

  // Shape rules refuse negative sizes, but a kernel's shapes are not inferred again, so check them here.
  void refuse_negative_sizes(const instruction& i) const {
    for (const shape& type : i.outputs())
      for (const dim& d : type.dims) {
        const dim bound = d.is_static() ? d : d.substitute(bindings_);
        if (!bound.is_static() || bound.value() >= 0) continue;
        throw error(invalid_shape, (i.origin().empty() ? "" : "'" + i.origin() + "': ") + "dimension '" + d.str() +
                                       "' of " + type.str() + " = " + bound.str() + sizes_in(d, bindings_));
      }
  }

  // The body of a choice whose condition is known; null for any other instruction.
  const module* taken_body(const instruction& i) const {
    const auto* op = i.op().get_if<choice>();
    if (!op) return nullptr;
    const dim condition = op->condition.at(0).substitute(decided_);
    return condition.is_static() ? i.bodies()[condition.value() != 0 ? 0 : 1] : nullptr;
  }

  value added(module& target, operation op, std::vector<value> inputs, std::vector<module*> bodies,
              const std::string& origin) const try {
    return target.add(std::move(op), std::move(inputs), std::move(bodies));
  } catch (const error& e) {  // the bound dimensions violate this instruction's shape rule
    const bool broken = !bindings_.empty() && (e.kind() == error_kind::invalid_model || e.kind() == error_kind::usage);
    throw error(broken ? invalid_shape : e.kind(),
                (origin.empty() ? "" : "'" + origin + "': ") + e.what() + (broken ? sizes_text(bindings_) : ""));
  }

  const program& from_;
  program& to_;
  const dim_bindings &bindings_, &decided_;
  std::unordered_map<const module*, module*> modules_;
  std::unordered_set<const module*> done_;
  bool inlined_ = false;
};

}  // namespace

namespace {

[[noreturn]] void refuse_dimension(const std::string& name, const std::map<std::string, dim_range>& symbols) {
  std::vector<std::string_view> known;
  std::string list;
  for (const auto& [symbol, range] : symbols) {
    known.push_back(symbol);
    list += (list.empty() ? "'" : ", '") + symbol + "'";
  }
  throw error(error_kind::usage, "dimension '" + name + "': the model has " +
                                     (list.empty() ? "no open dimensions" : "only " + list) +
                                     did_you_mean(name, known));
}

}  // namespace

program program::clone() const { return bind({}); }

program program::bind(const dim_bindings& bindings) const {
  program result;
  for (const auto& [name, range] : symbols) {
    auto found = bindings.find(name);
    if (found == bindings.end()) {
      result.symbols.emplace(name, range);
      continue;
    }
    if (found->second < range.min || found->second > range.max)
      throw error(invalid_shape, "dimension '" + name + "' = " + std::to_string(found->second) + " is outside [" +
                                     std::to_string(range.min) + ", " + std::to_string(range.max) + "]");
  }
  for (const auto& [name, value] : bindings)
    if (!symbols.contains(name)) refuse_dimension(name, symbols);
  for (const dim_guard& g : guards) {
    dim_guard bound{g.a.substitute(bindings), g.b.substitute(bindings), g.why};
    if (bound.a == bound.b) continue;
    if ((bound.a - bound.b).is_static()) throw error(invalid_shape, failed_guard(g, bound, bindings));
    result.guards.push_back(std::move(bound));
  }
  module_copier(*this, result, bindings, bindings).run();
  result.kernels_ = kernels_;
  result.metadata = metadata;
  return result;
}

program decide_choices(const program& p, const dim_bindings& sizes) {
  program result;
  result.symbols = p.symbols;
  result.guards = p.guards;
  result.metadata = p.metadata;
  const dim_bindings none;
  module_copier(p, result, none, sizes).run();
  for (const auto& [hash, payload] : p.kernels()) result.add_kernel(hash, payload);
  return result;
}

}  // namespace kiln
