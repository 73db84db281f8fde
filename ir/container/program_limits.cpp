#include "ir/container/program_limits.hpp"

#include <algorithm>
#include <unordered_map>

#include "ir/container/weights.hpp"
#include "ir/error.hpp"
#include "ir/ops/structure.hpp"

namespace kiln::container {
namespace {

// Symbolic dims are stored as text, so the text must be within the limit.
void check_text(const dim& d) {
  if (d.is_static()) return;
  const std::string text = d.str();
  if (text.size() > max_dim_text)
    throw error(error_kind::unsupported, "a dimension that takes " + std::to_string(text.size()) +
                                             " characters to write; at most " + std::to_string(max_dim_text) +
                                             " are supported");
  dim::parse(text);
}

[[noreturn]] void corrupted(const std::string& what) { throw error(error_kind::corrupted, what); }

// Computes how deeply the bodies of each module nest. The program is validated, so there are no cycles.
class depth_of_bodies {
 public:
  std::size_t of(const module& m, std::size_t above = 0) {
    if (above > max_body_depth) return above;
    if (auto found = known_.find(&m); found != known_.end()) return found->second;
    std::size_t deepest = 0;
    for (const instruction& i : m.instructions())
      for (const module* body : i.bodies()) deepest = std::max(deepest, 1 + of(*body, above + 1));
    return known_[&m] = deepest;
  }

 private:
  std::unordered_map<const module*, std::size_t> known_;
};

}  // namespace

void check_shape(const shape& type) {
  if (type.rank() > max_rank)
    corrupted("a tensor with " + std::to_string(type.rank()) + " dimensions; at most " + std::to_string(max_rank) +
              " are supported");
  if (type.is_static()) checked_bytes(type);
  for (const dim& d : type.dims)
    if (d.is_static() && d.value() < 0) corrupted("impossible tensor " + type.str());
}

void check_writable(const program& p) {
  auto refuse = [](const module& m, const instruction& i, const std::string& why) {
    const auto* input = i.op().get_if<parameter>();
    const std::string name = input                ? "input '" + input->name_in_module + "'"
                             : i.origin().empty() ? std::string(i.op().name()) + " in module '" + m.name() + "'"
                                                  : "'" + i.origin() + "'";
    throw error(error_kind::unsupported, name + ": " + why);
  };
  for (const dim_guard& g : p.guards) {
    check_text(g.a);
    check_text(g.b);
  }
  depth_of_bodies depth;
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions()) {
      try {
        for (const shape& type : i.outputs()) {
          check_shape(type);
          for (const dim& d : type.dims) check_text(d);
        }
        if (i.op().is<constant>()) continue;  // its only attribute is the hash of its bytes
        for (const auto& [field, value] : i.op().attributes())
          if (const auto* dims = std::get_if<std::vector<dim>>(&value)) std::ranges::for_each(*dims, check_text);
        for (const module* body : i.bodies())
          if (depth.of(*body) >= max_body_depth)
            corrupted("bodies nested more than " + std::to_string(max_body_depth) + " deep");
      } catch (const error& e) {
        refuse(m, i, e.what());
      }
    }
}

}  // namespace kiln::container
