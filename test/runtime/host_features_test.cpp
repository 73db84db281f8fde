#include "runtime/host_features.hpp"

#include <gtest/gtest.h>

#include <set>

namespace kiln {
namespace {

TEST(host_features, rows_have_names_of_their_own) {
  std::set<std::string_view> names;
  for (const cpu_row& row : cpu_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(find_cpu_row(row.name), &row);
  }
  EXPECT_EQ(find_cpu_row("no-such-row"), nullptr);
}

TEST(host_features, rows_of_another_architecture_do_not_run) {
  for (const cpu_row& row : cpu_rows())
    if (row.architecture != this_architecture) EXPECT_FALSE(runs_on_host(row)) << row.name;
}

TEST(host_features, this_machine_has_a_row) {
  const cpu_row* best = best_host_row();
  ASSERT_NE(best, nullptr);
  EXPECT_TRUE(runs_on_host(*best));
  if (best->designer) EXPECT_EQ(best->designer, find_host_core().designer);
}

TEST(host_features, scalable_vectors_have_the_length_of_the_row) {
  for (const cpu_row& row : cpu_rows())
    if (row.features.find("+sve") != std::string_view::npos && runs_on_host(row))
      EXPECT_EQ(host_sve_bits(), row.vector_bits) << row.name;
  EXPECT_EQ(host_sve_bits() > 0, host_has_feature("sve"));
}

TEST(host_features, rows_with_features_need_all_of_them) {
  EXPECT_FALSE(host_has_feature("no-such-feature"));
  for (const cpu_row& row : cpu_rows()) {
    if (row.architecture != cpu_architecture::x86_64 || row.features.empty() || !runs_on_host(row)) continue;
    for (std::string_view feature : {"avx512vnni", "avx512bf16", "amx-tile", "amx-int8", "amx-bf16"})
      if (row.features.find(feature) != std::string_view::npos) EXPECT_TRUE(host_has_feature(feature)) << feature;
  }
}

}  // namespace
}  // namespace kiln
