#include "aot/onnx/ops/counting_loop.hpp"

#include "aot/onnx/ops/loop_condition.hpp"

namespace kiln::onnx_import {
namespace {

// Reads the condition at the start, which is true, a known flag, or says that some countdowns are positive at their
// start. Multiplies `flag` by a flag, and sets the least numbers of trips of these countdowns to 0. Returns false if it
// is of another form.
bool read_start(const builder& b, value condition, const std::vector<countdown>& all, std::vector<std::int64_t>& least,
                dim& flag) {
  if (const auto known = b.known(condition); known && known->size() == 1) {
    const dim& each = known->front();
    if (each.is_static()) return !(each == dim(0));
    if (each.is_symbol() && b.facts().lower(each) == 0 && b.facts().upper(each) == 1) {
      flag = flag * each;
      return true;
    }
  }
  if (!condition.producer) return false;
  const auto& inputs = condition.producer->inputs();
  const operation& op = condition.producer->op();
  if (op.get_if<convert>() || op.get_if<reshape>()) return read_start(b, inputs[0], all, least, flag);
  if (const auto* e = op.get_if<elementwise>(); e && e->function == scalar_function::logical_and)
    return read_start(b, inputs[0], all, least, flag) && read_start(b, inputs[1], all, least, flag);
  const auto span = compared_numbers(b, condition);
  bool found = false;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (span && all[i].start == *span) found = true, least[i] = 0;
  return found;
}

}  // namespace

std::optional<counting_loop> counting_loop::find(node& n, const ::onnx::GraphProto& body) {
  if (body.input_size() < 3 || body.output_size() < 2) return std::nullopt;
  // A trip count beside the condition is a second limit. torch.jit.script writes the largest number.
  std::optional<dim> trips;
  if (n.has(0)) {
    const auto given = n.b.known(n.in(0));
    if (!given || given->size() != 1) return std::nullopt;
    if (!(given->front() == dim(INT64_MAX))) trips = given->front();
  }
  const loop_condition condition = loop_condition::read(n, body);
  if (!condition.complete) return std::nullopt;
  // The first trip is made if the condition at the start holds, whatever the other comparisons say.
  std::vector<std::int64_t> least(condition.countdowns.size(), 1);
  dim flag = 1;
  if (n.has(1) && !read_start(n.b, n.in(1), condition.countdowns, least, flag)) return std::nullopt;
  const dim_facts& facts = n.b.facts();
  for (std::size_t i = 0; i < least.size(); ++i) {
    const dim here = condition.countdowns[i].trips(facts, least[i]);
    trips = trips ? facts.min(*trips, here) : here;
  }
  counting_loop made{n.proto, n.all()};
  made.inputs[0] = n.b.data_of(flag * *trips);
  made.inputs[1] = {};
  for (auto& a : *made.proto.mutable_attribute())
    if (a.name() == "body") *a.mutable_g() = body, a.mutable_g()->mutable_output(0)->set_name(body.input(1).name());
  return made;
}

}  // namespace kiln::onnx_import
