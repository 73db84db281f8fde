#include "aot/onnx/texts.hpp"

#include <algorithm>

#include "aot/onnx/node.hpp"
#include "aot/onnx/ops/machine_learning.hpp"
#include "aot/onnx/tensors.hpp"

namespace kiln::onnx_import {
namespace {

constexpr std::string_view movers[] = {"Identity", "Reshape",        "Flatten",  "Squeeze", "Unsqueeze",
                                       "Gather",   "GatherElements", "GatherND", "Slice",   "Transpose",
                                       "Expand",   "Tile",           "Cast"};

}  // namespace

value text_lists::mark(value v, std::vector<std::string> list) {
  lists_[v] = std::move(list);
  return v;
}

const std::vector<std::string>* text_lists::of(value v) const {
  auto found = lists_.find(v);
  return found == lists_.end() ? nullptr : &found->second;
}

bool moves_elements(std::string_view domain, std::string_view name) {
  if (domain == ml_domain) return name == "ArrayFeatureExtractor";
  return domain.empty() && std::ranges::find(movers, name) != std::end(movers);
}

bool reads_texts(std::string_view domain, std::string_view name) {
  return domain == ml_domain && (name == "LabelEncoder" || name == "OneHotEncoder");
}

value text_constant(builder& b, text_lists& texts, const std::vector<std::string>& elements,
                    const std::vector<dim>& dims) {
  std::vector<std::string> list;
  std::map<std::string_view, std::int64_t> places;
  std::vector<std::int64_t> indices;
  for (const std::string& text : elements) {
    auto [place, fresh] = places.emplace(text, static_cast<std::int64_t>(list.size()));
    if (fresh) list.push_back(text);
    indices.push_back(place->second);
  }
  return texts.mark(b.constant(literal::of<std::int64_t>({element_type::i64, dims}, indices)), std::move(list));
}

value text_constant(builder& b, text_lists& texts, const ::onnx::TensorProto& tensor, const std::string& what) {
  std::vector<dim> dims;
  std::int64_t count = 1;
  check_rank(tensor.dims_size(), what);
  for (std::int64_t d : tensor.dims()) {
    if (d < 0 || (d > 0 && count > largest_dim / d)) invalid(what + " has the dimension " + std::to_string(d));
    dims.emplace_back(d);
    count *= d;
  }
  if (count != tensor.string_data_size())
    invalid(what + " has " + std::to_string(tensor.string_data_size()) + " strings instead of " +
            std::to_string(count));
  return text_constant(b, texts, {tensor.string_data().begin(), tensor.string_data().end()}, dims);
}

}  // namespace kiln::onnx_import
