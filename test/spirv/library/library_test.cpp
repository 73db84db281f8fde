// Runs every kernel of the library on the host, finalized from its object, and compares it with plain C++.
#include "spirv/library/library.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "jit/compile_bytecode.hpp"
#include "jit/rocm_candidate.hpp"
#include "jit/targets.hpp"
#include "runtime/executable.hpp"
#include "runtime/host_device.hpp"
#include "spirv/library/reference.hpp"
#include "spirv/reader/binary.hpp"

namespace kiln::spirv {
namespace {

shape shape_of(element_type type, std::vector<std::int64_t> dims) { return {type, {dims.begin(), dims.end()}}; }

// The operator with its attributes set: the first one whose type restrictions match.
object operation_for(const std::string& name, const std::vector<literal>& inputs, const attribute_values& given) {
  for (const object& o : library()) {
    if (o.name != name) continue;
    object chosen = o;
    for (const auto& [attribute, value] : given) {
      auto found = std::ranges::find(chosen.attributes, attribute, &std::pair<std::string, attribute_value>::first);
      if (found == chosen.attributes.end()) throw error(error_kind::usage, name + " has no attribute " + attribute);
      found->second = value;
    }
    std::vector<shape> types;
    for (const literal& l : inputs) types.push_back(l.type());
    bool fits = true;
    for (const input_restriction& r : o.restrictions)
      fits &= types.at(r.input).type == evaluate_type(r.type, {types, {}, &chosen.attributes});
    for (const std::string& r : o.requirements)
      fits = fits && evaluate_integer(r, {types, {}, &chosen.attributes}).value() != 0;
    if (fits) return chosen;
  }
  throw error(error_kind::usage, "the library has no " + name + " for these inputs");
}

// What HIP is given to compile: the module whose kernels take buffers only, after the bundle's first page, is valid
// too.
void expect_rocm_form(const object& o, const std::vector<shape>& inputs) {
  auto made = rocm_candidate(serialize(o), inputs, infer(o, inputs), find_target("gfx942"));
  ASSERT_TRUE(made) << o.name;
  EXPECT_NO_THROW(binary{std::span(made->object).subspan(4096)}) << o.name;
}

std::vector<literal> run(const std::string& name, const std::vector<literal>& inputs,
                         const attribute_values& attributes = {}) {
  static host_device device(2);
  object o = operation_for(name, inputs, attributes);
  program p;
  std::vector<value> arguments;
  std::vector<shape> types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(p.main().add_parameter("p" + std::to_string(i), inputs[i].type()));
    types.push_back(inputs[i].type());
  }
  expect_rocm_form(o, types);
  content_hash payload = p.add_kernel(serialize(o));
  value made =
      p.main().add(code_object::make(o.name, code_format::amdgcnspirv, payload, "", infer(o, types)), arguments);
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < made.producer->outputs().size(); ++i) {
    outputs.push_back({made.producer, i});
    names.push_back("o" + std::to_string(i));
  }
  p.main().set_outputs(outputs, names);
  return load(compile_bytecode(p, {.target = find_target("native")}), device).evaluate(inputs);
}

// Also compares with the library's reference.
std::vector<literal> run_beside_reference(const std::string& name, const std::vector<literal>& inputs,
                                          const attribute_values& attributes = {}) {
  object o = operation_for(name, inputs, attributes);
  auto results = run(name, inputs, attributes);
  std::vector<shape> types;
  for (const literal& l : results) types.push_back(l.type());
  auto reference = find_library_reference(o);
  if (!reference) throw error(error_kind::internal, name + " has no reference");
  auto expected = reference(inputs, types);
  for (std::size_t k = 0; k < results.size(); ++k)
    for (std::int64_t i = 0; i < types[k].element_count(); ++i)
      EXPECT_NEAR(results[k].at(i), expected[k].at(i), 2e-5 * std::max(1.0, std::abs(expected[k].at(i))))
          << name << " " << i;
  o.words.pop_back();
  EXPECT_FALSE(find_library_reference(o));  // not the library's
  return results;
}

template <class T>
literal tensor(std::vector<std::int64_t> dims, const std::vector<T>& values, element_type type) {
  return literal::of(shape_of(type, std::move(dims)), values);
}
literal floats(std::vector<std::int64_t> dims, const std::vector<float>& values) {
  return tensor(std::move(dims), values, element_type::f32);
}
literal longs(std::vector<std::int64_t> dims, const std::vector<std::int64_t>& values) {
  return tensor(std::move(dims), values, element_type::i64);
}

std::vector<float> random_floats(std::size_t n, float low = -2, float high = 2, int steps = 0) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(n);
  for (float& v : values)
    v = steps ? std::round(uniform(random) * static_cast<float>(steps)) / static_cast<float>(steps) : uniform(random);
  return values;
}

template <class T>
std::vector<T> vector_of(const literal& l) {
  auto span = l.as<T>();
  return {span.begin(), span.end()};
}

void expect_near(const literal& got, const std::vector<float>& expected, float tolerance) {
  auto values = vector_of<float>(got);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * std::max(1.0f, std::abs(expected[i]))) << i;
}

// Positions of a row in sorted order, equal values by position.
std::vector<std::int64_t> sorted_positions(const float* row, std::size_t n, bool descending) {
  std::vector<std::int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](std::int64_t a, std::int64_t b) { return descending ? row[a] > row[b] : row[a] < row[b]; });
  return order;
}

TEST(library, every_object_is_valid_spirv) {
  std::set<std::string> names;
  for (const object& o : library()) {
    names.insert(o.name);
    auto file = std::filesystem::temp_directory_path() / ("kiln_library_" + std::to_string(getpid()) + ".spv");
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(o.words.data()), static_cast<std::streamsize>(o.words.size()));
    EXPECT_EQ(std::system((std::string(SPIRV_VAL) + " " + file.string()).c_str()), 0) << o.name;
    std::filesystem::remove(file);
    EXPECT_EQ(deserialize_object(serialize(o)), o);
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"CumulativeSum", "DynamicTimeWarping", "GridSample", "NonMaxSuppression", "NonZero",
                                   "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Resize",
                                   "RoiAlign", "ScatterElements", "Sort", "TopK", "Unique"}));
}

TEST(library, sort) {
  for (std::int64_t n : {1, 2, 37, 1000, 2048, 5001})
    for (std::int64_t descending : {0, 1}) {
      auto x = random_floats(static_cast<std::size_t>(3 * n), -2, 2, 50);
      auto out = run("Sort", {floats({3, n}, x)}, {{"descending", descending}});
      auto values = vector_of<float>(out[0]);
      auto order = vector_of<std::int64_t>(out[1]);
      for (std::int64_t r = 0; r < 3; ++r) {
        auto expected = sorted_positions(x.data() + r * n, static_cast<std::size_t>(n), descending);
        for (std::int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(order[static_cast<std::size_t>(r * n + i)], expected[static_cast<std::size_t>(i)])
              << n << " " << r << " " << i;
          ASSERT_EQ(values[static_cast<std::size_t>(r * n + i)],
                    x[static_cast<std::size_t>(r * n + expected[static_cast<std::size_t>(i)])]);
        }
      }
    }
  auto wide = run("Sort", {longs({5}, {3, -(1l << 40), 7, 1l << 41, -1})});
  EXPECT_EQ(vector_of<std::int64_t>(wide[0]), (std::vector<std::int64_t>{-(1l << 40), -1, 3, 7, 1l << 41}));
}

TEST(library, top_k) {
  for (auto [n, k] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {40, 40}, {100, 7}, {1000, 1}, {5000, 100}, {3000, 2048}})
    for (std::int64_t largest : {0, 1}) {
      auto x = random_floats(static_cast<std::size_t>(2 * n), -2, 2, 40);
      auto out = run("TopK", {floats({2, n}, x)}, {{"k", k}, {"largest", largest}});
      EXPECT_EQ(out[0].type(), shape_of(element_type::f32, {2, k}));
      auto order = vector_of<std::int64_t>(out[1]);
      auto values = vector_of<float>(out[0]);
      for (std::int64_t r = 0; r < 2; ++r) {
        auto expected = sorted_positions(x.data() + r * n, static_cast<std::size_t>(n), largest);
        for (std::int64_t i = 0; i < k; ++i) {
          ASSERT_EQ(order[static_cast<std::size_t>(r * k + i)], expected[static_cast<std::size_t>(i)])
              << n << " " << k << " " << r << " " << i;
          ASSERT_EQ(values[static_cast<std::size_t>(r * k + i)],
                    x[static_cast<std::size_t>(r * n + expected[static_cast<std::size_t>(i)])]);
        }
      }
    }
}

TEST(library, cumulative_sum) {
  for (std::int64_t exclusive : {0, 1})
    for (std::int64_t reverse : {0, 1})
      for (std::int64_t axis : {0, 1, -1}) {
        std::vector<std::int64_t> dims{3, 1500, 2}, x(9000), expected(9000);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int64_t>(i * 7919 % 1001) - 500;
        std::int64_t n = axis == 0 ? 3 : axis == 1 ? 1500 : 2, inner = axis == 0 ? 3000 : axis == 1 ? 2 : 1;
        for (std::int64_t line = 0; line < 9000 / n; ++line) {
          std::int64_t base = line / inner * n * inner + line % inner, sum = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            auto at = static_cast<std::size_t>(base + (reverse ? n - 1 - i : i) * inner);
            expected[at] = exclusive ? sum : sum + x[at];
            sum += x[at];
          }
        }
        auto out =
            run("CumulativeSum", {longs(dims, x)}, {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}});
        EXPECT_EQ(vector_of<std::int64_t>(out[0]), expected) << axis << exclusive << reverse;
      }
}

TEST(library, scatter) {
  std::map<std::string, std::function<float(float, float)>> rules{
      {"none", [](float, float b) { return b; }},
      {"add", [](float a, float b) { return a + b; }},
      {"mul", [](float a, float b) { return a * b; }},
      {"min", [](float a, float b) { return std::min(a, b); }},
      {"max", [](float a, float b) { return std::max(a, b); }}};
  for (const auto& [name, rule] : rules) {
    auto data = random_floats(2 * 10 * 3), updates = random_floats(2 * 6 * 3, -2, 2, 2);
    std::vector<std::int64_t> indices(36);
    for (std::size_t i = 0; i < 36; ++i)
      indices[i] = name == "none" ? static_cast<std::int64_t>(i / 3 % 6)
                                  : static_cast<std::int64_t>(i * 5 % 10) - (i % 2 ? 10 : 0);
    auto expected = data;
    for (std::size_t i = 0; i < 36; ++i) {
      auto at = static_cast<std::size_t>(indices[i] + (indices[i] < 0 ? 10 : 0));
      float& e = expected[(i / 18 * 10 + at) * 3 + i % 3];
      e = rule(e, updates[i]);
    }
    auto out = run("ScatterElements", {floats({2, 10, 3}, data), longs({2, 6, 3}, indices), floats({2, 6, 3}, updates)},
                   {{"axis", std::int64_t{1}}, {"reduction", name}});
    SCOPED_TRACE(name);
    expect_near(out[0], expected, 1e-5f);
  }
}

TEST(library, non_zero_and_unique) {
  for (std::size_t n : {1u, 5u, 1000u, 1024u, 5000u}) {
    std::vector<std::int64_t> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<std::int64_t>(i * i % 13 % 5);
    auto out = run("NonZero", {longs({static_cast<std::int64_t>(n)}, x)});
    std::vector<std::int64_t> places;
    for (std::size_t i = 0; i < n; ++i)
      if (x[i]) places.push_back(static_cast<std::int64_t>(i));
    EXPECT_EQ(out[1].at_int(0), static_cast<std::int64_t>(places.size()));
    places.resize(n, -1);
    EXPECT_EQ(vector_of<std::int64_t>(out[0]), places);

    auto distinct = run("Unique", {longs({static_cast<std::int64_t>(n)}, x)});
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> expected;  // value → first place, count
    for (std::size_t i = 0; i < n; ++i)
      ++expected.try_emplace(x[i], static_cast<std::int64_t>(i), 0).first->second.second;
    ASSERT_EQ(distinct[4].at_int(0), static_cast<std::int64_t>(expected.size()));
    std::int64_t at = 0;
    for (const auto& [value, where] : expected) {
      EXPECT_EQ(distinct[0].at_int(at), value);
      EXPECT_EQ(distinct[1].at_int(at), where.first);
      EXPECT_EQ(distinct[3].at_int(at), where.second);
      ++at;
    }
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_EQ(distinct[0].at_int(distinct[2].at_int(static_cast<std::int64_t>(i))), x[i]);
  }
}

TEST(library, non_max_suppression) {
  const std::int64_t images = 2, classes = 2, n = 60, most = 8;
  auto corners = random_floats(static_cast<std::size_t>(images * n * 4), 0, 1),
       scores = random_floats(static_cast<std::size_t>(images * classes * n), 0, 1);
  const float limit = 0.3f, least = 0.2f;
  auto overlap = [&](const float* a, const float* b) {
    double common = 1, area_a = 1, area_b = 1;
    for (int d = 0; d < 2; ++d) {
      double a0 = std::min(a[d], a[2 + d]), a1 = std::max(a[d], a[2 + d]), b0 = std::min(b[d], b[2 + d]),
             b1 = std::max(b[d], b[2 + d]);
      common *= std::max(0.0, std::min(a1, b1) - std::max(a0, b0)), area_a *= a1 - a0, area_b *= b1 - b0;
    }
    return common / (area_a + area_b - common);
  };
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < images; ++i)
    for (std::int64_t c = 0; c < classes; ++c) {
      const float* score = scores.data() + (i * classes + c) * n;
      std::vector<std::int64_t> picked;
      for (std::int64_t box : sorted_positions(score, static_cast<std::size_t>(n), true)) {
        if (score[box] <= least || static_cast<std::int64_t>(picked.size()) == most) continue;
        if (std::ranges::all_of(picked, [&](std::int64_t other) {
              return overlap(corners.data() + (i * n + box) * 4, corners.data() + (i * n + other) * 4) <= limit;
            }))
          picked.push_back(box);
      }
      for (std::int64_t box : picked) expected.insert(expected.end(), {i, c, box});
    }
  auto out = run("NonMaxSuppression", {floats({images, n, 4}, corners), floats({images, classes, n}, scores)},
                 {{"max_output_boxes_per_class", most},
                  {"iou_threshold", static_cast<double>(limit)},
                  {"score_threshold", static_cast<double>(least)}});
  EXPECT_EQ(out[1].at_int(0) * 3, static_cast<std::int64_t>(expected.size()));
  expected.resize(static_cast<std::size_t>(images * classes * most * 3), -1);
  EXPECT_EQ(vector_of<std::int64_t>(out[0]), expected);
}

TEST(library, dynamic_time_warping) {
  auto out = run("DynamicTimeWarping", {floats({3, 4}, {0, 5, 5, 5, 0, 5, 1, 5, 9, 0, 5, 0})});
  EXPECT_EQ(out[1].at_int(0), 5);
  EXPECT_EQ(vector_of<std::int32_t>(out[0]), (std::vector<std::int32_t>{0, 1, 2, 2, 2, 0, 0, 0, 0, 1, 2, 3, 0, 0}));
  // Longer than a workgroup has threads: along the diagonal, whose costs are the smallest.
  constexpr std::int64_t n = 1100;
  std::vector<float> costs(n * n, 1);
  for (std::int64_t i = 0; i < n; ++i) costs[static_cast<std::size_t>(i * n + i)] = 0;
  out = run("DynamicTimeWarping", {floats({n, n}, costs)});
  EXPECT_EQ(out[1].at_int(0), n);
  EXPECT_EQ(out[0].at_int(n - 1), n - 1);
  EXPECT_EQ(out[0].at_int(2 * n + n - 1), n - 1);
}

// Bilinear at a place inside the image.
double bilinear(const std::vector<float>& image, std::int64_t h, std::int64_t w, double y, double x) {
  auto pixel = [&](std::int64_t r, std::int64_t c) {
    return static_cast<double>(image[static_cast<std::size_t>(std::clamp<std::int64_t>(r, 0, h - 1) * w +
                                                              std::clamp<std::int64_t>(c, 0, w - 1))]);
  };
  double fy = std::floor(y), fx = std::floor(x), wy = y - fy, wx = x - fx;
  auto r = static_cast<std::int64_t>(fy), c = static_cast<std::int64_t>(fx);
  return (1 - wy) * ((1 - wx) * pixel(r, c) + wx * pixel(r, c + 1)) +
         wy * ((1 - wx) * pixel(r + 1, c) + wx * pixel(r + 1, c + 1));
}

TEST(library, roi_align) {
  auto x = random_floats(8 * 10);
  std::vector<float> regions{1, 2, 7, 6.5f, 0, 0, 9, 7};
  auto out = run_beside_reference(
      "RoiAlign", {floats({1, 1, 8, 10}, x), floats({2, 4}, regions), longs({2}, {0, 0})},
      {{"output_height", std::int64_t{3}}, {"output_width", std::int64_t{2}}, {"sampling_ratio", std::int64_t{2}}});
  std::vector<float> expected;
  for (int r = 0; r < 2; ++r)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 2; ++j) {
        double x0 = regions[static_cast<std::size_t>(r * 4)] - 0.5,
               y0 = regions[static_cast<std::size_t>(r * 4 + 1)] - 0.5,
               bw = (regions[static_cast<std::size_t>(r * 4 + 2)] - 0.5 - x0) / 2,
               bh = (regions[static_cast<std::size_t>(r * 4 + 3)] - 0.5 - y0) / 3, sum = 0;
        for (int sy = 0; sy < 2; ++sy)
          for (int sx = 0; sx < 2; ++sx)
            sum += bilinear(x, 8, 10, std::max(0.0, y0 + i * bh + (sy + 0.5) * bh / 2),
                            std::max(0.0, x0 + j * bw + (sx + 0.5) * bw / 2));
        expected.push_back(static_cast<float>(sum / 4));
      }
  expect_near(out[0], expected, 1e-5f);
  // Every choice, regions that leave the image among them.
  auto images = random_floats(2 * 3 * 8 * 10);
  std::vector<float> places{1, 2, 7, 6.5f, -4, -3, 30, 20, 5, 5, 5.1f, 5.2f, 20, 1, 28, 3};
  for (const char* mode : {"avg", "max"})
    for (const char* shifted : {"half_pixel", "output_half_pixel"})
      for (std::int64_t samples : {0, 3})
        run_beside_reference("RoiAlign",
                             {floats({2, 3, 8, 10}, images), floats({4, 4}, places), longs({4}, {0, 1, 1, 0})},
                             {{"output_height", std::int64_t{3}},
                              {"output_width", std::int64_t{4}},
                              {"sampling_ratio", samples},
                              {"mode", std::string(mode)},
                              {"coordinate_transformation_mode", std::string(shifted)},
                              {"spatial_scale", 0.9}});
}

TEST(library, roi_align_stays_inside_of_the_images) {
  auto images = random_floats(2 * 3 * 8 * 10);
  std::vector<float> places{1, 2, 7, 6.5f, 2, 1, 8, 7};
  auto of_images = [&](const std::vector<std::int64_t>& list) {
    return run(
        "RoiAlign",
        {floats({2, 3, 8, 10}, images), floats({2, 4}, places), longs({static_cast<std::int64_t>(list.size())}, list)},
        {{"output_height", std::int64_t{2}}, {"output_width", std::int64_t{2}}})[0];
  };
  EXPECT_EQ(of_images({5, -1}), of_images({1, 0}));
  EXPECT_EQ(of_images({1}), of_images({1, 1}));
}

TEST(library, grid_sample_of_images_and_volumes) {
  auto image = random_floats(5 * 7), grid = random_floats(4 * 2 * 2, -0.8f, 0.8f);
  auto out = run("GridSample", {floats({1, 1, 5, 7}, image), floats({1, 4, 2, 2}, grid)},
                 {{"align_corners", std::int64_t{1}}, {"padding_mode", std::string("border")}});
  std::vector<float> expected;
  for (std::size_t p = 0; p < 8; ++p)
    expected.push_back(
        static_cast<float>(bilinear(image, 5, 7, (grid[2 * p + 1] + 1) / 2 * 4, (grid[2 * p] + 1) / 2 * 6)));
  expect_near(out[0], expected, 1e-5f);
  // A volume that is the same in every slice is the image.
  std::vector<float> volume, places;
  for (int d = 0; d < 3; ++d) volume.insert(volume.end(), image.begin(), image.end());
  for (std::size_t p = 0; p < 8; ++p) places.insert(places.end(), {grid[2 * p], grid[2 * p + 1], 0.1f});
  auto deep = run("GridSample", {floats({1, 1, 3, 5, 7}, volume), floats({1, 2, 2, 2, 3}, places)},
                  {{"align_corners", std::int64_t{1}}, {"padding_mode", std::string("border")}});
  expect_near(deep[0], expected, 1e-5f);
  // Outside: zeros; at integral places every mode gives the pixel.
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    std::vector<float> exact{-1, -1, 1, 1, 0, 0, 3, 3};
    auto got = run("GridSample", {floats({1, 1, 5, 7}, image), floats({1, 1, 4, 2}, exact)},
                   {{"align_corners", std::int64_t{1}}, {"mode", std::string(mode)}});
    expect_near(got[0], {image[0], image[34], image[17], 0.0f}, 1e-5f);
  }
}

TEST(library, resize) {
  auto x = random_floats(2 * 4 * 6);
  auto size = [](std::int64_t h, std::int64_t w) { return attribute_values{{"height", h}, {"width", w}}; };
  auto with = [](attribute_values a, const char* mode, const char* coordinates) {
    a.emplace_back("mode", std::string(mode));
    a.emplace_back("coordinate_transformation_mode", std::string(coordinates));
    return a;
  };
  // The same size is the same image in every mode.
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* how :
         {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"}) {
      SCOPED_TRACE(std::string(mode) + " " + how);
      expect_near(run("Resize", {floats({2, 4, 6}, x)}, with(size(4, 6), mode, how))[0], x, 1e-6f);
    }
  auto expected = [&](std::int64_t h, std::int64_t w, auto place) {
    std::vector<float> result;
    for (std::size_t p = 0; p < 2; ++p) {
      std::vector<float> image(x.begin() + static_cast<std::ptrdiff_t>(p * 24),
                               x.begin() + static_cast<std::ptrdiff_t>(p * 24 + 24));
      for (std::int64_t i = 0; i < h; ++i)
        for (std::int64_t j = 0; j < w; ++j)
          result.push_back(static_cast<float>(bilinear(image, 4, 6, place(i, 4, h), place(j, 6, w))));
    }
    return result;
  };
  auto half = [](std::int64_t i, std::int64_t in, std::int64_t out) {
    return std::clamp((static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5, 0.0,
                      static_cast<double>(in - 1));
  };
  auto corners = [](std::int64_t i, std::int64_t in, std::int64_t out) {
    return static_cast<double>(i * (in - 1)) / static_cast<double>(out - 1);
  };
  auto plain = [](std::int64_t i, std::int64_t in, std::int64_t out) {
    return static_cast<double>(i * in) / static_cast<double>(out);
  };
  expect_near(run("Resize", {floats({2, 4, 6}, x)}, with(size(9, 11), "linear", "half_pixel"))[0],
              expected(9, 11, half), 1e-5f);
  expect_near(run("Resize", {floats({2, 4, 6}, x)}, with(size(9, 11), "linear", "align_corners"))[0],
              expected(9, 11, corners), 1e-5f);
  expect_near(run("Resize", {floats({2, 4, 6}, x)}, with(size(8, 12), "linear", "asymmetric"))[0],
              expected(8, 12, plain), 1e-5f);
  std::vector<float> doubled;
  for (std::size_t p = 0; p < 2; ++p)
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t j = 0; j < 12; ++j) doubled.push_back(x[p * 24 + i / 2 * 6 + j / 2]);
  expect_near(run("Resize", {floats({2, 4, 6}, x)}, with(size(8, 12), "nearest", "half_pixel"))[0], doubled, 0);
  // Cubic reproduces a straight line away from the borders.
  std::vector<float> line(20);
  for (std::size_t i = 0; i < 20; ++i) line[i] = static_cast<float>(i);
  auto cubic = vector_of<float>(run("Resize", {floats({1, 20}, line)}, with(size(1, 40), "cubic", "asymmetric"))[0]);
  for (std::size_t i = 4; i < 34; ++i) EXPECT_NEAR(cubic[i], static_cast<float>(i) / 2, 1e-4f);
}

TEST(library, random_numbers) {
  // Philox 4x32-10 of counter 0 and key 0 (Random123's known answers): 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  auto first =
      vector_of<float>(run_beside_reference("RandomUniform", {}, {{"shape", std::vector<std::int64_t>{4}}})[0]);
  const std::uint32_t known[]{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(first[i], static_cast<float>(known[i] >> 8) * 0x1p-24f);
  auto uniform = vector_of<float>(run_beside_reference(
      "RandomUniform", {},
      {{"shape", std::vector<std::int64_t>{101, 99}}, {"low", -1.0}, {"high", 3.0}, {"seed", 5.0}})[0]);
  auto normal = vector_of<float>(run_beside_reference("RandomNormalLike", {floats({101, 99}, std::vector<float>(9999))},
                                                      {{"mean", 2.0}, {"scale", 3.0}})[0]);
  auto moments = [](const std::vector<float>& v) {
    double mean = 0, square = 0;
    for (float x : v) mean += x / static_cast<double>(v.size());
    for (float x : v) square += (x - mean) * (x - mean) / static_cast<double>(v.size());
    return std::pair(mean, std::sqrt(square));
  };
  EXPECT_NEAR(moments(uniform).first, 1, 0.05);
  EXPECT_NEAR(moments(uniform).second, 4 / std::sqrt(12.0), 0.03);
  EXPECT_NEAR(moments(normal).first, 2, 0.1);
  EXPECT_NEAR(moments(normal).second, 3, 0.1);
  EXPECT_EQ(vector_of<float>(run_beside_reference(
                "RandomUniform", {},
                {{"shape", std::vector<std::int64_t>{101, 99}}, {"low", -1.0}, {"high", 3.0}, {"seed", 5.0}})[0]),
            uniform);
}

}  // namespace
}  // namespace kiln::spirv
