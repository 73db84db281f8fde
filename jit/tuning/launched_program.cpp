#include "jit/tuning/launched_program.hpp"

#include <unordered_map>

#include "ir/ops/structure.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_bounded_elements = 16;

}  // namespace

std::string launched_program_hash(const program& native) {
  field_hasher hash;
  hash.add("kiln launched program");
  for (const module& m : native.modules()) {
    hash.add(m.name());
    std::unordered_map<const instruction*, std::int64_t> number;
    auto add = [&](value v) { hash.add(number.at(v.producer)).add(static_cast<std::int64_t>(v.index)); };
    for (const instruction& i : m.instructions()) {
      number.emplace(&i, static_cast<std::int64_t>(number.size()));
      if (const auto* c = i.op().get_if<constant>()) {
        hash.add("constant");
        if (c->data.type().element_count() <= most_bounded_elements) hash.add(c->data.bytes());
      } else {
        hash.add(i.op().str());
      }
      hash.add(static_cast<std::int64_t>(i.inputs().size()));
      for (value v : i.inputs()) add(v);
      for (const module* body : i.bodies()) hash.add(body->name());
      for (const shape& s : i.outputs()) hash.add(s.str());
    }
    hash.add("return");
    for (value v : m.outputs()) add(v);
  }
  return hash.finish().hex();
}

}  // namespace kiln
