#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "fixtures.hpp"
#include "ir/container/stripped.hpp"
#include "test/support/paths.hpp"

namespace kiln {
namespace {

using namespace testing;

program stripped_program() {
  program p = without_weights(small_program());
  p.metadata[stripped_weights_key] = "{}";
  return p;
}

std::string format_of(const std::filesystem::path& file) {
  const container_info info = inspect(file);
  EXPECT_EQ(nlohmann::json::parse(info.manifest)["format_version"], info.format_version);
  return std::to_string(info.format_version);
}

TEST(stripped, constants_are_zero_and_the_rest_stays) {
  const program whole = rich_program(), stripped = without_weights(whole);
  EXPECT_EQ(structural_difference(stripped, whole), "");
  EXPECT_NE(structural_difference(stripped, small_program()), "");
  for (const module& m : stripped.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<constant>())
        EXPECT_TRUE(std::ranges::all_of(c->data.bytes(), [](std::byte b) { return b == std::byte{0}; }));
}

// Readers of version 1 know nothing of such programs and would compute with zeros. They refuse version 2.
TEST(stripped, has_a_version_that_older_readers_refuse) {
  scratch_folder folder;
  write_program(small_program(), folder / "whole.kiln");
  EXPECT_EQ(format_of(folder / "whole.kiln"), "1");
  write_program(stripped_program(), folder / "stripped.kiln");
  EXPECT_EQ(format_of(folder / "stripped.kiln"), "2");
  const program p = read_program(folder / "stripped.kiln");
  EXPECT_EQ(p.str(), stripped_program().str());
  EXPECT_THROW(require_weights(p, "stripped.kiln"), error);
  EXPECT_NO_THROW(require_weights(read_program(folder / "whole.kiln"), "whole.kiln"));
}

TEST(stripped, keeps_its_version_with_other_extras) {
  scratch_folder folder;
  write_program(stripped_program(), folder / "stripped.kiln");
  container_extras extras;
  extras.tuning_hints = "[]";
  replace_extras(folder / "stripped.kiln", folder / "hints.kiln", extras);
  EXPECT_EQ(format_of(folder / "hints.kiln"), "2");
  write_program(small_program(), folder / "whole.kiln");
  replace_extras(folder / "whole.kiln", folder / "hints.kiln", extras);
  EXPECT_EQ(format_of(folder / "hints.kiln"), "1");
}

TEST(stripped, golden_file) {
  scratch_folder folder;
  const std::filesystem::path golden = kiln::testing::source_folder() / "test/ir/container/golden_v2.bin";
  EXPECT_EQ(format_of(golden), "2");
  const program p = read_program(golden);
  EXPECT_EQ(p.str(), stripped_program().str());
  EXPECT_EQ(p.metadata, stripped_program().metadata);
  EXPECT_EQ(kind_of_reading(golden), std::nullopt);
}

}  // namespace
}  // namespace kiln
