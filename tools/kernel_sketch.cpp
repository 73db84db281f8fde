#include "tools/kernel_sketch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "ir/error.hpp"

namespace kiln::tools {
namespace {

// The text between the bracket at `open` and the one that closes it.
std::string_view bracketed(std::string_view text, std::size_t open) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    // The arrow "->" closes nothing.
    if ((c == '>' && text[i - 1] != '-') || c == ')' || c == ']' || c == '}')
      if (--depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> result;
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    const std::size_t end = text.find_first_of(" ,:)=", at);
    result.emplace_back(text.substr(at, end == std::string_view::npos ? end : end - at));
  }
  return result;
}

// The inside of "tensor<...>": "?x64xf32, #kiln.dims<["batch", "64"]>".
sketch_tensor tensor_of(std::string_view inside) {
  sketch_tensor result;
  // Sizes are digits or "?", with an x behind each.
  std::string_view rest = inside.substr(0, inside.find(','));
  std::vector<std::string_view> sizes;
  for (std::size_t end = rest.find_first_not_of("0123456789?");
       end != std::string_view::npos && end > 0 && rest[end] == 'x'; end = rest.find_first_not_of("0123456789?")) {
    sizes.push_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  result.element = trimmed(rest);
  const std::size_t named = inside.find("#kiln.dims<[");
  if (named != std::string_view::npos) {
    std::string_view list = bracketed(inside, inside.find('[', named));
    for (std::size_t at = list.find('"'); at != std::string_view::npos; at = list.find('"', at)) {
      const std::size_t end = list.find('"', at + 1);
      if (end == std::string_view::npos) break;
      result.dims.push_back(dim::parse(list.substr(at + 1, end - at - 1)));
      at = end + 1;
    }
    return result;
  }
  for (std::string_view size : sizes) result.dims.push_back(dim::parse(size));
  return result;
}

std::vector<sketch_tensor> tensors_in(std::string_view text) {
  std::vector<sketch_tensor> result;
  for (std::size_t at = text.find("tensor<"); at != std::string_view::npos; at = text.find("tensor<", at)) {
    const std::string_view inside = bracketed(text, at + 6);
    result.push_back(tensor_of(inside));
    at += 7 + inside.size();
  }
  return result;
}

// "%0 = kiln.dot %arg0, %arg1 {transpose_a = false} : (tensor<...>, tensor<...>) -> tensor<...>"
sketch_step step_of(std::string_view line) {
  sketch_step result;
  const std::size_t equals = line.find(" = kiln."), begin = equals + 8;
  result.results = names_in(line.substr(0, equals));
  const std::size_t end = line.find_first_of(" (", begin);
  result.operation = line.substr(begin, end - begin);
  std::string_view rest = line.substr(end);
  const std::size_t brace = rest.find('{');
  std::size_t types = rest.find(" : ");
  if (brace != std::string_view::npos && brace < types) {
    const std::string_view attributes = bracketed(rest, brace);
    result.attributes = attributes;
    types = rest.find(" : ", brace + attributes.size());
  }
  result.operands = names_in(rest.substr(0, std::min(brace, types)));
  if (types == std::string_view::npos) return result;
  const std::string_view signature = rest.substr(types + 3);
  const std::size_t open = signature.find('(');
  const std::string_view taken = open == 0 ? bracketed(signature, 0) : std::string_view();
  result.operand_types = tensors_in(taken);
  result.result_types = tensors_in(signature.substr(open == 0 ? taken.size() + 2 : 0));
  return result;
}

double elements(const sketch_tensor& t, const dim_bindings& sizes) {
  double result = 1;
  for (const dim& d : t.dims) result *= static_cast<double>(d.substitute(sizes).value());
  return result;
}

bool says(const sketch_step& s, std::string_view attribute) {
  return s.attributes.find(attribute) != std::string::npos;
}

double size_at(const sketch_tensor& t, std::size_t axis, const dim_bindings& sizes) {
  return axis < t.dims.size() ? static_cast<double>(t.dims[axis].substitute(sizes).value()) : 1;
}

double dot_work(const sketch_step& s, const dim_bindings& sizes) {
  const std::size_t rank = s.operand_types[0].dims.size();
  const std::size_t depth = says(s, "transpose_a = true") ? rank - 2 : rank - 1;
  return 2 * elements(s.result_types[0], sizes) * size_at(s.operand_types[0], depth, sizes);
}
double convolution_work(const sketch_step& s, const dim_bindings& sizes) {
  const sketch_tensor& out = s.result_types[0];
  const std::size_t channels = says(s, "\"channels_last\"") ? out.dims.size() - 1 : 1;
  return 2 * elements(out, sizes) * elements(s.operand_types[1], sizes) / size_at(out, channels, sizes);
}
// Both products of attention; the softmax between them is small beside them.
double attention_work(const sketch_step& s, const dim_bindings& sizes) {
  const sketch_tensor& key = s.operand_types[1];
  const std::size_t rank = key.dims.size();
  const std::size_t axis = says(s, "key_layout = \"sequence_first\"") ? rank - 3 : rank - 2;
  const double columns = size_at(key, axis, sizes);
  return 2 * columns * (elements(s.operand_types[0], sizes) + elements(s.result_types[0], sizes));
}
double recurrent_work(const sketch_step& s, const dim_bindings& sizes) {
  return 2 * size_at(s.operand_types[0], 0, sizes) * size_at(s.operand_types[0], 1, sizes) *
         elements(s.operand_types[1], sizes);
}
double pooling_work(const sketch_step& s, const dim_bindings& sizes) {
  double window = 1;
  const std::size_t begin = s.attributes.find("window = array<i64:");
  if (begin != std::string::npos) {
    const char* at = s.attributes.c_str() + begin + 19;
    for (char* end = nullptr; *at != '>' && *at != 0; at = *end == ',' ? end + 1 : end) {
      const double size = std::strtod(at, &end);
      if (end == at) break;
      window *= size;
    }
  }
  return window * elements(s.result_types[0], sizes);
}
double input_work(const sketch_step& s, const dim_bindings& sizes) { return elements(s.operand_types[0], sizes); }
double output_work(const sketch_step& s, const dim_bindings& sizes) { return elements(s.result_types[0], sizes); }
double normalize_work(const sketch_step& s, const dim_bindings& sizes) { return 4 * output_work(s, sizes); }

struct work_row {
  std::string_view operation;
  double (*count)(const sketch_step&, const dim_bindings&);
  std::size_t operands;  // that it needs at least
};
constexpr std::array work_rows{work_row{"dot", dot_work, 2},
                               work_row{"convolution", convolution_work, 2},
                               work_row{"attention", attention_work, 3},
                               work_row{"recurrent", recurrent_work, 2},
                               work_row{"pooling", pooling_work, 1},
                               work_row{"reduce", input_work, 1},
                               work_row{"normalize", normalize_work, 1},
                               work_row{"softmax", normalize_work, 1},
                               work_row{"elementwise", output_work, 1}};

// The kernel's symbols, where a dim is one.
void bind(const sketch_tensor& type, const shape& actual, dim_bindings& sizes) {
  for (std::size_t i = 0; i < std::min(type.dims.size(), actual.dims.size()); ++i)
    if (type.dims[i].is_symbol() && actual.dims[i].is_static()) sizes[type.dims[i].str()] = actual.dims[i].value();
}

}  // namespace

std::string sketch_tensor::str() const {
  std::string list;
  for (const dim& d : dims) list += fmt::format("{}{}", list.empty() ? "" : ", ", d.str());
  return dims.empty() ? element : fmt::format("{}[{}]", element, list);
}

kernel_sketch read_kernel_text(std::string_view text) {
  kernel_sketch result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    try {
      if (line.starts_with("kiln.kernel")) {
        const std::string_view list = bracketed(line, line.find('('));
        result.parameters = names_in(list);
        result.parameter_types = tensors_in(list);
      } else if (line.starts_with("kiln.return")) {
        result.results = names_in(line.substr(0, line.find(" : ")));
      } else if (line.starts_with('%') && line.find(" = kiln.") != std::string_view::npos) {
        result.steps.push_back(step_of(line));
      }
    } catch (const error&) {  // sizes that are no text of a dim
    }
  }
  return result;
}

std::optional<double> count_operations(const kernel_sketch& kernel, std::span<const shape> inputs,
                                       std::span<const shape> outputs) try {
  dim_bindings sizes;
  for (std::size_t i = 0; i < std::min(inputs.size(), kernel.parameter_types.size()); ++i)
    bind(kernel.parameter_types[i], inputs[i], sizes);
  for (const sketch_step& s : kernel.steps)
    for (std::size_t r = 0; r < std::min(s.results.size(), s.result_types.size()); ++r)
      for (std::size_t o = 0; o < std::min(outputs.size(), kernel.results.size()); ++o)
        if (kernel.results[o] == s.results[r]) bind(s.result_types[r], outputs[o], sizes);
  double sum = 0;
  for (const sketch_step& s : kernel.steps) {
    const auto row = std::ranges::find(work_rows, s.operation, &work_row::operation);
    if (row == work_rows.end() || s.operand_types.size() < row->operands || s.result_types.empty()) continue;
    sum += row->count(s, sizes);
  }
  return sum;
} catch (const error&) {  // a size that is still open
  return std::nullopt;
}

}  // namespace kiln::tools
