// The fixture of the tests of plans.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "ir/error.hpp"
#include "programs.hpp"

namespace kiln::testing {

class plans : public ::testing::Test {
 protected:
  host_device device{2};
  program p;
  module& m = p.main();

  void expect_refused(error_kind kind, const std::string& text, const plan_options& options = {}) {
    try {
      load(p, device, options);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
      EXPECT_THAT(e.what(), ::testing::HasSubstr(text));
    }
  }
};

}  // namespace kiln::testing
