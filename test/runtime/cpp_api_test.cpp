// The C++ interface (kiln.hpp): what it tells about files and programs, and its errors. Runs of it are in
// c_allocator_test.cpp and in examples/.
#include <gmock/gmock.h>

#include <cstdlib>

#include "ir/container/container.hpp"
#include "ir/trust/native_consent.hpp"
#include "programs.hpp"
#include "runtime/kiln.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class cpp_api : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);  // where this user's keys are
    program p;
    value x = p.main().add_parameter("x", vector_type), w = p.main().add_constant(vector_literal(ramp(1.0f)));
    p.main().set_outputs({multiply_packed(p, p.main(), x, w)}, {"product"});
    const auto keys = user_keys::of_this_user();
    write_options written;
    written.sign_with = keys->own();
    write_program(p, folder / "model.kiln", written);
    file = (folder / "model.kiln").string();
  }
  scratch_folder folder;
  std::string file;
};

TEST_F(cpp_api, a_description_tells_what_a_file_takes_and_gives) {
  const api::description description(file);
  ASSERT_EQ(description.inputs().size(), 1u);
  EXPECT_EQ(description.inputs()[0].name, "x");
  EXPECT_EQ(description.inputs()[0].type, KILN_F32);
  EXPECT_THAT(description.inputs()[0].dims, ElementsAre(std::to_string(n)));
  ASSERT_EQ(description.outputs().size(), 1u);
  EXPECT_EQ(description.outputs()[0].name, "product");
  EXPECT_TRUE(description.open_dims().empty());
  EXPECT_TRUE(description.has_weights());
}

TEST_F(cpp_api, a_program_and_a_context_tell_about_themselves) {
  const api::program program(file);
  EXPECT_EQ(program.info().launches, 1u) << "the weights have been packed before";
  EXPECT_GT(program.info().prepared_bytes, 0u);
  EXPECT_EQ(program.tuning_info().tuned, 0u);
  api::context context = program.make_context();
  const std::vector<float> x = ramp(2.0f), weights = ramp(1.0f);
  std::vector<float> product(n);
  const void* inputs[] = {x.data()};
  void* outputs[] = {product.data()};
  context.run_from_host(inputs, outputs);
  // Packed weights are in reverse order.
  for (std::size_t k = 0; k < product.size(); ++k) EXPECT_EQ(product[k], x[k] * weights[n - 1 - k]);
  EXPECT_EQ(context.graph_info().replays, 0u) << "the host has no graphs";
  EXPECT_EQ(context.graph_memory().graphs, 0u);
  EXPECT_EQ(context.graph_memory().most_bytes, 0u);
}

TEST_F(cpp_api, errors_have_the_status_and_the_line_of_the_c_interface) {
  try {
    api::program((folder / "none.kiln").string());
    FAIL() << "a file that is not there was opened";
  } catch (const api::error& e) {
    EXPECT_EQ(e.status(), KILN_MISSING_FILE);
    EXPECT_THAT(e.what(), HasSubstr("none.kiln"));
  }
  api::context context = api::program(file).make_context();  // goes on without its program
  EXPECT_THROW(context.run_on_stream({}, {}, nullptr), api::error) << "pointers are missing";
}

}  // namespace
}  // namespace kiln::testing
