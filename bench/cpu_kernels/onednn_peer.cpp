#include "peers.hpp"

#ifdef KILN_BENCH_ONEDNN
#include <dnnl.hpp>
#endif

namespace kiln::bench {

#ifdef KILN_BENCH_ONEDNN

namespace {

using namespace dnnl;
using dims = memory::dims;
using tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;

// Converts `user` to the layout `wanted`.
memory in_layout(const engine& e, stream& s, memory user, const memory::desc& wanted) {
  if (user.get_desc() == wanted) return user;
  memory other(wanted, e);
  reorder(user, other).execute(s, user, other);
  s.wait();
  return other;
}

memory wrap(const engine& e, const memory::desc& d, const float* data) {
  return memory(d, e, const_cast<float*>(data));
}

}  // namespace

std::optional<peer_run> onednn_peer(const kernel_case& c, const float* left, const float* right, const float* bias,
                                    float* result) {
  engine e(engine::kind::cpu, 0);
  auto s = std::make_shared<stream>(e);
  if (const auto* op = c.op.get_if<dot>()) {
    const std::int64_t m = c.left[0], k = c.left[1], n = c.right[op->transpose_b ? 0 : 1];
    memory::desc a({m, k}, f32, tag::ab), b({k, n}, f32, op->transpose_b ? tag::ba : tag::ab),
        any({k, n}, f32, tag::any), y({m, n}, f32, tag::ab);
    matmul::primitive_desc description(matmul::desc(a, any, y), e);
    memory packed = in_layout(e, *s, wrap(e, b, right), description.weights_desc());
    matmul primitive(description);
    std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, wrap(e, a, left)}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, wrap(e, y, result)}};
    return [=]() mutable {
      primitive.execute(*s, arguments);
      s->wait();
    };
  }
  const auto* op = c.op.get_if<convolution>();
  if (!op || c.left.size() != 4) return std::nullopt;
  const std::int64_t g = op->groups, ch = c.left[3] / g, f = c.right[3] / g;
  const std::int64_t oh = (c.left[1] + op->pads_begin[0] + op->pads_end[0] - c.right[0]) / op->strides[0] + 1,
                     ow = (c.left[2] + op->pads_begin[1] + op->pads_end[1] - c.right[1]) / op->strides[1] + 1;
  memory::desc x({c.left[0], c.left[3], c.left[1], c.left[2]}, f32, tag::nhwc),
      y({c.left[0], c.right[3], oh, ow}, f32, tag::nhwc), b({c.right[3]}, f32, tag::a);
  const dims w_dims = g == 1 ? dims{f, ch, c.right[0], c.right[1]} : dims{g, f, ch, c.right[0], c.right[1]};
  memory::desc w(w_dims, f32, g == 1 ? tag::hwio : tag::hwigo), any(w_dims, f32, tag::any);
  primitive_attr attributes;
  if (c.relu) {
    post_ops after;
    after.append_eltwise(1.f, algorithm::eltwise_relu, 0.f, 0.f);
    attributes.set_post_ops(after);
  }
  using conv = convolution_forward;
  const dims strides{op->strides[0], op->strides[1]}, dilations{op->dilations[0] - 1, op->dilations[1] - 1},
      before{op->pads_begin[0], op->pads_begin[1]}, after{op->pads_end[0], op->pads_end[1]};
  conv::desc description = c.relu ? conv::desc(prop_kind::forward_inference, algorithm::convolution_direct, x, any, b,
                                               y, strides, dilations, before, after)
                                  : conv::desc(prop_kind::forward_inference, algorithm::convolution_direct, x, any, y,
                                               strides, dilations, before, after);
  conv::primitive_desc chosen(description, attributes, e);
  memory packed = in_layout(e, *s, wrap(e, w, right), chosen.weights_desc());
  conv primitive(chosen);
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, wrap(e, x, left)}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, wrap(e, y, result)}};
  if (c.relu) arguments.insert({DNNL_ARG_BIAS, wrap(e, b, bias)});
  return [=]() mutable {
    primitive.execute(*s, arguments);
    s->wait();
  };
}

#else

std::optional<peer_run> onednn_peer(const kernel_case&, const float*, const float*, const float*, float*) {
  return std::nullopt;
}

#endif

}  // namespace kiln::bench
