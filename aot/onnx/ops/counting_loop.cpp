#include "aot/onnx/ops/counting_loop.hpp"

#include <algorithm>
#include <array>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {
namespace {

// The loop goes on while `start + trips * step < limit`, where step is positive.
struct comparison {
  dim start, limit;
  std::int64_t step;
};

// The comparisons of a list all hold if and only if the loop goes on.
using comparisons = std::vector<comparison>;

// `a OP b` is `a < b + added` or, if swapped, `b < a + added`.
struct comparison_row {
  std::string_view name;
  bool swapped;
  std::int64_t added;
};
constexpr std::array<comparison_row, 4> comparison_rows{
    {{"Less", false, 0}, {"LessOrEqual", false, 1}, {"Greater", true, 0}, {"GreaterOrEqual", true, 1}}};

class condition_reader {
 public:
  condition_reader(node& n, const ::onnx::GraphProto& body) : n_(n), body_(body) {}

  // Returns nullopt if the body's condition is of another form.
  std::optional<comparisons> read() const {
    comparisons all;
    if (!read(body_.output(0).name(), all)) return std::nullopt;
    return all;
  }

 private:
  const ::onnx::NodeProto* producer_of(const std::string& name) const {
    auto found =
        std::ranges::find_if(body_.node(), [&](const auto& each) { return std::ranges::count(each.output(), name); });
    return found == body_.node().end() ? nullptr : &*found;
  }

  // Follows operators that keep the value, up to a name that another operator or none computes.
  std::string source_of(std::string name) const {
    for (int step = 0; step < 8; ++step) {
      const ::onnx::NodeProto* from = producer_of(name);
      const bool keeps = from && from->input_size() > 0 &&
                         (from->op_type() == "Cast" || from->op_type() == "CastLike" || from->op_type() == "Identity");
      if (!keeps) break;
      name = from->input(0);
    }
    return name;
  }

  // The position among the carried values of the body's input of this name.
  std::optional<int> carried_position(const std::string& name) const {
    for (int i = 2; i < body_.input_size() && i <= body_.output_size(); ++i)
      if (body_.input(i).name() == name) return i - 2;
    return std::nullopt;
  }

  std::optional<dim> only_element(const std::optional<known_elements>& known) const {
    return known && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
  }

  std::optional<dim> number_of(const ::onnx::TensorProto& tensor) const {
    if (std::ranges::any_of(tensor.dims(), [](std::int64_t size) { return size != 1; })) return std::nullopt;
    ::onnx::TensorProto copy = tensor;
    return only_element(n_.b.known(n_.b.constant(n_.owner.tensor(copy, "'" + tensor.name() + "'"))));
  }

  std::optional<dim> initial_number(int carried) const {
    const auto input = static_cast<std::size_t>(carried) + 2;
    return n_.has(input) ? only_element(n_.b.known(n_.in(input))) : std::nullopt;
  }

  // Returns the value as a dim if it is known at import and the same in all trips.
  std::optional<dim> number(const std::string& name) const {
    const std::string source = source_of(name);
    if (const ::onnx::NodeProto* from = producer_of(source)) {
      if (from->op_type() != "Constant" || from->attribute_size() != 1) return std::nullopt;
      const auto& attribute = from->attribute(0);
      if (attribute.name() == "value_int") return dim(attribute.i());
      return attribute.name() == "value" ? number_of(attribute.t()) : std::nullopt;
    }
    for (const auto& tensor : body_.initializer())
      if (tensor.name() == source) return number_of(tensor);
    if (const auto position = carried_position(source))
      return source_of(body_.output(*position + 1).name()) == source ? initial_number(*position) : std::nullopt;
    if (std::ranges::any_of(body_.input(), [&](const auto& each) { return each.name() == source; }))
      return std::nullopt;
    value outer = n_.owner.find(source);
    return outer ? only_element(n_.b.known(outer)) : std::nullopt;
  }

  struct index {
    dim start;
    std::int64_t step;  // not 0
  };

  // Returns the carried value that `name` is the next value of, if it changes by a constant.
  std::optional<index> next_index(const std::string& name) const {
    const std::string source = source_of(name);
    const ::onnx::NodeProto* from = producer_of(source);
    if (!from || from->input_size() != 2 || (from->op_type() != "Add" && from->op_type() != "Sub")) return std::nullopt;
    const bool subtracts = from->op_type() == "Sub";
    for (int side : {0, 1}) {
      const auto position = carried_position(source_of(from->input(side)));
      if (!position || (subtracts && side == 1) || source_of(body_.output(*position + 1).name()) != source) continue;
      const auto start = initial_number(*position), step = number(from->input(1 - side));
      if (start && step && step->is_static() && step->value() != 0 && std::abs(step->value()) < largest_dim)
        return index{*start, subtracts ? -step->value() : step->value()};
    }
    return std::nullopt;
  }

  bool read(const std::string& condition, comparisons& all) const {
    const ::onnx::NodeProto* from = producer_of(source_of(condition));
    if (!from || from->input_size() != 2 || all.size() > 8) return false;
    if (from->op_type() == "And") return read(from->input(0), all) && read(from->input(1), all);
    const auto row = std::ranges::find(comparison_rows, from->op_type(), &comparison_row::name);
    if (row == comparison_rows.end()) return false;
    const std::string &left = from->input(row->swapped), &right = from->input(!row->swapped);
    // left < right + added. Whichever of them is the index, the other one stays as it is.
    if (auto i = next_index(left); i && i->step > 0)
      if (auto limit = number(right)) return all.push_back({i->start, *limit + dim(row->added), i->step}), true;
    if (auto i = next_index(right); i && i->step < 0)
      if (auto limit = number(left))
        return all.push_back({dim(0) - i->start - dim(row->added), dim(0) - *limit, -i->step}), true;
    return false;
  }

  node& n_;
  const ::onnx::GraphProto& body_;
};

std::optional<dim> number_of(const builder& b, value v) {
  if (auto known = b.known(v); known && known->size() == 1) return known->front();
  const auto fractions = b.fractions_of_value(v);
  const auto integers = fractions ? integers_of(*fractions) : std::nullopt;
  return integers && integers->size() == 1 ? std::optional(integers->front()) : std::nullopt;
}

struct start_row {
  scalar_function function;
  bool swapped;
  std::int64_t added;
};
constexpr std::array<start_row, 4> start_rows{{{scalar_function::less, false, 0},
                                               {scalar_function::less_equal, false, 1},
                                               {scalar_function::greater, true, 0},
                                               {scalar_function::greater_equal, true, 1}}};

// Reads the condition at the start, which is true or says that some comparisons hold for their starts, and sets the
// least numbers of trips of these comparisons to 0. Returns false if it is of another form.
bool read_start(const builder& b, value condition, const comparisons& all, std::vector<std::int64_t>& least) {
  if (const auto known = b.known(condition); known && known->size() == 1 && known->front().is_static())
    return !(known->front() == dim(0));
  if (!condition.producer) return false;
  const auto& inputs = condition.producer->inputs();
  const operation& op = condition.producer->op();
  if (op.get_if<convert>() || op.get_if<reshape>()) return read_start(b, inputs[0], all, least);
  const auto* e = op.get_if<elementwise>();
  if (!e || inputs.size() != 2) return false;
  if (e->function == scalar_function::logical_and)
    return read_start(b, inputs[0], all, least) && read_start(b, inputs[1], all, least);
  const auto row = std::ranges::find(start_rows, e->function, &start_row::function);
  const auto left = number_of(b, inputs[0]), right = number_of(b, inputs[1]);
  if (row == start_rows.end() || !left || !right) return false;
  const dim span = (row->swapped ? *left - *right : *right - *left) + dim(row->added);
  bool found = false;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].limit - all[i].start == span) found = true, least[i] = 0;
  return found;
}

}  // namespace

std::optional<counting_loop> counting_loop::find(node& n, const ::onnx::GraphProto& body) {
  if (body.input_size() < 3 || body.output_size() < 2) return std::nullopt;
  // A trip count beside the condition is a second limit. torch.jit.script writes the largest number.
  std::optional<dim> most;
  if (n.has(0)) {
    const auto given = n.b.known(n.in(0));
    if (!given || given->size() != 1) return std::nullopt;
    if (!(given->front() == dim(INT64_MAX))) most = given->front();
  }
  const auto all = condition_reader(n, body).read();
  if (!all) return std::nullopt;
  // The first trip is made if the condition at the start holds, whatever the other comparisons say.
  std::vector<std::int64_t> least(all->size(), 1);
  if (n.has(1) && !read_start(n.b, n.in(1), *all, least)) return std::nullopt;
  const dim_facts& facts = n.b.facts();
  std::optional<dim> trips = most;
  for (std::size_t i = 0; i < all->size(); ++i) {
    const comparison& each = (*all)[i];
    const dim span = each.limit - each.start,
              here = facts.max(each.step == 1 ? span : (span + dim(each.step - 1)) / dim(each.step), least[i]);
    trips = trips ? facts.min(*trips, here) : here;
  }
  counting_loop made{n.proto, n.all()};
  made.inputs[0] = n.b.data_of(*trips);
  made.inputs[1] = {};
  for (auto& a : *made.proto.mutable_attribute())
    if (a.name() == "body") *a.mutable_g() = body, a.mutable_g()->mutable_output(0)->set_name(body.input(1).name());
  return made;
}

}  // namespace kiln::onnx_import
