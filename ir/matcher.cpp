#include "ir/matcher.hpp"

#include <algorithm>

#include "ir/error.hpp"
#include "ir/ops/structure.hpp"

namespace kiln::match {

value captures::find(std::string_view name) const {
  for (const auto& [key, v] : entries_)
    if (key == name) return v;
  return {};
}

value captures::operator[](std::string_view name) const {
  value v = find(name);
  if (!v) throw error(error_kind::internal, "the pattern captures nothing named '" + std::string(name) + "'");
  return v;
}

bool matcher::operator()(value v, captures& found) const {
  std::size_t mark = found.mark();
  if (test_(v, found)) return true;
  found.rewind(mark);
  return false;
}

matcher matcher::as(std::string name) const {
  return matcher(
      [self = *this, name = std::move(name)](value v, captures& found) {
        if (!self(v, found)) return false;
        found.set(name, v);
        return true;
      },
      operations_);
}

matcher matcher::when(std::function<bool(value)> predicate) const {
  return matcher([self = *this, predicate = std::move(predicate)](
                     value v, captures& found) { return self(v, found) && predicate(v); },
                 operations_);
}

matcher matcher::single_use() const {
  return when([](value v) { return v.producer->users().size() == 1; });
}

matcher matcher::inputs(std::vector<matcher> operands) const {
  return matcher(
      [self = *this, operands = std::move(operands)](value v, captures& found) {
        if (!self(v, found)) return false;
        const auto& inputs = v.producer->inputs();
        if (inputs.size() != operands.size()) return false;
        for (std::size_t i = 0; i < inputs.size(); ++i)
          if (!operands[i](inputs[i], found)) return false;
        return true;
      },
      operations_);
}

matcher matcher::commuted(matcher a, matcher b) const {
  return matcher(
      [self = *this, a = std::move(a), b = std::move(b)](value v, captures& found) {
        if (!self(v, found)) return false;
        const auto& inputs = v.producer->inputs();
        if (inputs.size() != 2) return false;
        std::size_t mark = found.mark();
        if (a(inputs[0], found) && b(inputs[1], found)) return true;
        found.rewind(mark);
        return a(inputs[1], found) && b(inputs[0], found);
      },
      operations_);
}

matcher any() {
  return matcher([](value, captures&) { return true; });
}

matcher constant() {
  return matcher([](value v, captures&) { return v.producer->op().is<kiln::constant>(); }, {kiln::constant().name()});
}

matcher same(std::string name) {
  return matcher([name = std::move(name)](value v, captures& found) { return found.find(name) == v; });
}

matcher either(std::vector<matcher> ways) {
  std::vector<std::string_view> operations;
  for (const matcher& way : ways) operations.insert(operations.end(), way.operations().begin(), way.operations().end());
  if (std::ranges::any_of(ways, [](const matcher& way) { return way.operations().empty(); })) operations.clear();
  return matcher(
      [ways = std::move(ways)](value v, captures& found) {
        for (const matcher& way : ways)
          if (way(v, found)) return true;
        return false;
      },
      std::move(operations));
}

matcher function(scalar_function f) {
  auto is_function = [f](value v, captures&) {
    const auto* e = v.producer->op().get_if<elementwise>();
    return e && e->function == f;
  };
  return matcher(is_function, {elementwise{f}.name()});
}

}  // namespace kiln::match
