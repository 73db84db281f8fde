#include "aot/caches_in_place.hpp"

#include "ir/ops/cache_update.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

const dim past = dim::symbol("past"), seq = dim::symbol("seq");

// A cache along axis 2, an answer that reads it, and the cache as an output.
program decoder(const std::function<void(builder&)>& change = {}) {
  program p;
  builder b(p.main());
  const value cache = b.p("past", {1, 2, past, 4}), keys = b.p("keys", {1, 2, seq, 4});
  const value present = b.m.add(concat{2}, {cache, keys});
  const value answer = b.m.add(reduce{reduction_kind::sum, {2}, false}, {present});
  p.main().set_outputs({answer, present}, {"answer", "present"});
  p.symbols["past"] = p.symbols["seq"] = {};
  if (change) change(b);
  return p;
}

const cache_port port{"past", "present", 2};

TEST(caches_in_place, an_append_becomes_an_update) {
  const program p = decoder();
  const auto steps = with_caches_in_place(p, std::vector{port});
  ASSERT_TRUE(steps);
  EXPECT_EQ(count<concat>(steps->main()), 0u);
  EXPECT_EQ(count<cache_update>(steps->main()), 1u);
  EXPECT_EQ(steps->main().output_names(), std::vector<std::string>{"answer"});
  EXPECT_EQ(steps->metadata.at(cache_length), "past");
  EXPECT_TRUE(steps->symbols.contains(cache_room));
  EXPECT_EQ(count<concat>(p.main()), 1u) << "the program itself must not change";
  // The numbers of both, with 3 rows in a cache with room for 6.
  const program bound = p.bind({{"past", 3}, {"seq", 2}}),
                in_place = steps->bind({{"past", 3}, {"seq", 2}, {cache_room, 6}});
  const literal keys = random_literal({element_type::f32, {1, 2, 2, 4}}, 1);
  std::vector<double> rows, room;
  for (std::int64_t i = 0; i < 2 * 6 * 4; ++i) {
    room.push_back(static_cast<double>(i));
    if (i % 24 < 12) rows.push_back(static_cast<double>(i));
  }
  const auto expected =
      evaluate(bound.main(), std::vector{literal::from_doubles({element_type::f32, {1, 2, 3, 4}}, rows), keys});
  const auto got = evaluate(in_place.main(), std::vector{literal::from_doubles({element_type::f32, {1, 2, 6, 4}}, room),
                                                         keys, literal::from_int64({3})});
  EXPECT_EQ(got[0], expected[0]);
}

TEST(caches_in_place, leaves_what_it_cannot_prove) {
  const auto refused = [](const program& p, const cache_port& which) {
    return !with_caches_in_place(p, std::vector{which});
  };
  EXPECT_TRUE(refused(decoder(), {"keys", "present", 2}));
  EXPECT_TRUE(refused(decoder(), {"past", "answer", 2}));
  EXPECT_TRUE(refused(decoder(), {"past", "present", 1}));
  EXPECT_TRUE(refused(decoder(), {"none", "present", 2}));
  // Another reader of the earlier rows, an output that is one, and a cache that nobody reads.
  EXPECT_TRUE(refused(decoder([](builder& b) {
                        const auto outputs = b.m.outputs();
                        const value other = b.m.add(reduce{reduction_kind::max, {2}, false}, {b.m.parameters()[0]});
                        b.m.set_outputs({outputs[0], outputs[1], other}, {"answer", "present", "other"});
                      }),
                      port));
  EXPECT_TRUE(refused(decoder([](builder& b) {
                        const auto outputs = b.m.outputs();
                        b.m.set_outputs({outputs[0], outputs[1], b.m.parameters()[0]}, {"answer", "present", "old"});
                      }),
                      port));
  EXPECT_TRUE(refused(decoder([](builder& b) {
                        b.m.set_outputs({b.m.outputs()[1]}, {"present"});
                        b.m.erase_dead();
                      }),
                      port));
}

}  // namespace
}  // namespace kiln::testing
