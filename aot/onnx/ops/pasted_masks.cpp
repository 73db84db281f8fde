#include "aot/onnx/ops/pasted_masks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

#include "aot/onnx/graph.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// What a loop pastes: masks f32 [N, 1, h, w], boxes i64 [N, 4] with corners x, y, x, y, into images of this size.
struct pasting {
  std::string masks_name, boxes_name;
  value masks, boxes;
  dim height, width;
};

int count_of(const ::onnx::GraphProto& body, std::string_view op) {
  return static_cast<int>(std::ranges::count(body.node(), op, [](const auto& node) { return node.op_type(); }));
}

// The loop's parts by their types, if the body could paste masks.
std::optional<pasting> parts_of(node& n, const ::onnx::GraphProto& body) {
  if (n.inputs() != 3 || !n.has(0) || body.input_size() != 3 || body.output_size() != 2) return std::nullopt;
  if (count_of(body, "Resize") != 1 || count_of(body, "ConstantOfShape") < 4 || count_of(body, "Slice") < 2 ||
      count_of(body, "Concat") < 3)
    return std::nullopt;
  const auto& images = n.dims(2);
  if (n.type(2).type != element_type::f32 || images.size() != 3 || !(images[0] == dim(0))) return std::nullopt;
  pasting found;
  found.height = images[1], found.width = images[2];
  for (const auto& node : body.node()) {
    if (node.op_type() != "Gather" || node.input(1) != body.input(0).name()) continue;
    const value from = n.owner.find(node.input(0));
    if (!from) return std::nullopt;
    const shape& type = from.type();
    const bool is_mask = type.type == element_type::f32 && type.rank() == 4 && type.dims[1] == dim(1) &&
                         type.dims[2].is_static() && type.dims[3].is_static();
    const bool is_box = type.type == element_type::i64 && type.rank() == 2 && type.dims[1] == dim(4);
    if (!is_mask && !is_box) return std::nullopt;
    (is_mask ? found.masks : found.boxes) = from;
    (is_mask ? found.masks_name : found.boxes_name) = node.input(0);
  }
  if (!found.masks || !found.boxes) return std::nullopt;
  const auto trips = n.b.known(n.in(0));
  if (!trips || !(trips->front() == found.masks.type().dims[0]) || !(found.boxes.type().dims[0] == trips->front()))
    return std::nullopt;
  return found;
}

// The weights f32 [N, size, length] with which the positions of an image come from those of a mask, which lies between
// the places `first` and `last` (i64 [N, 1]) of the image.
value weights(builder& b, const dim& count, value first, value last, const dim& size, std::int64_t length) {
  const std::vector<dim> dims{count, size, length}, corner{count, 1, 1};
  first = b.with_dims(first, corner), last = b.with_dims(last, corner);
  const value span = b.binary(fn::max, b.binary(fn::add, b.binary(fn::sub, last, first), 1.0), 1.0);
  const value place = b.iota_like(element_type::i64, {1, size, 1}, 1);
  const value here = b.binary(fn::sub, place, first);
  const value inside =
      b.binary(fn::logical_and, b.binary(fn::greater_equal, here, 0.0), b.binary(fn::less, here, span));
  const value scale = b.binary(fn::div, b.to_type(span, element_type::f32), static_cast<double>(length));
  value from = b.binary(fn::add, b.to_type(here, element_type::f32), 0.5);
  from = b.binary(fn::sub, b.binary(fn::div, from, scale), 0.5);
  from = b.binary(fn::min, b.binary(fn::max, from, 0.0), static_cast<double>(length - 1));
  const value distance = b.unary(fn::abs, b.binary(fn::sub, from, b.iota_like(element_type::f32, dims, 2)));
  const value one = b.scalar(element_type::f32, 1), none = b.scalar(element_type::f32, 0);
  return b.where(inside, b.binary(fn::max, b.binary(fn::sub, one, distance), none), none);
}

value paste(builder& b, const pasting& what) {
  const dim count = what.masks.type().dims[0];
  const std::int64_t rows = what.masks.type().dims[2].value(), columns = what.masks.type().dims[3].value();
  auto corner = [&](std::int64_t i) { return b.slice_axis(what.boxes, 1, i, 1); };
  const value down = weights(b, count, corner(1), corner(3), what.height, rows);
  const value across = weights(b, count, corner(0), corner(2), what.width, columns);
  const value masks = b.with_dims(what.masks, {count, rows, columns});
  return b.add(dot{false, true}, {b.add(dot{}, {down, masks}), across});
}

void add_tensor(::onnx::GraphProto& graph, const std::string& name, const literal& data) {
  auto& made = *graph.add_initializer();
  made.set_name(name);
  made.set_data_type(data.type().type == element_type::f32       ? ::onnx::TensorProto::FLOAT
                     : data.type().type == element_type::boolean ? ::onnx::TensorProto::BOOL
                     : data.type().type == element_type::i32     ? ::onnx::TensorProto::INT32
                                                                 : ::onnx::TensorProto::INT64);
  for (const dim& d : data.type().dims) made.add_dims(d.value());
  made.set_raw_data(data.bytes().data(), data.bytes().size());
}

// A value from outside of the body for a trial: a constant, or the height or width of the images.
std::optional<literal> captured(const builder& b, value v, const pasting& what, const pasting& trial) {
  constexpr std::array types{element_type::f32, element_type::boolean, element_type::i32, element_type::i64};
  if (!v || std::ranges::find(types, v.type().type) == types.end()) return std::nullopt;
  if (auto constant = b.constant_of(v)) return constant;
  const auto known = b.known(v);
  if (!known || known->size() != 1 || is_float(v.type().type)) return std::nullopt;
  const dim size = known->front() == what.height ? trial.height : trial.width;
  if (!(known->front() == what.height) && !(known->front() == what.width)) return std::nullopt;
  std::vector<std::byte> bytes(v.type().bytes());
  store_integer(v.type().type, bytes.data(), 0, size.value());
  return literal(v.type(), std::move(bytes));
}

// One trip of the body as a model, for masks and a box of the trial.
std::optional<std::string> trial_model(node& n, const ::onnx::GraphProto& body, const pasting& what,
                                       const pasting& trial) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  for (const auto& [domain, version] : n.owner.state().opsets) {
    auto& opset = *model.add_opset_import();
    opset.set_domain(domain), opset.set_version(version);
  }
  auto& graph = *model.mutable_graph();
  graph.set_name("trial");
  *graph.mutable_node() = body.node();
  *graph.mutable_initializer() = body.initializer();
  *graph.add_output() = body.output(1);
  graph.mutable_output(0)->clear_type();
  add_tensor(graph, body.input(0).name(), literal::of<std::int64_t>({element_type::i64, {}}, {0}));
  add_tensor(graph, body.input(1).name(), literal::scalar(element_type::boolean, 1));
  add_tensor(graph, body.input(2).name(), literal({element_type::f32, {0, trial.height, trial.width}}, {}));
  add_tensor(graph, what.masks_name, *module::constant(trial.masks));
  add_tensor(graph, what.boxes_name, *module::constant(trial.boxes));
  for (const std::string& name : outer_names(body)) {
    if (name == what.masks_name || name == what.boxes_name) continue;
    const auto data = captured(n.b, n.owner.find(name), what, trial);
    if (!data) return std::nullopt;
    add_tensor(graph, name, *data);
  }
  return model.SerializeAsString();
}

// Whether the body gives what paste() gives for a box.
bool agrees(node& n, const ::onnx::GraphProto& body, const pasting& what, const std::array<std::int64_t, 4>& box) {
  program expected;
  dim_knowledge known;
  import_budget budget(std::size_t{1} << 12);
  builder b(expected.main(), known, budget);
  pasting trial = what;
  if (!trial.height.is_static()) trial.height = 17;
  if (!trial.width.is_static()) trial.width = what.width == what.height ? 17 : 23;
  const shape type{element_type::f32, {1, 1, what.masks.type().dims[2], what.masks.type().dims[3]}};
  std::vector<float> numbers(static_cast<std::size_t>(type.element_count()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::fmod(static_cast<float>(i) * 0.37f, 1.0f);
  trial.masks = expected.main().add_constant(literal::of<float>(type, numbers));
  trial.boxes = expected.main().add_constant(
      literal::of<std::int64_t>({element_type::i64, {1, 4}}, std::vector<std::int64_t>(box.begin(), box.end())));
  expected.main().set_outputs({paste(b, trial)}, {"y"});
  const auto bytes = trial_model(n, body, what, trial);
  if (!bytes) return false;
  const program model = import_onnx(std::as_bytes(std::span(*bytes)));
  const literal is = evaluate(model.main(), {})[0], wanted = evaluate(expected.main(), {})[0];
  if (is.type() != wanted.type()) return false;
  for (std::int64_t i = 0; i < is.type().element_count(); ++i)
    if (!(std::abs(is.at(i) - wanted.at(i)) < 1e-4)) return false;
  return true;
}

}  // namespace

std::optional<value> pasted_masks(node& n, const ::onnx::GraphProto& body) {
  const auto what = parts_of(n, body);
  if (!what) return std::nullopt;
  // Within the image, larger than the mask or smaller, over its borders, of one pixel.
  constexpr std::array<std::array<std::int64_t, 4>, 4> boxes{
      {{2, 1, 9, 13}, {0, 0, 16, 16}, {-3, 5, 8, 40}, {4, 7, 4, 7}}};
  try {
    for (const auto& box : boxes)
      if (!agrees(n, body, *what, box)) return std::nullopt;
  } catch (const error&) {  // it does something else
    return std::nullopt;
  }
  return paste(n.b, *what);
}

}  // namespace kiln::onnx_import
