// Constants are verified before anybody reads them, and damaged ones are left to whoever does.
#include "runtime/verify_ahead.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ir/deferred_check.hpp"
#include "ir/error.hpp"

namespace kiln::testing {
namespace {

literal checked(std::function<void()> check) {
  const literal data(shape{element_type::f32, {4}}, std::vector<std::byte>(16));
  return data.identified({}, std::make_shared<deferred_check>(std::move(check)));
}

bool becomes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return condition();
}

TEST(verify_ahead, checks_every_constant_once) {
  program p;
  std::vector<std::atomic<int>> checks(50);
  for (std::atomic<int>& of : checks) p.main().add_constant(checked([&of] { ++of; }));
  const verify_ahead ahead(p);
  for (std::atomic<int>& of : checks) EXPECT_TRUE(becomes_true([&] { return of == 1; }));
}

TEST(verify_ahead, leaves_damage_to_the_reader) {
  program p;
  std::atomic<int> checks = 0;
  const value damaged = p.main().add_constant(checked([&] {
    ++checks;
    throw error(error_kind::corrupted, "damaged");
  }));
  const verify_ahead ahead(p);
  EXPECT_TRUE(becomes_true([&] { return checks == 1; }));
  EXPECT_THROW(module::constant(damaged)->bytes(), error);
  EXPECT_EQ(checks, 2);
}

TEST(verify_ahead, ends_after_the_constant_at_hand) {
  program p;
  std::atomic<int> checks = 0;
  for (int i = 0; i < 10000; ++i)
    p.main().add_constant(checked([&] {
      ++checks;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }));
  { const verify_ahead ahead(p); }
  const int at_end = checks;
  EXPECT_LT(at_end, 10000);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(checks, at_end);
}

}  // namespace
}  // namespace kiln::testing
