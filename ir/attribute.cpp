#include "ir/attribute.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

struct printer {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  // The shortest text that parses back to the same value.
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(const std::string& v) const { return v; }
  std::string operator()(element_type v) const { return std::string(name(v)); }
  std::string operator()(const dim& v) const { return v.str(); }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::string text = "[";
    for (std::size_t i = 0; i < list.size(); ++i) text += (i ? ", " : "") + (*this)(list[i]);
    return text + "]";
  }
};

}  // namespace

std::string str(const attribute& value) { return std::visit(printer{}, value); }

}  // namespace kiln
