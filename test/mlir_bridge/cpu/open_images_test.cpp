// Open kernels of images: convolutions, pooling and resizes, correct for all sizes.
#include <gtest/gtest.h>

#include "open_case.hpp"

namespace kiln::test {
namespace {

TEST(open_kernels, convolutions) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  struct form {
    std::int64_t channels, features, groups, window, stride, dilation, pad;
  };
  for (const form& f :
       {form{3, 40, 1, 3, 2, 1, 1}, {16, 24, 1, 1, 1, 1, 0}, {20, 20, 20, 3, 1, 1, 1}, {8, 12, 2, 2, 1, 2, 0}}) {
    check_open(
        {f32({batch, height, width, f.channels}), f32({f.window, f.window, f.channels / f.groups, f.features}),
         f32({f.features})},
        [&](module& m, const arguments& in) {
          const convolution op{
              {f.stride, f.stride},        {f.dilation, f.dilation}, {f.pad, f.pad}, {f.pad, f.pad}, f.groups,
              tensor_layout::channels_last};
          value made = m.add(op, {in[0], in[1]});
          return arguments{add(m, made, m.add(broadcast{made.type().dims}, {in[2]}))};
        },
        {{{"batch", 1}, {"height", 3}, {"width", 3}},
         {{"batch", 2}, {"height", 7}, {"width", 19}},
         {{"batch", 1}, {"height", 16}, {"width", 33}}},
        0.5, tolerance{1e-4, 1e-5});
  }
}

// Images of narrow floats are converted once, those of few channels before they are copied with their padding.
TEST(open_kernels, convolutions_of_narrow_floats) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  for (element_type type : {element_type::f16, element_type::bf16})
    for (std::int64_t channels : {3, 32})
      check_open(
          {typed(type, {batch, height, width, channels}), typed(type, {3, 3, channels, 40})},
          [&](module& m, const arguments& in) {
            const convolution op{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, tensor_layout::channels_last};
            return arguments{m.add(op, {in[0], in[1]})};
          },
          {{{"batch", 1}, {"height", 3}, {"width", 3}}, {{"batch", 2}, {"height", 7}, {"width", 19}}}, 0.2,
          tolerance{2e-2, 2e-2});
}

// Lines that are shorter than a tile of pixels and than an item's part, and longer.
TEST(open_kernels, depthwise_convolutions) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  struct form {
    std::int64_t channels, window, stride, dilation, pad;
  };
  for (const form& f : {form{40, 3, 1, 1, 1}, {20, 3, 2, 1, 1}, {32, 3, 1, 2, 2}, {8, 9, 1, 1, 4}, {16, 2, 1, 1, 0}})
    check_open(
        {f32({batch, height, width, f.channels}), f32({f.window, f.window, 1, f.channels}),
         f32({batch, 1, 1, f.channels})},
        [&](module& m, const arguments& in) {
          const convolution op{{f.stride, f.stride}, {f.dilation, f.dilation},    {f.pad, f.pad}, {f.pad, f.pad},
                               f.channels,           tensor_layout::channels_last};
          const value made = m.add(op, {in[0], in[1]});
          return arguments{add(m, made, m.add(broadcast{made.type().dims}, {in[2]}))};
        },
        {{{"batch", 1}, {"height", 3}, {"width", 3}},
         {{"batch", 2}, {"height", 5}, {"width", 14}},
         {{"batch", 1}, {"height", 2}, {"width", 70}},
         {{"batch", 1}, {"height", 9}, {"width", 131}}},
        0.5, tolerance{1e-4, 1e-5});
}

TEST(open_kernels, depthwise_convolutions_of_signals) {
  check_open(
      {f32({batch, seq, 24}), f32({5, 1, 24})},
      [&](module& m, const arguments& in) {
        return arguments{m.add(convolution{{1}, {1}, {2}, {2}, 24, tensor_layout::channels_last}, {in[0], in[1]})};
      },
      sizes_of_two(), 0.5, tolerance{1e-4, 1e-5});
}

// Few patches are summed directly, many by Winograd's filtering.
TEST(open_kernels, convolutions_with_fewer_products) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  std::vector<dim_bindings> sizes;
  for (std::int64_t h : {1, 4, 7, 18})
    for (std::int64_t w : {1, 8, 9, 33}) sizes.push_back({{"batch", 1 + h % 3}, {"height", h}, {"width", w}});
  for (bool long_epilogue : {false, true})
    check_open(
        {f32({batch, height, width, 32}), f32({3, 3, 32, 96})},
        [&](module& m, const arguments& in) {
          const convolution op{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, tensor_layout::channels_last};
          const value made = m.add(op, {in[0], in[1]});
          return arguments{long_epilogue ? m.add(elementwise{scalar_function::tanh}, {made}) : made};
        },
        sizes, 0.2, tolerance{1e-4, 1e-5});
}

TEST(open_kernels, convolutions_of_bytes) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  struct form {
    std::int64_t channels, features, groups, window, stride, pad;
  };
  for (element_type image : {element_type::u8, element_type::i8})
    for (const form& f : {form{16, 40, 1, 3, 1, 1}, {8, 12, 2, 2, 2, 0}, {3, 24, 1, 7, 2, 3}})
      check_open({typed(image, {batch, height, width, f.channels}),
                  typed(element_type::i8, {f.window, f.window, f.channels / f.groups, f.features})},
                 [&](module& m, const arguments& in) {
                   const convolution op{{f.stride, f.stride}, {1, 1},   {f.pad, f.pad},
                                        {f.pad, f.pad},       f.groups, tensor_layout::channels_last};
                   return arguments{m.add(op, {in[0], in[1]})};
                 },
                 {{{"batch", 1}, {"height", 3}, {"width", 3}}, {{"batch", 2}, {"height", 7}, {"width", 19}}});
}

TEST(open_kernels, channels_of_a_larger_image) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  const std::vector<dim_bindings> sizes{{{"batch", 1}, {"height", 3}, {"width", 3}},
                                        {{"batch", 2}, {"height", 7}, {"width", 19}}};
  const auto part = [&](module& m, value image) {
    return m.add(slice{{0, 0, 0, 8}, {batch, height, width, 20}, {1, 1, 1, 1}}, {image});
  };
  for (std::int64_t groups : {1, 2, 20})
    check_open(
        {f32({batch, height, width, 40}), f32({3, 3, 20 / groups, 40})},
        [&](module& m, const arguments& in) {
          const convolution op{{1, 2}, {1, 1}, {1, 1}, {1, 1}, groups, tensor_layout::channels_last};
          return arguments{m.add(op, {part(m, in[0]), in[1]})};
        },
        sizes, 0.5, tolerance{1e-4, 1e-5});
  const pooling op{pooling_kind::max,           {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false, false,
                   tensor_layout::channels_last};
  check_open(
      {f32({batch, height, width, 40})},
      [&](module& m, const arguments& in) { return arguments{m.add(op, {part(m, in[0])})}; }, sizes);
}

TEST(open_kernels, pooling) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  for (pooling_kind kind : {pooling_kind::max, pooling_kind::average})
    for (bool counts : {false, true}) {
      const pooling op{kind, {3, 2}, {2, 1}, {1, 2}, {1, 1}, {1, 0}, counts, false, tensor_layout::channels_last};
      check_open({f32({batch, height, width, 21})},
                 [&](module& m, const arguments& in) { return arguments{m.add(op, {in[0]})}; },
                 {{{"batch", 1}, {"height", 3}, {"width", 4}}, {{"batch", 2}, {"height", 9}, {"width", 14}}});
    }
}

// `past` is a size of the result that has nothing to do with `seq`.
TEST(open_kernels, resizes) {
  std::vector<dim_bindings> sizes;
  for (std::int64_t s : {1, 5, 49, 130})
    for (std::int64_t p : {1, 49, 100}) sizes.push_back({{"batch", 1 + s % 2}, {"seq", s}, {"past", p}});
  struct form {
    dim size;
    double scale;
  };
  for (resize_mode mode : {resize_mode::nearest, resize_mode::linear, resize_mode::cubic})
    for (resize_coordinates coordinates :
         {resize_coordinates::half_pixel, resize_coordinates::pytorch_half_pixel, resize_coordinates::align_corners,
          resize_coordinates::asymmetric, resize_coordinates::half_pixel_symmetric})
      for (const form& f : {form{past, 0}, {seq * 2, 2}, {seq * 49 / 10, 4.9}})
        for (bool last : {false, true}) {
          // Coordinates and modes do not depend on each other; neither do sizes and axes.
          const bool usual = coordinates == resize_coordinates::half_pixel;
          if ((mode == resize_mode::cubic || last) && !usual) continue;
          SCOPED_TRACE(f.size.str() + (last ? " last" : "") + " mode " + std::to_string(static_cast<int>(mode)) +
                       " coordinates " + std::to_string(static_cast<int>(coordinates)));
          auto dims = [&](const dim& d) {
            return last ? std::vector<dim>{batch, 3, d} : std::vector<dim>{batch, d, 20};
          };
          resize op;
          op.dims = dims(f.size);
          op.scales = last ? std::vector<double>{1, 1, f.scale} : std::vector<double>{1, f.scale, 1};
          op.mode = mode, op.coordinates = coordinates;
          op.exclude_outside = mode == resize_mode::cubic && last;
          check_open(
              {f32(dims(seq)), f32(op.dims)},
              [&](module& m, const arguments& in) { return arguments{add(m, m.add(op, {in[0]}), in[1])}; }, sizes, 1,
              tolerance{1e-4, 1e-5});
        }
}

TEST(open_kernels, nearest_neighbours_of_every_rule) {
  for (resize_nearest rule : {resize_nearest::round_prefer_floor, resize_nearest::round_prefer_ceil,
                              resize_nearest::floor, resize_nearest::ceil}) {
    resize op;
    op.dims = {past, 3}, op.scales = {0, 1};
    op.coordinates = resize_coordinates::asymmetric, op.nearest = rule;
    check_open({typed(element_type::i32, {seq, 3}), typed(element_type::i32, {past, 3})},
               [&](module& m, const arguments& in) { return arguments{add(m, m.add(op, {in[0]}), in[1])}; },
               {{{"seq", 7}, {"past", 49}}, {{"seq", 100}, {"past", 33}}, {{"seq", 64}, {"past", 64}}});
    op.dims = {seq / 49, 3}, op.scales = {1.0 / 49, 1};
    check_open({typed(element_type::i32, {seq, 3})},
               [&](module& m, const arguments& in) { return arguments{m.add(op, {in[0]})}; },
               {{{"seq", 49}}, {{"seq", 4900}}});
  }
}

TEST(open_kernels, transposed_convolutions) {
  const dim height = dim::symbol("height"), width = dim::symbol("width");
  struct form {
    std::vector<std::int64_t> window, strides, dilations, begin, end, more;
    std::int64_t channels, features, groups;
  };
  for (const form& f : {form{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {0, 0}, 16, 40, 1},
                        {{4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 5, 3, 1},
                        {{3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2}, {0, 0}, 12, 10, 1},
                        {{3, 2}, {2, 4}, {3, 2}, {1, 0}, {2, 1}, {1, 0}, 12, 10, 2},
                        {{3, 3}, {4, 6}, {6, 4}, {0, 3}, {1, 0}, {0, 0}, 8, 8, 1},
                        {{2, 2}, {3, 4}, {1, 1}, {0, 0}, {0, 0}, {1, 2}, 8, 5, 1},
                        {{4, 4}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 10, 10, 10}})
    for (bool heavy : {false, true})
      check_open(
          {f32({batch, height, width, f.channels}), f32({f.window[0], f.window[1], f.features / f.groups, f.channels}),
           f32({f.features})},
          [&](module& m, const arguments& in) {
            value made = m.add(transposed_convolution{f.strides, f.dilations, f.begin, f.end, f.more, f.groups,
                                                      tensor_layout::channels_last},
                               {in[0], in[1]});
            value sum = add(m, made, m.add(broadcast{made.type().dims}, {in[2]}));
            return arguments{heavy ? m.add(elementwise{scalar_function::sigmoid}, {sum}) : sum};
          },
          {{{"batch", 1}, {"height", 3}, {"width", 3}},
           {{"batch", 2}, {"height", 7}, {"width", 19}},
           {{"batch", 1}, {"height", 16}, {"width", 33}}},
          0.5, tolerance{1e-4, 1e-5});
}

}  // namespace
}  // namespace kiln::test
