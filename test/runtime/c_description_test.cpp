// Descriptions of files, and programs for the sizes of given inputs, through the C interface.
#include <gmock/gmock.h>

#include <cstdlib>
#include <memory>

#include "ir/bind_shapes.hpp"
#include "ir/container/container.hpp"
#include "ir/container/stripped.hpp"
#include "ir/ops/all.hpp"
#include "ir/trust/native_consent.hpp"
#include "programs.hpp"
#include "runtime/kiln.h"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StrEq;

class c_description : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1); }
  std::string write(const program& p, bool sign = true) {
    const auto keys = user_keys::of_this_user();
    write_options options;
    if (sign) options.sign_with = keys->own();
    write_program(p, folder / "model.kiln", options);
    return (folder / "model.kiln").string();
  }
  kiln_description* describe(const std::string& file) {
    kiln_description* description = nullptr;
    EXPECT_EQ(kiln_description_open(file.c_str(), &description), KILN_OK) << kiln_last_error();
    return description;
  }
  scratch_folder folder;
};

std::vector<std::string> dims_of(const kiln_port& port) { return {port.dims, port.dims + port.rank}; }

TEST_F(c_description, tells_whether_there_are_weights) {
  program p;
  module& m = p.main();
  const shape s{element_type::f32, {3}};
  value x = m.add_parameter("x", s);
  m.set_outputs({m.add(elementwise{scalar_function::add}, {x, m.add_constant(literal::filled(s, 2))})}, {"y"});
  for (const bool weights : {true, false}) {
    if (!weights) p = without_weights(p), p.metadata[stripped_weights_key] = "{}";
    const std::string file = write(p);
    kiln_description* description = describe(file);
    EXPECT_EQ(kiln_description_has_weights(description), weights);
    kiln_description_close(description);
    if (weights) continue;
    kiln_session* session = nullptr;
    EXPECT_EQ(kiln_session_open(file.c_str(), nullptr, &session), KILN_UNSUPPORTED);
    EXPECT_THAT(kiln_last_error(), HasSubstr("kiln refit"));
  }
  EXPECT_EQ(kiln_description_has_weights(nullptr), 0);
}

TEST_F(c_description, tells_open_dimensions_and_expressions) {
  program p;
  const dim rows = dim::symbol("rows");
  p.symbols["rows"] = {2, 64, {}};
  p.symbols[value_symbol("axes", 1).str()] = {1, 9, {}};
  module& m = p.main();
  value x = m.add_parameter("x", {element_type::f16, {rows, dim(4)}});
  value axes = m.add_parameter("axes", {element_type::i64, {2}});
  m.set_outputs({m.add(reshape{{rows * dim(4)}}, {x}), axes}, {"flat", "same"});
  kiln_description* description = describe(write(p));

  ASSERT_EQ(kiln_description_dim_count(description), 2u);
  kiln_dim_info dim_info;
  ASSERT_EQ(kiln_description_dim(description, 0, &dim_info), KILN_OK);
  EXPECT_THAT(dim_info.name, StrEq("rows"));
  EXPECT_EQ(dim_info.min, 2);
  EXPECT_EQ(dim_info.max, 64);
  EXPECT_EQ(kiln_description_dim(description, 2, &dim_info), KILN_USAGE);

  ASSERT_EQ(kiln_description_input_count(description), 2u);
  kiln_port port;
  ASSERT_EQ(kiln_description_input(description, 0, &port), KILN_OK);
  EXPECT_THAT(port.name, StrEq("x"));
  EXPECT_EQ(port.type, KILN_F16);
  EXPECT_THAT(dims_of(port), ElementsAre("rows", "4"));
  EXPECT_FALSE(port.decides_sizes);
  ASSERT_EQ(kiln_description_input(description, 1, &port), KILN_OK);
  EXPECT_TRUE(port.decides_sizes);
  ASSERT_EQ(kiln_description_output_count(description), 2u);
  ASSERT_EQ(kiln_description_output(description, 0, &port), KILN_OK);
  EXPECT_THAT(port.name, StrEq("flat"));
  EXPECT_THAT(dims_of(port), ElementsAre("4*rows"));
  EXPECT_EQ(kiln_description_output(description, 2, &port), KILN_USAGE);
  EXPECT_EQ(kiln_description_output(description, 0, nullptr), KILN_USAGE);
  kiln_description_close(description);
  kiln_description_close(nullptr);
}

TEST_F(c_description, needs_no_signature_because_nothing_runs) {
  program p;
  p.main().set_outputs({twice(p, p.main(), p.main().add_parameter("x", vector_type))}, {"y"});
  const std::string file = write(p, false);
  kiln_program* program = nullptr;
  EXPECT_EQ(kiln_program_open(file.c_str(), 1, &program), KILN_UNTRUSTED);
  kiln_description* description = describe(file);
  EXPECT_EQ(kiln_description_input_count(description), 1u);
  kiln_description_close(description);
  EXPECT_EQ(kiln_description_open((folder / "absent.kiln").c_str(), &description), KILN_MISSING_FILE);
  EXPECT_EQ(description, nullptr);
  EXPECT_EQ(kiln_description_open(nullptr, &description), KILN_USAGE);
  EXPECT_EQ(kiln_description_input_count(nullptr), 0u);
}

TEST_F(c_description, a_program_for_given_inputs_checks_their_shapes) {
  program p;
  p.main().set_outputs({twice(p, p.main(), p.main().add_parameter("x", vector_type))}, {"y"});
  kiln_session* session = nullptr;
  ASSERT_EQ(kiln_session_open(write(p).c_str(), nullptr, &session), KILN_OK) << kiln_last_error();
  kiln_program* program = nullptr;
  const std::int64_t right[] = {n}, wrong[] = {n + 1}, negative[] = {-1};
  auto status = [&](const std::int64_t* dims, std::size_t rank, std::size_t count = 1) {
    const kiln_given_input given{rank, dims, nullptr};
    const kiln_status result = kiln_session_program_for(session, &given, count, nullptr, 0, &program);
    EXPECT_EQ(program != nullptr, result == KILN_OK);
    kiln_program_close(program);
    return result;
  };
  EXPECT_EQ(status(right, 1), KILN_OK) << kiln_last_error();
  EXPECT_EQ(status(wrong, 1), KILN_INVALID_SHAPE);
  EXPECT_THAT(kiln_last_error(), HasSubstr("'x'"));
  EXPECT_EQ(status(right, 0), KILN_INVALID_SHAPE);
  EXPECT_EQ(status(negative, 1), KILN_INVALID_SHAPE);
  EXPECT_THAT(kiln_last_error(), HasSubstr("a dimension is -1"));
  EXPECT_EQ(status(right, 1), KILN_OK) << "a refusal leaves the session as it was: " << kiln_last_error();
  EXPECT_EQ(status(nullptr, 1), KILN_USAGE);
  EXPECT_EQ(status(right, 1, 0), KILN_USAGE);
  EXPECT_EQ(kiln_session_program_for(session, nullptr, 1, nullptr, 0, &program), KILN_USAGE);
  EXPECT_EQ(kiln_session_program_for(nullptr, nullptr, 0, nullptr, 0, &program), KILN_USAGE);
  kiln_session_close(session);
}

}  // namespace
}  // namespace kiln::testing
