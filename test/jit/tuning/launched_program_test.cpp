#include "jit/tuning/launched_program.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "ir/ops/all.hpp"

using namespace kiln;

namespace {

struct sketch {
  std::int64_t size = 40;
  float weight = 1;
  std::int64_t trips = 3;
  const char* kernel = "native code";
  bool swapped = false;
  const char* target = "sm_90";

  std::string hash() const {
    program p;
    module& m = p.main();
    const shape type{element_type::f32, {size}}, count{element_type::i64, {}};
    std::vector<std::byte> bytes;
    for (const char* c = kernel; *c; ++c) bytes.push_back(static_cast<std::byte>(*c));
    auto object = code_object::make("add", code_format::native, p.add_kernel(bytes), target, {type});
    value x = m.add_parameter("x", type), w = m.add_constant(literal::filled(type, weight));
    value y = swapped ? m.add(object, {w, x}) : m.add(object, {x, w});
    m.set_outputs({y, m.add_constant(literal::of<std::int64_t>(count, {trips}))}, {"y", "trips"});
    return launched_program_hash(p);
  }
};

}  // namespace

TEST(launched_program, the_hash_is_of_what_is_launched) {
  const sketch base;
  EXPECT_EQ(base.hash(), sketch().hash());
  sketch other_weights;
  other_weights.weight = 2;
  EXPECT_EQ(other_weights.hash(), base.hash());
  std::set<std::string> hashes{base.hash()};
  for (const std::function<void(sketch&)>& edit : std::initializer_list<std::function<void(sketch&)>>{
           [](sketch& s) { s.size = 41; }, [](sketch& s) { s.trips = 4; },
           [](sketch& s) { s.kernel = "native code, tuned"; }, [](sketch& s) { s.swapped = true; },
           [](sketch& s) { s.target = "gfx942"; }}) {
    sketch changed;
    edit(changed);
    EXPECT_TRUE(hashes.insert(changed.hash()).second) << hashes.size();
  }
}
