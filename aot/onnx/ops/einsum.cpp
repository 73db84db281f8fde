// Einsum. Operands are transposed and reduced to one label per axis, then joined two at a time by a batched product.
#include <algorithm>
#include <map>

#include "aot/onnx/operators.hpp"

namespace kiln::onnx_import {
namespace {

// A tensor whose axes are named by letters. The axes of an ellipsis are named '0', '1', ... from the right.
struct labelled {
  value v;
  std::string labels;
};

using sizes = std::map<char, dim>;

std::vector<std::int64_t> positions(const std::string& from, const std::string& to) {
  std::vector<std::int64_t> result;
  for (char c : to) result.push_back(static_cast<std::int64_t>(from.find(c)));
  return result;
}

std::string spelled_out(const std::string& term, std::size_t rank) {
  auto dots = term.find("...");
  if (dots == std::string::npos) return term;
  std::size_t letters = term.size() - 3;
  if (letters > rank || rank - letters > 10) invalid("term '" + term + "' does not fit rank " + std::to_string(rank));
  std::string digits;
  for (std::size_t i = rank - letters; i-- > 0;) digits += static_cast<char>('0' + i);
  return term.substr(0, dots) + digits + term.substr(dots + 3);
}

// A label that repeats within a term denotes a diagonal: every (n+1)-th element of the flattened [n, n].
labelled without_repeats(builder& b, labelled t) {
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    auto again = t.labels.find(t.labels[i], i + 1);
    if (again == std::string::npos) continue;
    dim n = t.v.type().dims.at(i);
    if (!(n == t.v.type().dims.at(again)) || !n.is_static())
      invalid("the diagonal '" + t.labels + "' of " + t.v.type().str() + " is not square");
    std::vector<std::int64_t> order;
    std::vector<dim> dims;
    std::string rest;
    for (std::size_t k = 0; k < t.labels.size(); ++k)
      if (k != i && k != again) {
        order.push_back(static_cast<std::int64_t>(k));
        dims.push_back(t.v.type().dims.at(k));
        rest += t.labels[k];
      }
    order.push_back(static_cast<std::int64_t>(i));
    order.push_back(static_cast<std::int64_t>(again));
    slice every{std::vector<std::int64_t>(dims.size() + 1, 0), dims, std::vector<std::int64_t>(dims.size() + 1, 1)};
    every.lengths.push_back(n);
    every.steps.back() = n.value() + 1;
    dims.push_back(n * n);
    return without_repeats(b, {b.add(every, {b.with_dims(b.permuted(t.v, order), dims)}), rest + t.labels[i]});
  }
  return t;
}

// Sums over the labels that no other term needs.
labelled without_unused(builder& b, labelled t, const std::string& needed) {
  std::vector<std::int64_t> axes;
  std::string kept;
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    if (needed.find(t.labels[i]) == std::string::npos) axes.push_back(static_cast<std::int64_t>(i));
    else kept += t.labels[i];
  }
  return {b.reduced(reduction_kind::sum, t.v, axes, false), kept};
}

std::vector<dim> dims_of(const std::string& labels, const sizes& size) {
  std::vector<dim> dims;
  for (char c : labels) dims.push_back(size.at(c));
  return dims;
}

dim product(const std::string& labels, const sizes& size) {
  dim result = 1;
  for (char c : labels) result = result * size.at(c);
  return result;
}

// Transposes a tensor to the axes `labels` and broadcasts axes of 1 under an ellipsis.
value arranged(builder& b, const labelled& t, const std::string& labels, const sizes& size) {
  return b.broadcast_to(b.permuted(t.v, positions(t.labels, labels)), dims_of(labels, size));
}

labelled joined(builder& b, const labelled& x, const labelled& y, const std::string& needed, const sizes& size) {
  std::string batch, summed, left, right;
  for (char c : x.labels) {
    bool shared = y.labels.find(c) != std::string::npos;
    (!shared ? left : needed.find(c) != std::string::npos ? batch : summed) += c;
  }
  for (char c : y.labels)
    if (x.labels.find(c) == std::string::npos) right += c;
  dim g = product(batch, size), m = product(left, size), k = product(summed, size), n = product(right, size);
  value a = b.with_dims(arranged(b, x, batch + left + summed, size), {g, m, k});
  value c = b.with_dims(arranged(b, y, batch + summed + right, size), {g, k, n});
  // Products of 8-bit integers are summed in i32, whose low byte is the sum.
  const element_type type = a.type().type, wide = is_float(type) || storage_bits(type) > 8 ? type : element_type::i32;
  value made = b.to_type(b.add(dot{false, false, wide}, {b.to_type(a, wide), b.to_type(c, wide)}), type);
  return {b.with_dims(made, dims_of(batch + left + right, size)), batch + left + right};
}

std::vector<value> einsum(node& n) {
  builder& b = n.b;
  std::string equation = n.text("equation", "");
  std::erase(equation, ' ');
  auto arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  if (terms.size() != n.inputs())
    invalid("equation '" + equation + "' has " + std::to_string(terms.size()) + " terms for " +
            std::to_string(n.inputs()) + " inputs");
  std::vector<labelled> operands;
  sizes size;
  std::map<char, int> uses;
  std::string ellipsis;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    std::string labels = spelled_out(terms[i], n.rank(i));
    if (labels.size() != n.rank(i)) invalid("term '" + terms[i] + "' does not fit " + n.type(i).str());
    for (std::size_t k = 0; k < labels.size(); ++k) {
      char c = labels[k];
      bool digit = c >= '0' && c <= '9' && terms[i].find(c) == std::string::npos;
      if (!digit && !std::isalpha(static_cast<unsigned char>(c))) invalid("equation '" + equation + "' is malformed");
      if (digit && ellipsis.find(c) == std::string::npos) ellipsis += c;
      auto [known, fresh] = size.emplace(c, n.dims(i)[k]);
      if (!fresh) known->second = n.b.broadcast_shape({known->second}, {n.dims(i)[k]})[0];
      ++uses[c];
    }
    operands.push_back(without_repeats(b, {n.in(i), labels}));
  }
  std::sort(ellipsis.rbegin(), ellipsis.rend());
  std::string output;
  if (arrow != std::string::npos) {
    output = equation.substr(arrow + 2);
    if (auto dots = output.find("..."); dots != std::string::npos) output.replace(dots, 3, ellipsis);
  } else {
    // Without an arrow the output is the letters that are used once, in alphabetical order.
    output = ellipsis;
    for (const auto& [c, count] : uses)
      if (count == 1 && std::isalpha(static_cast<unsigned char>(c))) output += c;
  }
  for (std::size_t i = 0; i < output.size(); ++i)
    if (!size.contains(output[i]) || output.find(output[i], i + 1) != std::string::npos)
      invalid("equation '" + equation + "' is malformed");
  labelled result = operands[0];
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::string needed = output;
    for (std::size_t k = i + 1; k < operands.size(); ++k) needed += operands[k].labels;
    if (i > 0) {
      labelled next = without_unused(b, operands[i], needed + result.labels);
      result = joined(b, result, next, needed, size);
    }
    result = without_unused(b, result, needed);
  }
  return {arranged(b, result, output, size)};
}

constexpr operator_row rows[] = {{"Einsum", einsum, 12}};

}  // namespace

std::span<const operator_row> einsum_operators() { return rows; }

}  // namespace kiln::onnx_import
