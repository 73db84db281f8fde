#include "spirv/library/counted_reference.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <numeric>

namespace kiln::spirv {
namespace {

using integers = std::vector<std::int64_t>;

literal counted(std::int64_t count) { return literal::from_int64({count}); }

literal padded(const shape& type, integers values, std::int64_t padding) {
  values.resize(static_cast<std::size_t>(type.element_count()), padding);
  return literal::of<std::int64_t>(type, values);
}

struct box {
  double low[2], high[2];
  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

// ONNX's box formats: two opposite corners in any order, or center and size with x before y.
box box_of(std::span<const float> four, bool centered) {
  box b;
  for (std::size_t d = 0; d < 2; ++d) {
    const double first = four[d], second = four[2 + d];
    b.low[d] = centered ? first - second / 2 : std::min(first, second);
    b.high[d] = centered ? first + second / 2 : std::max(first, second);
  }
  return b;
}

// The intersection over union of two boxes.
double overlap(const box& a, const box& b) {
  double common = 1;
  for (std::size_t d = 0; d < 2; ++d)
    common *= std::max(0.0, std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]));
  const double joined = a.area() + b.area() - common;
  return joined > 0 ? common / joined : 0;
}

}  // namespace

std::vector<literal> non_zero_reference(const object&, std::span<const literal> inputs,
                                        std::span<const shape> outputs) {
  integers places;
  for (std::int64_t i = 0; i < inputs[0].type().element_count(); ++i)
    if (inputs[0].at(i) != 0) places.push_back(i);
  const auto count = static_cast<std::int64_t>(places.size());
  return {padded(outputs[0], std::move(places), -1), counted(count)};
}

std::vector<literal> unique_reference(const object&, std::span<const literal> inputs, std::span<const shape> outputs) {
  const literal& x = inputs[0];
  const bool whole = is_integer(x.type().type);
  auto less = [&](std::int64_t a, std::int64_t b) { return whole ? x.at_int(a) < x.at_int(b) : x.at(a) < x.at(b); };
  integers order(static_cast<std::size_t>(x.type().element_count())), first, inverse(order.size()), counts;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, less);
  for (std::int64_t place : order) {
    if (first.empty() || less(first.back(), place)) first.push_back(place), counts.push_back(0);
    ++counts.back();
    inverse[static_cast<std::size_t>(place)] = static_cast<std::int64_t>(first.size()) - 1;
  }
  const std::size_t width = x.bytes().size() / order.size();
  std::vector<std::byte> values(x.bytes().size());
  for (std::size_t k = 0; k < first.size(); ++k)
    std::ranges::copy(x.bytes().subspan(static_cast<std::size_t>(first[k]) * width, width),
                      values.begin() + static_cast<std::ptrdiff_t>(k * width));
  const auto count = static_cast<std::int64_t>(first.size());
  return {literal(outputs[0], std::move(values)), padded(outputs[1], first, -1), padded(outputs[2], inverse, 0),
          padded(outputs[3], counts, 0), counted(count)};
}

std::vector<literal> non_max_suppression_reference(const object& o, std::span<const literal> inputs,
                                                   std::span<const shape> outputs) {
  auto corners = inputs[0].as<float>(), scores = inputs[1].as<float>();
  const auto images = inputs[1].type().dims[0].value(), classes = inputs[1].type().dims[1].value(),
             boxes = inputs[0].type().dims[1].value();
  const auto most = static_cast<std::size_t>(attribute_of<std::int64_t>(o, "max_output_boxes_per_class"));
  const double overlap_limit = attribute_of<double>(o, "iou_threshold"),
               score_limit = attribute_of<double>(o, "score_threshold");
  const bool centered = attribute_of<std::int64_t>(o, "center_point_box") != 0;
  integers rows;
  for (std::int64_t list = 0; list < images * classes; ++list) {
    auto score = scores.subspan(static_cast<std::size_t>(list * boxes), static_cast<std::size_t>(boxes));
    auto box_at = [&](std::int64_t i) {
      return box_of(corners.subspan(static_cast<std::size_t>((list / classes * boxes + i) * 4), 4), centered);
    };
    integers order, chosen;
    for (std::int64_t i = 0; i < boxes; ++i)
      if (score[static_cast<std::size_t>(i)] > score_limit) order.push_back(i);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
      return score[static_cast<std::size_t>(a)] > score[static_cast<std::size_t>(b)];
    });
    for (std::int64_t i : order) {
      if (chosen.size() == most) break;
      if (std::ranges::none_of(chosen, [&](std::int64_t c) { return overlap(box_at(c), box_at(i)) > overlap_limit; }))
        chosen.push_back(i);
    }
    for (std::int64_t i : chosen) rows.insert(rows.end(), {list / classes, list % classes, i});
  }
  const auto count = static_cast<std::int64_t>(rows.size()) / 3;
  return {padded(outputs[0], std::move(rows), -1), counted(count)};
}

std::vector<literal> dynamic_time_warping_reference(const object&, std::span<const literal> inputs,
                                                    std::span<const shape> outputs) {
  const auto costs = inputs[0].as<float>();
  const auto rows = inputs[0].type().dims[0].value(), columns = inputs[0].type().dims[1].value();
  constexpr float never = std::numeric_limits<float>::infinity();
  std::vector<float> best(costs.size());
  auto place = [&](std::int64_t r, std::int64_t c) { return static_cast<std::size_t>(r * columns + c); };
  auto before = [&](std::int64_t r, std::int64_t c) {
    return r < 0 && c < 0 ? 0 : r < 0 || c < 0 ? never : best[place(r, c)];
  };
  // 0: from above and left at once, 1: from above, 2: from the left.
  std::vector<int> steps(costs.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const float from[] = {before(r - 1, c - 1), before(r - 1, c), before(r, c - 1)};
      const int step = from[0] < from[1] && from[0] < from[2] ? 0 : from[1] < from[0] && from[1] < from[2] ? 1 : 2;
      steps[place(r, c)] = step, best[place(r, c)] = costs[place(r, c)] + from[step];
    }
  integers down, right;
  for (std::int64_t r = rows - 1, c = columns - 1; r >= 0 && c >= 0;) {
    down.push_back(r), right.push_back(c);
    if (r == 0 && c == 0) break;
    const int step = r == 0 ? 2 : c == 0 ? 1 : steps[place(r, c)];
    r -= step != 2, c -= step != 1;
  }
  std::ranges::reverse(down), std::ranges::reverse(right);
  const auto count = static_cast<std::int64_t>(down.size());
  down.resize(static_cast<std::size_t>(rows + columns)), right.resize(down.size());
  std::vector<std::int32_t> path(down.begin(), down.end());
  path.insert(path.end(), right.begin(), right.end());
  return {literal::of<std::int32_t>(outputs[0], path), counted(count)};
}

}  // namespace kiln::spirv
