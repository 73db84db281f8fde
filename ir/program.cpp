#include "ir/program.hpp"

#include <algorithm>
#include <unordered_set>

#include "ir/error.hpp"

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

// clone() and bind() copy modules: ir/copy_modules.cpp.

}  // namespace kiln
