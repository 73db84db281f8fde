#include "aot/passes/convert_precision.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "aot/passes/facts.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

// The largest finite number of f16 or bf16.
float largest(element_type type) { return type == element_type::f16 ? 65504.0f : 3.3895313892515355e38f; }

template <std::uint16_t (*Narrow)(float)>
std::vector<std::byte> narrowed_bytes(std::span<const float> values, float most) {
  std::vector<std::byte> bytes(values.size() * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = Narrow(std::isfinite(values[i]) ? std::clamp(values[i], -most, most) : values[i]);
    std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
  }
  return bytes;
}

literal converted(const literal& data, element_type type) {
  auto values = data.as<float>();
  float most = largest(type);
  return literal(data.type().with_type(type), type == element_type::f16 ? narrowed_bytes<f32_to_f16>(values, most)
                                                                        : narrowed_bytes<f32_to_bf16>(values, most));
}

// Finds instructions whose results only reach conversions to integers, through elementwise operations and movement.
std::unordered_set<const instruction*> integer_arithmetic(const module& m) {
  std::unordered_set<const instruction*> found;
  std::unordered_set<const instruction*> outputs;
  for (value v : m.outputs()) outputs.insert(v.producer);
  for (auto at = m.instructions().rbegin(); at != m.instructions().rend(); ++at) {
    const operation& op = at->op();
    bool simple = op.is<elementwise>() || op.is<convert>() || op.is<broadcast>() || op.is<reshape>() ||
                  op.is<slice>() || op.is<concat>() || op.is<iota>() || op.is<constant>();
    if (!simple || at->users().empty() || outputs.contains(&*at) || at->outputs()[0].type != element_type::f32)
      continue;
    if (std::all_of(at->users().begin(), at->users().end(), [&](const instruction* user) {
          const auto* c = user->op().get_if<convert>();
          return found.contains(user) || (c && is_integer(c->type));
        }))
      found.insert(&*at);
  }
  return found;
}

// Copies a module with its floats converted. Parameters and outputs of bodies get the converted type; those of the main
// module keep theirs.
class converter {
 public:
  converter(const module& from, module& to, element_type type, bool is_main,
            const std::unordered_map<const module*, module*>& bodies)
      : from_(from), to_(to), type_(type), is_main_(is_main), bodies_(bodies), exact_(integer_arithmetic(from)) {}

  void run() {
    for (const instruction& i : from_.instructions())
      if (i.op().is<parameter>()) copy_parameter(i);
    for (const instruction& i : from_.instructions())
      if (!i.op().is<parameter>()) copy(i);
    std::vector<value> outputs;
    for (value v : from_.outputs()) outputs.push_back(is_main_ ? as(mapped(v), v.type().type) : narrowed(v));
    to_.set_outputs(std::move(outputs), from_.output_names());
  }

 private:
  void copy_parameter(const instruction& i) {
    shape type = i.outputs()[0];
    if (!is_main_ && type.type == element_type::f32) type.type = type_;
    value made = to_.add_parameter(i.op().get_if<parameter>()->name_in_module, type);
    made.producer->set_origin(i.origin());
    copies_[&i] = {made};
  }

  value as(value v, element_type type) {
    if (v.type().type == type) return v;
    auto [found, fresh] = conversions_.try_emplace({v, type});
    if (fresh) {
      found->second = to_.add(convert{type}, {v});
      found->second.producer->set_origin(v.producer->origin());
    }
    return found->second;
  }

  value mapped(value v) { return copies_.at(v.producer)[v.index]; }
  value narrowed(value v) { return v.type().type == element_type::f32 ? as(mapped(v), type_) : mapped(v); }

  void copy(const instruction& i) {
    bool exact = exact_.contains(&i);
    bool to_integer =
        i.op().is<convert>() && is_integer(i.outputs()[0].type) && exact_.contains(i.inputs()[0].producer);
    std::vector<value> inputs;
    // A custom operator's kernel is compiled for its types, and outputs keep theirs.
    bool as_written = exact || to_integer || i.op().is<code_object>() || i.op().is<bounded>() ||
                      i.op().is<data_sizes>() || i.op().is<bit_cast>();
    for (value v : i.inputs()) inputs.push_back(as_written ? as(mapped(v), v.type().type) : narrowed(v));
    operation op = exact ? i.op() : changed(i.op());
    std::vector<module*> bodies;
    for (module* body : i.bodies()) bodies.push_back(bodies_.at(body));
    value made = i.op().is<constant>() ? to_.add_constant(op.get_if<constant>()->data)
                                       : to_.add(op, std::move(inputs), std::move(bodies));
    made.producer->set_origin(i.origin());
    for (std::uint32_t k = 0; k < i.outputs().size(); ++k) copies_[&i].push_back({made.producer, k});
  }

  operation changed(const operation& op) const {
    if (const auto* c = op.get_if<constant>(); c && c->data.type().type == element_type::f32)
      return constant{converted(c->data, type_)};
    if (const auto* c = op.get_if<convert>(); c && c->type == element_type::f32) return convert{type_};
    if (const auto* d = op.get_if<dot>(); d && d->type == element_type::f32) {
      dot narrow = *d;
      narrow.type = type_;
      return narrow;
    }
    return op;
  }

  const module& from_;
  module& to_;
  element_type type_;
  bool is_main_;
  const std::unordered_map<const module*, module*>& bodies_;
  std::unordered_set<const instruction*> exact_;
  std::unordered_map<const instruction*, std::vector<value>> copies_;
  std::map<std::pair<value, element_type>, value> conversions_;
};

// Sorts modules such that bodies come before their users.
void in_order(const module& m, std::unordered_set<const module*>& done, std::vector<const module*>& order) {
  if (!done.insert(&m).second) return;
  for (const instruction& i : m.instructions())
    for (const module* body : i.bodies()) in_order(*body, done, order);
  order.push_back(&m);
}

}  // namespace

bool convert_precision::apply(program& p) const {
  if (type != element_type::f16 && type != element_type::bf16)
    throw error(error_kind::unsupported,
                "cannot compile for " + std::string(kiln::name(type)) + "; only f16 and bf16 are supported");
  std::unordered_set<const module*> done;
  std::vector<const module*> order;
  in_order(p.main(), done, order);
  program result;
  std::unordered_map<const module*, module*> made;
  for (const module* m : order) {
    bool is_main = m == &p.main();
    made[m] = is_main ? &result.main() : &result.add_module(m->name());
    converter(*m, *made[m], type, is_main, made).run();
  }
  for (const auto& [hash, payload] : p.kernels()) result.add_kernel(hash, payload);
  result.symbols = p.symbols;
  result.guards = p.guards;
  result.metadata = p.metadata;
  p = std::move(result);
  return true;
}

}  // namespace kiln
