#include "cases.hpp"

#include "ir/ops/elementwise.hpp"
#include "ir/ops/movement.hpp"

namespace kiln::bench {

namespace {

kernel_case matrices(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_b = false) {
  std::string name =
      "dot " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + (transpose_b ? " bT" : "");
  return {name,
          {m, k},
          transpose_b ? std::vector<std::int64_t>{n, k} : std::vector<std::int64_t>{k, n},
          dot{.transpose_b = transpose_b}};
}

// A square image and window with "same" padding.
kernel_case image(std::int64_t size, std::int64_t channels, std::int64_t features, std::int64_t window,
                  std::int64_t stride = 1, std::int64_t groups = 1, bool relu = false) {
  const std::int64_t total = std::max<std::int64_t>(0, window - stride);
  const std::int64_t begin = stride == 1 ? total / 2 : window / 2, end = stride == 1 ? total - total / 2 : window / 2;
  std::string name = "conv " + std::to_string(size) + "² " + std::to_string(channels) + "→" + std::to_string(features) +
                     " " + std::to_string(window) + "x" + std::to_string(window);
  if (stride > 1) name += " s" + std::to_string(stride);
  if (groups > 1) name += " g" + std::to_string(groups);
  if (relu) name += " relu";
  return {name,
          {1, size, size, channels},
          {window, window, channels / groups, features},
          convolution{{stride, stride}, {1, 1}, {begin, begin}, {end, end}, groups, tensor_layout::channels_last},
          relu};
}

}  // namespace

const std::vector<kernel_case>& kernel_cases() {
  static const std::vector<kernel_case> cases{
      matrices(512, 512, 512), matrices(1024, 1024, 1024), matrices(128, 3072, 768), matrices(128, 768, 3072),
      matrices(128, 768, 768, true), matrices(16, 4096, 4096), matrices(4, 4096, 4096), matrices(1, 4096, 4096),
      matrices(1, 4096, 4096, true), matrices(1, 1000, 2048), matrices(197, 197, 64, true), matrices(197, 64, 197),
      // resnet50
      image(224, 3, 64, 7, 2), image(56, 64, 64, 1), image(56, 64, 64, 3), image(56, 64, 64, 3, 1, 1, true),
      image(56, 64, 256, 1), image(56, 256, 64, 1), image(56, 256, 128, 1), image(56, 128, 128, 3, 2),
      image(28, 128, 512, 1), image(56, 256, 512, 1, 2), image(28, 512, 128, 1), image(28, 128, 128, 3),
      image(28, 512, 256, 1), image(28, 256, 256, 3, 2), image(14, 256, 1024, 1), image(28, 512, 1024, 1, 2),
      image(14, 1024, 256, 1), image(14, 256, 256, 3), image(14, 1024, 512, 1), image(14, 512, 512, 3, 2),
      image(7, 512, 2048, 1), image(14, 1024, 2048, 1, 2), image(7, 2048, 512, 1), image(7, 512, 512, 3),
      // depthwise and grouped
      image(56, 64, 64, 3, 1, 64), image(112, 32, 32, 3, 1, 32), image(112, 96, 96, 3, 2, 96),
      image(28, 192, 192, 3, 1, 192), image(14, 576, 576, 3, 1, 576), image(7, 960, 960, 3, 1, 960),
      image(56, 128, 128, 3, 1, 32)};
  return cases;
}

std::unique_ptr<module> make_fusion(const kernel_case& c) {
  auto m = std::make_unique<module>("kernel");
  auto type = [](const std::vector<std::int64_t>& dims) {
    return shape{element_type::f32, std::vector<dim>(dims.begin(), dims.end())};
  };
  value left = m->add_parameter("left", type(c.left)), right = m->add_parameter("right", type(c.right));
  value result = m->add(c.op, {left, right});
  if (c.relu) {
    const std::vector<dim> dims = result.type().dims;
    value bias = m->add_parameter("bias", {element_type::f32, {dims.back()}});
    value sum = m->add(elementwise{scalar_function::add}, {result, m->add(broadcast{dims}, {bias})});
    result = m->add(elementwise{scalar_function::relu}, {sum});
  }
  m->set_outputs({result}, {"y"});
  return m;
}

double giga_operations(const kernel_case& c) {
  const std::vector<shape> result =
      c.op.infer(std::vector<shape>{{element_type::f32, std::vector<dim>(c.left.begin(), c.left.end())},
                                    {element_type::f32, std::vector<dim>(c.right.begin(), c.right.end())}});
  double products = static_cast<double>(result[0].element_count());
  if (c.op.is<dot>()) products *= static_cast<double>(c.left.back());
  else
    for (std::size_t i = 0; i + 1 < c.right.size(); ++i) products *= static_cast<double>(c.right[i]);
  return 2e-9 * products;
}

}  // namespace kiln::bench
