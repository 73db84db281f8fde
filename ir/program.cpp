#include "ir/program.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/error.hpp"
#include "ir/ops/structure.hpp"

namespace kiln {

program::program() { modules_.emplace_back("main"); }

module& program::add_module(std::string name) { return modules_.emplace_back(std::move(name)); }

void program::erase_unreachable_modules() {
  std::unordered_set<const module*> reached{&main()};
  std::vector<const module*> open{&main()};
  while (!open.empty()) {
    const module* m = open.back();
    open.pop_back();
    for (const instruction& i : m->instructions())
      for (const module* body : i.bodies())
        if (reached.insert(body).second) open.push_back(body);
  }
  modules_.remove_if([&](const module& m) { return !reached.contains(&m); });
}

content_hash program::add_kernel(std::vector<std::byte> payload) {
  content_hash hash = blake3(payload);
  kernels_.try_emplace(hash, std::make_shared<const std::vector<std::byte>>(std::move(payload)));
  return hash;
}

void program::add_kernel(const content_hash& hash, std::shared_ptr<const std::vector<std::byte>> payload) {
  kernels_.try_emplace(hash, std::move(payload));
}

std::span<const std::byte> program::kernel(const content_hash& hash) const {
  auto found = kernels_.find(hash);
  if (found == kernels_.end()) throw error(error_kind::corrupted, "the program has no kernel " + hash.hex());
  return *found->second;
}

void program::erase_unused_kernels() {
  std::unordered_set<content_hash> used;
  for (const module& m : modules_)
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>()) used.insert(content_hash::from_hex(c->payload));
  std::erase_if(kernels_, [&](const auto& entry) { return !used.contains(entry.first); });
}

namespace {

// Copies every module of `from` into `to`, whose main module must be empty, with `bindings` replaced.
void copy_modules(const program& from, program& to, const dim_bindings& bindings) {
  std::unordered_map<const module*, module*> modules;
  for (const module& m : from.modules()) modules[&m] = modules.empty() ? &to.main() : &to.add_module(m.name());
  // Bodies come after their users in the list or before; shapes of an instruction with bodies follow from them, so those first.
  std::unordered_set<const module*> done;
  auto copy = [&](auto&& self, const module& m) -> void {
    if (!done.insert(&m).second) return;
    std::unordered_map<const instruction*, instruction*> copies;
    auto map = [&](value v) { return value{copies.at(v.producer), v.index}; };
    module& target = *modules.at(&m);
    for (const instruction& i : m.instructions()) {
      std::vector<module*> bodies;
      for (const module* body : i.bodies()) {
        self(self, *body);
        bodies.push_back(modules.at(body));
      }
      std::vector<value> inputs;
      for (value v : i.inputs()) inputs.push_back(map(v));
      const auto* p = i.op().get_if<parameter>();
      value made;
      try {
        made = p ? target.add_parameter(p->name_in_module, i.outputs()[0].substitute(bindings))
                 : target.add(bindings.empty() ? i.op() : i.op().substitute(bindings), std::move(inputs), std::move(bodies));
      } catch (const error& e) {  // the dimensions do not suit this instruction
        throw error(e.kind(), (i.origin().empty() ? "" : "'" + i.origin() + "': ") + e.what());
      }
      made.producer->set_origin(i.origin());
      copies[&i] = made.producer;
    }
    std::vector<value> outputs;
    for (value v : m.outputs()) outputs.push_back(map(v));
    target.set_outputs(std::move(outputs), m.output_names());
  };
  for (const module& m : from.modules()) copy(copy, m);
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
      throw error(error_kind::usage, "dimension '" + name + "' = " + std::to_string(found->second) + " is outside [" + std::to_string(range.min) + ", " + std::to_string(range.max) + "]");
  }
  for (const auto& [name, value] : bindings)
    if (!symbols.contains(name)) throw error(error_kind::usage, "the model has no dimension '" + name + "'");
  copy_modules(*this, result, bindings);
  result.kernels_ = kernels_;
  result.metadata = metadata;
  return result;
}

}  // namespace kiln
