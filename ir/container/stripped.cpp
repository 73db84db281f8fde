#include "ir/container/stripped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "ir/error.hpp"
#include "ir/ops/structure.hpp"

namespace kiln {

program without_weights(const program& p) {
  program copy = p.clone();
  std::size_t most = 0;
  for (const module& m : copy.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<constant>()) most = std::max(most, c->data.bytes().size());
  const auto zeros = std::make_shared<std::vector<std::byte>>(most);
  for (module& m : copy.modules())
    for (instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<constant>()) {
        const shape type = c->data.type();
        const auto bytes = std::span<const std::byte>(*zeros).first(c->data.bytes().size());
        m.set_operation(&i, constant{literal(type, bytes, zeros)});
      }
  return copy;
}

std::string structural_difference(const program& stripped, const program& other) {
  const auto guards = [](const program& p) {
    std::string text;
    for (const dim_guard& g : p.guards) text += fmt::format("guard {} = {}\n", g.a.str(), g.b.str());
    for (const auto& [name, range] : p.symbols) text += fmt::format("{} from {} to {}\n", name, range.min, range.max);
    return text;
  };
  std::istringstream first(stripped.str() + guards(stripped));
  const program zeros = without_weights(other);
  std::istringstream second(zeros.str() + guards(zeros));
  std::string a, b;
  while (true) {
    const bool more_a = static_cast<bool>(std::getline(first, a)), more_b = static_cast<bool>(std::getline(second, b));
    if (!more_a && !more_b) return "";
    if (!more_a || !more_b) return more_a ? fmt::format("'{}' is missing", a) : fmt::format("'{}' is new", b);
    if (a != b) return fmt::format("'{}' was '{}'", b, a);
  }
}

void require_weights(const program& p, const std::filesystem::path& file) {
  if (p.metadata.contains(stripped_weights_key))
    throw error(error_kind::unsupported,
                fmt::format("{}: its weights were stripped; give it weights with kiln refit {} --weights MODEL.onnx -o "
                            "MODEL.kiln, or run it with --weights MODEL.onnx",
                            file.string(), file.string()));
}

}  // namespace kiln
