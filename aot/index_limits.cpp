#include "aot/index_limits.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "ir/ops/all.hpp"

namespace kiln {
namespace {

// Upper bounds of the elements of integer tensors that are not negative.
class largest_elements {
 public:
  std::optional<dim> of(value v) {
    const auto key = std::pair(v.producer, v.index);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    known_[key] = std::nullopt;
    return known_[key] = found(v);
  }

 private:
  // The least and the largest element of a constant.
  static std::optional<std::pair<std::int64_t, std::int64_t>> range_of(value v) {
    const literal* data = module::constant(v);
    constexpr std::int64_t most = 1024;
    if (!data || !is_integer(data->type().type)) return std::nullopt;
    const std::int64_t count = data->type().element_count();
    if (count < 1 || count > most) return std::nullopt;
    std::pair range(data->at_int(0), data->at_int(0));
    for (std::int64_t i = 1; i < count; ++i)
      range = {std::min(range.first, data->at_int(i)), std::max(range.second, data->at_int(i))};
    return range;
  }
  static value without_movement(value v) {
    while (v.producer->op().is<broadcast>() || v.producer->op().is<reshape>()) v = v.producer->inputs()[0];
    return v;
  }
  static std::optional<dim> extent_product(const shape& type, const std::vector<std::int64_t>& axes) {
    dim product = 1;
    for (std::int64_t axis : axes) product = product * type.dims[static_cast<std::size_t>(axis)];
    return product;
  }

  std::optional<dim> found(value v) {
    const instruction& i = *v.producer;
    const auto range = range_of(v);
    if (range) return dim(std::max<std::int64_t>(range->second, 0));
    if (i.op().is<parameter>()) {
      const bool is_mask = module::parameter_name(v).find("mask") != std::string::npos;
      return is_mask && (is_integer(v.type().type) || v.type().type == element_type::boolean) ? std::optional<dim>(1)
                                                                                              : std::nullopt;
    }
    if (const auto* o = i.op().get_if<iota>()) return v.type().dims[static_cast<std::size_t>(o->axis)] - dim(1);
    if (i.inputs().empty()) return std::nullopt;
    const value first = i.inputs()[0];
    if (v.type().type == element_type::boolean) return dim(1);
    if (i.op().is<convert>() || i.op().is<broadcast>() || i.op().is<reshape>() || i.op().is<transpose>() ||
        i.op().is<slice>())
      return is_integer(v.type().type) ? of(first) : std::nullopt;
    if (const auto* g = i.op().get_if<gather>()) return element_of(*g, i);
    if (const auto* r = i.op().get_if<reduce>()) {
      const auto most = of(first);
      if (!most || r->kind != reduction_kind::sum) return r->kind == reduction_kind::max ? most : std::nullopt;
      return *most * *extent_product(first.type(), r->axes);
    }
    if (const auto* c = i.op().get_if<cumulative_sum>()) {
      const auto most = of(first);
      return most ? std::optional(*most * first.type().dims[static_cast<std::size_t>(c->axis)]) : std::nullopt;
    }
    if (const auto* e = i.op().get_if<elementwise>(); e && i.inputs().size() == 2)
      return combined(e->function, first, i.inputs()[1]);
    return std::nullopt;
  }

  // An element of a list of numbers, as exporters write sizes.
  std::optional<dim> element_of(const gather& g, const instruction& i) {
    const auto* list = i.inputs()[0].producer->op().get_if<concat>();
    const auto place = range_of(i.inputs()[1]);
    if (!list || !place || place->first != place->second || g.axis != 0) return std::nullopt;
    std::int64_t begin = 0;
    for (value part : i.inputs()[0].producer->inputs()) {
      if (part.type().rank() != 1 || !part.type().dims[0].is_static()) return std::nullopt;
      const std::int64_t end = begin + part.type().dims[0].value();
      if (place->first >= begin && place->first < end) return of(part);
      begin = end;
    }
    return std::nullopt;
  }

  std::optional<dim> combined(scalar_function function, value a, value b) {
    const auto left = of(a), right = of(b);
    if (!left) return std::nullopt;
    if (function == scalar_function::sub) {
      const auto range = range_of(without_movement(b));
      return range ? std::optional(*left - dim(range->first)) : std::nullopt;
    }
    if (!right) return std::nullopt;
    if (function == scalar_function::add) {
      // A constant may be negative.
      const auto range = range_of(without_movement(b));
      return *left + (range ? dim(range->second) : *right);
    }
    if (function == scalar_function::mul) return *left * *right;
    return std::nullopt;
  }

  std::map<std::pair<const instruction*, std::uint32_t>, std::optional<dim>> known_;
};

}  // namespace

void record_index_limits(program& p) {
  largest_elements largest;
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions()) {
      const auto* g = i.op().get_if<gather>();
      if (!g) continue;
      const dim& extent = i.inputs()[0].type().dims[static_cast<std::size_t>(g->axis)];
      if (!extent.is_static() || !module::constant(i.inputs()[0])) continue;
      const auto most = largest.of(i.inputs()[1]);
      if (!most || most->is_static()) continue;
      std::string& limit = p.metadata["index_limit:" + most->str()];
      if (limit.empty() || extent.value() < std::stoll(limit)) limit = std::to_string(extent.value());
    }
}

}  // namespace kiln
