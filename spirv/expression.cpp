#include "spirv/expression.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace kiln::spirv {
namespace {

// The value of a subexpression: an integer (possibly symbolic), a real number, a text or an element type.
using number = std::variant<dim, double, std::string, element_type>;

constexpr int max_depth = 64;
constexpr std::uint32_t max_index = 1 << 16;

constexpr std::array<std::pair<std::string_view, element_type>, 14> onnx_names{{{"float64", element_type::f64},
                                                                                {"double", element_type::f64},
                                                                                {"float32", element_type::f32},
                                                                                {"float", element_type::f32},
                                                                                {"float16", element_type::f16},
                                                                                {"bfloat16", element_type::bf16},
                                                                                {"int64", element_type::i64},
                                                                                {"int32", element_type::i32},
                                                                                {"int16", element_type::i16},
                                                                                {"int8", element_type::i8},
                                                                                {"uint8", element_type::u8},
                                                                                {"uint16", element_type::u16},
                                                                                {"uint32", element_type::u32},
                                                                                {"uint64", element_type::u64}}};

std::optional<element_type> type_named(std::string_view text) {
  for (auto [name, type] : onnx_names)
    if (name == text) return type;
  return parse_element_type(text);
}

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

class parser {
 public:
  parser(std::string_view text, const expression_scope& scope) : text_(text), scope_(scope), idle_(scope.checking) {}

  number all() {
    number result = choice();
    blanks();
    if (at_ != text_.size()) fail("'" + std::string(text_.substr(at_)) + "' is unexpected here");
    return result;
  }

  dim integer_of(const number& n) const {
    const dim* d = std::get_if<dim>(&n);
    if (!d) fail("expected an integer");
    return *d;
  }

  double real_of(const number& n) const {
    if (const double* r = std::get_if<double>(&n)) return *r;
    return static_cast<double>(plain(n));
  }

  const shape& tensor(std::string_view word) const {
    static const shape any{element_type::f32, {1}};
    auto found = parse_buffer(word);
    if (!found || found->first == "scratch") fail("'" + std::string(word) + "' is not a tensor: input0, output0, ...");
    if (idle_) return any;
    auto list = found->first == "input" ? scope_.inputs : scope_.outputs;
    if (found->second >= list.size()) fail("there is no " + std::string(word));
    return list[found->second];
  }

  // 1 where the number is not 0, and 0 elsewhere.
  dim truth(const number& n) const {
    if (is_open(n)) return not_zero(std::get<dim>(n));
    return idle_ ? 1 : std::holds_alternative<double>(n) ? std::get<double>(n) != 0 : plain(n) != 0;
  }

  [[noreturn]] void fail(const std::string& what) const { throw expression_error(text_, at_, what); }

 private:
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool accept(std::string_view token) {
    blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("'" + std::string(token) + "' expected");
  }
  std::string_view word() {
    blanks();
    std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // Returns an integer that must be static.
  std::int64_t plain(const number& n) const {
    dim d = integer_of(n);
    if (!d.is_static())
      throw error(error_kind::unsupported, "'" + std::string(text_) + "' depends on the open dimension " + d.str() +
                                               ": give it a value with --dim");
    return d.value();
  }

  bool is_open(const number& n) const {
    const dim* d = std::get_if<dim>(&n);
    return scope_.open_conditions && !idle_ && d && !d->is_static();
  }

  static dim not_zero(const dim& d) { return dim::min(1, dim::max(d, dim(0) - d)); }
  static dim at_most(const dim& a, const dim& b) { return dim::min(1, dim::max(0, b - a + dim(1))); }

  // Calls `parse`. If `skip`, only checks the syntax without evaluating.
  template <class Parse>
  auto skipping(bool skip, Parse parse) {
    bool idle = idle_;
    idle_ = idle || skip;
    auto result = parse();
    idle_ = idle;
    return result;
  }

  number choice() {
    if (++depth_ > max_depth) fail("too deeply nested");
    number condition = either();
    if (accept("?")) {
      const dim holds = truth(condition);
      number first = skipping(holds == dim(0), [&] { return choice(); });
      expect(":");
      number second = skipping(holds == dim(1), [&] { return choice(); });
      if (holds.is_static()) condition = holds == dim(1) ? first : second;
      else condition = integer_of(first) * holds + integer_of(second) * (dim(1) - holds);
    }
    --depth_;
    return condition;
  }

  number either() {
    number left = both();
    while (accept("||")) {
      const dim l = truth(left), r = skipping(l == dim(1), [&] { return truth(both()); });
      left = dim::max(l, r);
    }
    return left;
  }

  number both() {
    number left = comparison();
    while (accept("&&")) {
      const dim l = truth(left), r = skipping(l == dim(0), [&] { return truth(comparison()); });
      left = dim::min(l, r);
    }
    return left;
  }

  number comparison() {
    static constexpr std::array<std::string_view, 6> signs{"==", "!=", "<=", ">=", "<", ">"};
    number left = sum();
    for (std::string_view sign : signs) {
      if (!accept(sign)) continue;
      number right = sum();
      if (idle_) return dim(1);
      if (left.index() == right.index() && left.index() >= 2) {  // texts and element types
        if (sign != "==" && sign != "!=") fail("only == and != compare texts and types");
        return dim((left == right) == (sign == "=="));
      }
      auto compared = [&](auto a, auto b) {
        return sign == "=="   ? a == b
               : sign == "!=" ? a != b
               : sign == "<=" ? a <= b
               : sign == ">=" ? a >= b
               : sign == "<"  ? a < b
                              : a > b;
      };
      if (left.index() == 0 && right.index() == 0 && (is_open(left) || is_open(right)))
        return open_comparison(sign, std::get<dim>(left), std::get<dim>(right));
      if (left.index() == 0 && right.index() == 0) return dim(compared(plain(left), plain(right)));
      return dim(compared(real_of(left), real_of(right)));
    }
    return left;
  }

  static dim open_comparison(std::string_view sign, const dim& a, const dim& b) {
    if (sign == "==" || sign == "!=") return sign == "!=" ? not_zero(a - b) : dim(1) - not_zero(a - b);
    const bool less = sign.front() == '<', or_equal = sign.size() == 2;
    const dim &low = less ? a : b, &high = less ? b : a;
    return or_equal ? at_most(low, high) : at_most(low + dim(1), high);
  }

  number sum() {
    number left = term();
    for (;;) {
      bool plus = accept("+");
      if (!plus && !accept("-")) return left;
      number right = term();
      if (const dim *a = std::get_if<dim>(&left), *b = std::get_if<dim>(&right); a && b)
        left = plus ? *a + *b : *a - *b;
      else left = plus ? real_of(left) + real_of(right) : real_of(left) - real_of(right);
    }
  }

  number term() {
    number left = factor();
    for (;;) {
      char sign = accept("*") ? '*' : accept("/") ? '/' : accept("%") ? '%' : '\0';
      if (!sign) return left;
      number right = factor();
      const dim *a = std::get_if<dim>(&left), *b = std::get_if<dim>(&right);
      if (!a || !b) {
        if (sign == '%') fail("% needs integer operands");
        left = sign == '*' ? real_of(left) * real_of(right) : real_of(left) / real_of(right);
      } else if (sign == '*') {
        left = *a * *b;
      } else {
        left = quotient(*a, *b, sign);
      }
    }
  }

  dim whole(double value) const {
    if (!(value >= -0x1p63 && value < 0x1p63)) fail("the value does not fit in a 64-bit integer");
    return static_cast<std::int64_t>(value);
  }

  dim quotient(const dim& a, const dim& b, char sign) const {
    if (idle_) return 1;
    if (a.is_static() && b.is_static()) {
      if (b.value() == 0) fail("division by zero");
      if (b.value() == -1) return sign == '/' ? dim(0) - a : dim(0);  // negating the smallest integer would overflow
      return sign == '/' ? a.value() / b.value() : a.value() % b.value();
    }
    return sign == '/' ? a / b : a - b * (a / b);
  }

  number factor() {
    if (++depth_ > max_depth) fail("too deeply nested");
    number result = unary();
    --depth_;
    return result;
  }

  number unary() {
    if (accept("-")) {
      number n = factor();
      if (const dim* d = std::get_if<dim>(&n)) return dim(0) - *d;
      return -real_of(n);
    }
    if (accept("!")) return dim(1) - truth(factor());
    if (accept("(")) {
      number n = choice();
      expect(")");
      return n;
    }
    if (accept("\"")) {
      std::size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) fail("unterminated text");
      std::string result(text_.substr(at_, end - at_));
      at_ = end + 1;
      return result;
    }
    blanks();
    if (at_ < text_.size() && ((text_[at_] >= '0' && text_[at_] <= '9') || text_[at_] == '.')) return literal();
    std::size_t begin = at_;
    std::string_view name = word();
    if (name.empty()) fail("expected a number, a name or '('");
    if (accept("(")) return call(name, begin);
    if (auto type = type_named(name)) return *type;
    if (scope_.attributes)
      for (const auto& [known, value] : *scope_.attributes)
        if (known == name) return value_of(value);
    at_ = begin;
    fail("'" + std::string(name) + "' is not an attribute or a type");
  }

  number value_of(const attribute_value& value) const {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return dim(*whole);
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    fail("a list of sizes is not a number");
  }

  number literal() {
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    std::int64_t whole = 0;
    double real = 0;
    auto [after, code] = std::from_chars(begin, end, whole);
    auto [real_after, real_code] = std::from_chars(begin, end, real);
    if (real_code == std::errc{} && real_after > after) {
      at_ += static_cast<std::size_t>(real_after - begin);
      if (at_ < text_.size() && (text_[at_] == 'f' || text_[at_] == 'F')) ++at_;
      return real;
    }
    if (code != std::errc{}) fail("not a number");
    at_ += static_cast<std::size_t>(after - begin);
    return dim(whole);
  }

  number call(std::string_view name, std::size_t begin) {
    if (name == "dim" || name == "elements" || name == "rank" || name == "type" || name == "product") {
      const shape& t = tensor(word());
      std::vector<std::int64_t> axes;
      while (accept(",")) axes.push_back(plain(choice()));
      expect(")");
      if (axes.size() != (name == "dim" ? 1u : name == "product" ? 2u : 0u))
        fail(std::string(name) + " has the wrong number of arguments");
      if (name == "type") return t.type;
      if (idle_) return dim(1);
      if (name == "rank") return dim(static_cast<std::int64_t>(t.rank()));
      if (name == "elements") return t.elements();
      auto rank = static_cast<std::int64_t>(t.rank());
      if (name == "product") {
        dim product = 1;
        std::int64_t first = axes[0] < 0 ? axes[0] + rank : axes[0], last = axes[1] < 0 ? axes[1] + rank : axes[1];
        if (first < 0 || last > rank) fail("there is no such dimension in " + t.str());
        for (std::int64_t i = first; i < last; ++i) product = product * t.dims[static_cast<std::size_t>(i)];
        return product;
      }
      std::int64_t axis = axes[0] < 0 ? axes[0] + rank : axes[0];
      if (axis < 0 || axis >= rank) fail("there is no dimension " + std::to_string(axes[0]) + " in " + t.str());
      return t.dims[static_cast<std::size_t>(axis)];
    }
    if (name == "has") return dim(present(word()));
    if (name == "item" || name == "length") return of_list(name);
    std::vector<number> given;
    if (!accept(")")) {
      do given.push_back(choice());
      while (accept(","));
      expect(")");
    }
    if ((name == "min" || name == "max") && given.size() == 2) {
      if (std::holds_alternative<double>(given[0]) || std::holds_alternative<double>(given[1])) {
        double a = real_of(given[0]), b = real_of(given[1]);
        return name == "min" ? std::fmin(a, b) : std::fmax(a, b);
      }
      if (idle_) return dim(1);
      const dim a = integer_of(given[0]), b = integer_of(given[1]);
      return name == "min" ? dim::min(a, b) : dim::max(a, b);
    }
    if (name == "ceil_div" && given.size() == 2)
      return idle_ ? dim(1) : quotient(integer_of(given[0]) + integer_of(given[1]) - dim(1), integer_of(given[1]), '/');
    if (name == "floor" && given.size() == 1) return idle_ ? dim(1) : whole(std::floor(real_of(given[0])));
    if (name == "real" && given.size() == 1) return real_of(given[0]);
    at_ = begin;
    fail("'" + std::string(name) + "' with " + std::to_string(given.size()) + " arguments is not a function");
  }

  // has(input1): whether the node provides that input.
  bool present(std::string_view input) {
    auto found = parse_buffer(input);
    if (!found || found->first != "input") fail("'" + std::string(input) + "' is not an input: input0, input1, ...");
    expect(")");
    if (idle_) return true;
    bool left_out =
        scope_.attributes && std::ranges::find(*scope_.attributes, left_out_input(found->second),
                                               &attribute_values::value_type::first) != scope_.attributes->end();
    return !left_out && found->second < scope_.inputs.size();
  }

  // item(pads, 1) and length(pads), for an attribute that is a list.
  number of_list(std::string_view function) {
    std::string_view name = word();
    const std::vector<std::int64_t>* list = nullptr;
    if (scope_.attributes)
      for (const auto& [known, value] : *scope_.attributes)
        if (known == name) list = std::get_if<std::vector<std::int64_t>>(&value);
    if (!list) fail("'" + std::string(name) + "' is not an attribute that is a list");
    std::int64_t index = 0;
    if (function == "item") {
      expect(",");
      index = plain(choice());
    }
    expect(")");
    if (idle_) return dim(1);
    auto size = static_cast<std::int64_t>(list->size());
    if (function == "length") return dim(size);
    if (index < 0) index += size;
    if (index < 0 || index >= size) fail("'" + std::string(name) + "' has " + std::to_string(size) + " items");
    return dim((*list)[static_cast<std::size_t>(index)]);
  }

  std::string_view text_;
  const expression_scope& scope_;
  bool idle_;  // checks the syntax without evaluating: the branch of ?: that is not taken
  std::size_t at_ = 0;
  int depth_ = 0;
};

std::string_view trimmed(std::string_view text) {
  auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

dim evaluate_integer(std::string_view text, const expression_scope& scope) {
  parser p(text, scope);
  return p.integer_of(p.all());
}

dim evaluate_condition(std::string_view text, const expression_scope& scope) {
  parser p(text, scope);
  return p.truth(p.all());
}

double evaluate_real(std::string_view text, const expression_scope& scope) {
  parser p(text, scope);
  return p.real_of(p.all());
}

element_type evaluate_type(std::string_view text, const expression_scope& scope) {
  parser p(text, scope);
  number result = p.all();
  if (const auto* type = std::get_if<element_type>(&result)) return *type;
  p.fail("expected an element type: float32, type(input0), ...");
}

std::vector<dim> evaluate_dims(std::string_view text, const expression_scope& scope) {
  text = trimmed(text);
  auto open = text.find('(');
  auto fail = [&](const std::string& what) { throw expression_error(text, 0, what); };
  if (open == std::string_view::npos || text.back() != ')')
    fail(
        "a shape is same_as(input0), dims(...), broadcast(input0, input1), with_dim(input0, axis, size), "
        "with_last(input0, size, ...) or list(attribute)");
  std::string_view name = trimmed(text.substr(0, open));
  auto arguments = split_arguments(text.substr(open + 1, text.size() - open - 2));
  auto tensor = [&](std::string_view word) -> const shape& { return parser(word, scope).tensor(word); };
  if (name == "dims") {
    std::vector<dim> result;
    for (std::string_view a : arguments) result.push_back(evaluate_integer(a, scope));
    return result;
  }
  if (name == "list" && arguments.size() == 1 && scope.attributes)
    for (const auto& [known, value] : *scope.attributes)
      if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&value); sizes && known == arguments[0])
        return {sizes->begin(), sizes->end()};
  if (name == "same_as" && arguments.size() == 1) return tensor(arguments[0]).dims;
  if (name == "broadcast" && arguments.size() == 2)
    return broadcast_dims(tensor(arguments[0]).dims, tensor(arguments[1]).dims);
  if (name == "with_dim" && arguments.size() == 3) {
    std::vector<dim> result = tensor(arguments[0]).dims;
    dim axis = evaluate_integer(arguments[1], scope), size = evaluate_integer(arguments[2], scope);
    if (!scope.checking) result[static_cast<std::size_t>(normalize_axis(axis.value(), result.size()))] = size;
    return result;
  }
  if (name == "with_last" && arguments.size() >= 2) {
    std::vector<dim> result = tensor(arguments[0]).dims;
    std::size_t last = arguments.size() - 1;
    if (scope.checking) result.resize(std::max(result.size(), last));
    if (result.size() < last) fail("there are no " + std::to_string(last) + " dimensions to replace");
    for (std::size_t i = 0; i < last; ++i) result[result.size() - last + i] = evaluate_integer(arguments[1 + i], scope);
    return result;
  }
  fail("'" + std::string(name) + "' with " + std::to_string(arguments.size()) +
       " arguments is not a shape: same_as(input0), dims(...), broadcast(input0, input1), with_dim(input0, axis, "
       "size), with_last(input0, size, ...), list(attribute)");
  return {};
}

std::optional<std::pair<std::string_view, std::uint32_t>> parse_buffer(std::string_view text) {
  text = trimmed(text);
  for (std::string_view role : {"input", "output", "scratch"}) {
    if (!text.starts_with(role)) continue;
    std::uint32_t index = 0;
    auto [end, code] = std::from_chars(text.data() + role.size(), text.data() + text.size(), index);
    if (code == std::errc{} && end == text.data() + text.size() && index < max_index) return std::pair(role, index);
  }
  return std::nullopt;
}

std::string left_out_input(std::uint32_t index) { return "no input" + std::to_string(index); }

std::vector<std::string_view> split_arguments(std::string_view text) {
  std::vector<std::string_view> result;
  std::size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    depth += (c == '(') - (c == ')');
    if (c != ',' || depth != 0) continue;
    result.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (std::string_view last = trimmed(text.substr(begin)); !last.empty() || !result.empty()) result.push_back(last);
  return result;
}

}  // namespace kiln::spirv
