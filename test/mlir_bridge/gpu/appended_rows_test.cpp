// Attention of one query that appends its keys and values to caches (kinds/attention/gpu/appended_rows.hpp): when it
// reads the caches before the kernels in front of it have ended. Numbers are compared by kiln verify on GPUs.
#include <string_view>

#include "gpu_targets.hpp"
#include "ir/ops/cache_update.hpp"
#include "jit/targets.hpp"

namespace kiln::test {
namespace {

launch attention_of(std::int64_t batch, std::string* code = nullptr) {
  constexpr auto f16 = element_type::f16;
  constexpr std::int64_t heads = 32, key_heads = 8, room = 1024, depth = 64;
  const shape cache{f16, {batch, key_heads, room, depth}}, row{f16, {batch, key_heads, 1, depth}},
      query{f16, {batch, heads, 1, depth}};
  const auto fusion =
      gpu_fusion({query, cache, row, cache, row, {element_type::i64, {1}}}, [](module& m, const std::vector<value>& p) {
        const value keys = m.add(cache_update{2}, {p[1], p[2], p[5]}),
                    values = m.add(cache_update{2}, {p[3], p[4], p[5]});
        return std::vector{m.add(attention{.scale = 0.125}, {p[0], keys, values}), keys, values};
      });
  const native_kernel kernel = finalize_for(*fusion, find_target("sm_90"));
  if (code) code->assign(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size());
  return kernel.launches.back();
}

TEST(appended_rows, caches_of_one_sequence_are_read_early) {
  std::string code;
  const launch one = attention_of(1, &code);
  EXPECT_TRUE(one.waits);
  ASSERT_EQ(one.early_arguments.size(), 2u);
  for (std::uint32_t early : one.early_arguments) EXPECT_EQ(one.arguments[early].kind, buffer_kind::output);
  const std::size_t begin = code.find(one.symbol + "(");
  EXPECT_LT(code.find("ld.global.v4", begin), code.find("griddepcontrol.wait", begin));
}

TEST(appended_rows, several_sequences_start_after_their_predecessors) {
  for (std::int64_t batch : {8, 32}) {
    const launch many = attention_of(batch);
    EXPECT_FALSE(many.waits);
    EXPECT_TRUE(many.early_arguments.empty());
  }
}

}  // namespace
}  // namespace kiln::test
