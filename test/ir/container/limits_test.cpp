// The reader accepts everything that the writer accepts. The writer checks limits, because only it can name the node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "fixtures.hpp"
#include "ir/container/compression.hpp"
#include "ir/container/sections.hpp"
#include "ir/ops/all.hpp"

using namespace kiln;
using namespace kiln::testing;
using namespace kiln::container;

namespace {

// Returns the message of the refusal. If the program was written, reads it back and returns nothing.
std::string refusal(const program& p) {
  scratch_folder folder;
  try {
    write_program(p, folder / "m.kiln");
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported) << e.what();
    EXPECT_FALSE(std::filesystem::exists(folder / "m.kiln"));
    return e.what();
  }
  EXPECT_NO_THROW(read_program(folder / "m.kiln"));
  return "";
}

program reshaped_to(std::vector<dim> from, std::vector<dim> to) {
  program p;
  value x = p.main().add_parameter("x", {element_type::f32, std::move(from)});
  value y = p.main().add(reshape{std::move(to)}, {x});
  y.producer->set_origin("odd_one (Reshape)");
  p.main().set_outputs({y}, {"y"});
  return p;
}

std::vector<std::byte> frame(std::span<const std::byte> raw) {
  std::vector<std::byte> stored(ZSTD_compressBound(raw.size()));
  stored.resize(ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), 1));
  return stored;
}

}  // namespace

TEST(program_limits, a_tensor_of_many_dimensions) {
  EXPECT_EQ(refusal(reshaped_to({1}, std::vector<dim>(64, 1))), "");
  EXPECT_THAT(refusal(reshaped_to({1}, std::vector<dim>(5000, 1))),
              ::testing::AllOf(::testing::HasSubstr("odd_one"), ::testing::HasSubstr("5000")));
}

TEST(program_limits, a_dimension_that_takes_pages) {
  dim sum = 0, nested = dim::symbol("n");
  for (int i = 0; i < 300; ++i) sum = sum + dim::symbol("a_dimension_of_the_model_" + std::to_string(i));
  EXPECT_THAT(refusal(reshaped_to({sum, 1}, {1, sum})),
              ::testing::AllOf(::testing::HasSubstr("input 'x'"), ::testing::HasSubstr("characters")));
  EXPECT_THAT(
      refusal(reshaped_to(
          {dim::symbol("a_name_of_the_models_making_that_goes_on_" + std::string(3000, 'n')), 1, 1},
          std::vector<dim>{dim::symbol("a_name_of_the_models_making_that_goes_on_" + std::string(3000, 'n')), 1})),
      "");
  auto nest = [&] {
    for (int i = 0; i < 1000; ++i) nested = (nested + 1) / dim::symbol("d" + std::to_string(i));
  };
  EXPECT_THROW(nest(), error);  // refused before there is a program with it
}

TEST(program_limits, loops_that_stack_more_than_any_memory) {
  for (std::int64_t trips : {std::int64_t{1000}, std::int64_t{1} << 60}) {
    program p;
    module& body = p.add_module("body");
    shape scalar_i64{element_type::i64, {}}, flag{element_type::boolean, {}}, vector{element_type::f32, {2}};
    body.add_parameter("i", scalar_i64);
    value go_on = body.add_parameter("c", flag), v = body.add_parameter("v", vector);
    body.set_outputs({go_on, v, v}, {"c", "v", "s"});
    value x = p.main().add_parameter("x", vector),
          n = p.main().add_constant(literal::of<std::int64_t>(scalar_i64, {trips})),
          start = p.main().add_constant(literal::scalar(element_type::boolean, 1));
    value made = p.main().add(loop{1, trips}, {n, start, x}, {&body});
    made.producer->set_origin("odd_one (Loop)");
    p.main().set_outputs({{made.producer, 0}, {made.producer, 1}}, {"y", "s"});
    if (trips == 1000) EXPECT_EQ(refusal(p), "");
    else EXPECT_THAT(refusal(p), ::testing::HasSubstr("odd_one"));
  }
}

TEST(program_limits, bodies_within_bodies) {
  for (int depth : {64, 65}) {
    program p;
    const shape scalar_i64{element_type::i64, {}}, flag{element_type::boolean, {}}, vector{element_type::f32, {2}};
    // Adds a loop over `inside`, or an addition where that is null.
    auto add_work = [](module& m, value trips, value go_on, value v, module* inside) {
      value made =
          inside ? m.add(loop{1, -1}, {trips, go_on, v}, {inside}) : m.add(elementwise{scalar_function::add}, {v, v});
      made.producer->set_origin("odd_one (Loop)");
      return made;
    };
    module* inside = nullptr;
    for (int i = 0; i < depth; ++i) {
      module& body = p.add_module("body" + std::to_string(i));
      value trip = body.add_parameter("i", scalar_i64), go_on = body.add_parameter("c", flag),
            v = body.add_parameter("v", vector);
      body.set_outputs({go_on, add_work(body, trip, go_on, v, inside)}, {"c", "v"});
      inside = &body;
    }
    value trips = p.main().add_constant(literal::of<std::int64_t>(scalar_i64, {2})),
          start = p.main().add_constant(literal::scalar(element_type::boolean, 1));
    value x = p.main().add_parameter("x", vector);
    p.main().set_outputs({add_work(p.main(), trips, start, x, inside)}, {"y"});
    if (depth == 64) EXPECT_EQ(refusal(p), "");
    else EXPECT_THAT(refusal(p), ::testing::HasSubstr("odd_one"));
  }
}

TEST(program_limits, names_that_are_repeated_for_ever) {
  program p;
  value v = p.main().add_parameter("x", {element_type::f32, {2}});
  for (int i = 0; i < 600; ++i) {
    v = p.main().add(elementwise{scalar_function::neg}, {v});
    v.producer->set_origin(std::string(1 << 16, 'n'));  // stored once, read six hundred times
  }
  p.main().set_outputs({v}, {"y"});
  EXPECT_THAT(refusal(p), ::testing::HasSubstr("larger"));
}

TEST(compression, a_frame_gives_what_it_says) {
  std::vector<std::byte> raw(40 << 20);
  for (std::size_t i = 0; i < raw.size(); i += 1000) raw[i] = static_cast<std::byte>(i / 1000);
  auto stored = frame(raw);
  EXPECT_EQ(decompress_frame(stored, raw.size()), raw);
  EXPECT_EQ(decompress_frame(stored, raw.size() - 1), std::nullopt);
  EXPECT_EQ(decompress_frame(std::span(stored).first(stored.size() - 1), raw.size()), std::nullopt);
  EXPECT_EQ(decompress_frame({}, 0), std::nullopt);
}

TEST(compression, a_frame_that_lies_about_its_size_costs_nothing) {
  std::vector<std::byte> raw(1 << 20), stored = frame(raw);
  const auto descriptor = static_cast<unsigned>(stored[4]);
  ASSERT_EQ(descriptor >> 6, 2u) << "a size field of four bytes";
  const std::size_t size_field = descriptor & 32 ? 5 : 6;  // behind the window's, if there is one
  for (std::size_t i = 0; i < 4; ++i)
    stored[size_field + i] = static_cast<std::byte>(i == 3 ? 0x7f : 0xff);  // 2 GiB - 1
  EXPECT_EQ(decompress_frame(stored, 0x7fffffff), std::nullopt);
}
