#include "aot/passes/chain_cache_updates.hpp"

#include "ir/ops/cache_update.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

constexpr chain_cache_updates every_size{.least_bytes = 0};

struct stacked_cache {
  std::int64_t layers = 3, count = 1, first_layer = 0;
};

// Layers that take their caches [2, 2, 5, 4] from one tensor, scatter rows into them, and sum them up. A layer's rows
// depend on the answer of the layer before.
program decoder(const stacked_cache& made) {
  program p;
  builder b(p.main());
  module& m = b.m;
  const std::vector<dim> of_layer{2, 2, 5, 4}, of_rows{2, 2, made.count, 4};
  const value cache = b.p("cache", {made.layers, 2, 2, 5, 4}), first = b.p("rows", {2, 2, made.count, 4});
  const value position = m.add_parameter("position", {element_type::i64, {made.count}});
  std::vector<value> states;
  value rows = first;
  for (std::int64_t layer = 0; layer < made.layers; ++layer) {
    const value number =
        m.add_constant(literal::scalar(element_type::i64, static_cast<double>(layer + made.first_layer)));
    const value own = m.add(gather{0}, {cache, number});
    const value places = m.add(broadcast{of_rows}, {m.add(reshape{{1, 1, made.count, 1}}, {position})});
    const value updated = m.add(scatter_elements{2, scatter_reduction::none}, {own, places, rows});
    states.push_back(m.add(reshape{{1, 2, 2, 5, 4}}, {updated}));
    const value sums = m.add(reduce{reduction_kind::sum, {2}, true}, {updated});
    rows = m.add(broadcast{of_rows}, {sums});
  }
  m.set_outputs({m.add(concat{0}, states), rows}, {"state", "answer"});
  return p;
}

std::vector<literal> answers(const program& p, std::int64_t layers, std::int64_t position) {
  return evaluate(p.main(),
                  std::vector{random_literal({element_type::f32, {layers, 2, 2, 5, 4}}, 1),
                              random_literal({element_type::f32, {2, 2, 1, 4}}, 2), literal::from_int64({position})});
}

TEST(chain_cache_updates, layers_update_one_tensor) {
  const program before = decoder({});
  program after = before.clone();
  EXPECT_TRUE(every_size.apply(after.main()));
  after.validate();
  EXPECT_EQ(count<cache_update>(after.main()), 3u);
  EXPECT_EQ(count<concat>(after.main()), 0u);
  EXPECT_EQ(count<scatter_elements>(after.main()), 0u);
  EXPECT_FALSE(every_size.apply(after.main()));
  for (const std::int64_t position : {0, 3, 4, -1, -5})
    EXPECT_EQ(answers(after, 3, position), answers(before, 3, position));
}

TEST(chain_cache_updates, leaves_what_is_no_stack_of_all_layers) {
  const auto changes = [](const stacked_cache& made) {
    program p = decoder(made);
    return every_size.apply(p.main());
  };
  EXPECT_TRUE(changes({.layers = 2}));
  EXPECT_FALSE(changes({.layers = 1}));
  EXPECT_FALSE(changes({.count = 2})) << "positions need not follow one another";
  EXPECT_FALSE(changes({.first_layer = -1})) << "the layers are in another order";
  program small = decoder({});
  EXPECT_FALSE(chain_cache_updates{}.apply(small.main()));
}

// A cache [2, 2, 5, 4] of its own: an input, or a computed value.
program own_cache(bool computed, std::int64_t count) {
  program p;
  builder b(p.main());
  module& m = b.m;
  value cache = b.p("cache", {2, 2, 5, 4});
  const value rows = b.p("rows", {2, 2, count, 4});
  if (computed) cache = m.add(elementwise{scalar_function::neg}, {cache});
  const value position = m.add_parameter("position", {element_type::i64, {count}});
  const value places = m.add(broadcast{{2, 2, count, 4}}, {m.add(reshape{{1, 1, count, 1}}, {position})});
  const value updated = m.add(scatter_elements{2, scatter_reduction::none}, {cache, places, rows});
  m.set_outputs({updated, m.add(reduce{reduction_kind::sum, {2}, true}, {updated})}, {"state", "answer"});
  return p;
}

TEST(chain_cache_updates, a_row_that_is_scattered_into_an_input_updates_it) {
  const program before = own_cache(false, 1);
  program after = before.clone();
  EXPECT_TRUE(every_size.apply(after.main()));
  after.validate();
  EXPECT_EQ(count<cache_update>(after.main()), 1u);
  EXPECT_EQ(count<scatter_elements>(after.main()), 0u);
  EXPECT_FALSE(every_size.apply(after.main()));
  for (const std::int64_t position : {0, 3, 4, -1, -5}) {
    const std::vector inputs{random_literal({element_type::f32, {2, 2, 5, 4}}, 1),
                             random_literal({element_type::f32, {2, 2, 1, 4}}, 2), literal::from_int64({position})};
    EXPECT_EQ(evaluate(after.main(), inputs), evaluate(before.main(), inputs));
  }
  program computed = own_cache(true, 1), two = own_cache(false, 2);
  EXPECT_FALSE(every_size.apply(computed.main()));
  EXPECT_FALSE(every_size.apply(two.main()));
  program small = own_cache(false, 1);
  EXPECT_FALSE(chain_cache_updates{}.apply(small.main()));
}

}  // namespace
}  // namespace kiln::testing
