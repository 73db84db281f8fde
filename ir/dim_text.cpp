// Prints and parses dims: "2*seq+1", "floor(batch/2)", "min(512,seq)". No spaces.
#include <cctype>
#include <charconv>

#include "ir/dim.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

// Recursive descent over: sum = product (('+'|'-') product)*, product = factor ('*' factor)*,
// factor = ['-'] number | symbol | floor(sum/sum) | min(sum,sum,...) | max(sum,sum,...) | floor32(sum,...:steps).
class parser {
 public:
  explicit parser(std::string_view text) : text_(text) {}

  dim whole() {
    dim result = sum();
    if (at_ != text_.size()) fail();
    return result;
  }

 private:
  [[noreturn]] void fail() const {
    throw error(error_kind::corrupted, "not a dimension: '" + std::string(text_) + "'");
  }
  bool take(char c) {
    if (at_ < text_.size() && text_[at_] == c) return ++at_, true;
    return false;
  }
  dim sum() {
    if (++depth_ > 64) fail();
    dim result = product();
    for (;;) {
      if (take('+')) result = result + product();
      else if (take('-')) result = result - product();
      else break;
    }
    --depth_;
    return result;
  }
  dim product() {
    dim result = factor();
    while (take('*')) result = result * factor();
    return result;
  }
  std::int64_t number() {
    std::int64_t value = 0;
    auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc{}) fail();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  dim factor() {
    if (at_ >= text_.size()) fail();
    char c = text_[at_];
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c))) return number();
    std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    if (begin == at_) fail();
    std::string_view name = text_.substr(begin, at_ - begin);
    return take('(') ? function(name) : dim::symbol(name);
  }
  dim function(std::string_view name) {
    dim result = sum();
    if (name == "floor") {
      if (!take('/')) fail();
      dim divisor = sum();
      if (divisor.is_static() && divisor.value() <= 0) fail();
      result = result / divisor;
    } else if (name == "floor32") {
      std::vector<dim> operands{result};
      while (take(',')) operands.push_back(sum());
      const std::size_t end = take(':') ? text_.find(')', at_) : std::string_view::npos;
      if (end == std::string_view::npos) fail();
      auto steps = parse_steps(text_.substr(at_, end - at_), operands.size());
      if (!steps) fail();
      at_ = end;
      result = dim::floor_of_real(std::move(*steps), std::move(operands));
    } else if (name == "min" || name == "max") {
      while (take(',')) result = name == "min" ? dim::min(result, sum()) : dim::max(result, sum());
    } else {
      fail();
    }
    if (!take(')')) fail();
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

dim dim::parse(std::string_view text) { return parser(text).whole(); }

std::string dim::str() const {
  if (is_static()) return std::to_string(value_);
  std::string text;
  for (const auto& [atoms, coefficient] : *expression_) {
    if (!text.empty() && coefficient > 0) text += '+';
    bool first = !atoms.empty() && coefficient == 1;
    if (!first) text += std::to_string(coefficient);
    for (const auto& atom : atoms) {
      if (!first) text += '*';
      text += atom->text;
      first = false;
    }
  }
  return text;
}

}  // namespace kiln
