#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ir/container/container.hpp"
#include "ir/ops/bounded.hpp"
#include "ir/trust/native_consent.hpp"
#include "programs.hpp"
#include "runtime/kiln.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StrEq;

class c_api : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln-c-api-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);  // where this user's keys are
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  // Signed with the key of this user, as `kiln finalize --native-file` does, or with the given key.
  std::string write(const program& p, const signing_key* key = nullptr) {
    auto file = folder / "model.kiln";
    auto keys = user_keys::of_this_user();
    write_options options;
    options.sign_with = key ? key : keys->own();
    write_program(p, file, options);
    return file.string();
  }
  std::filesystem::path folder;
};

TEST_F(c_api, opens_describes_and_runs_a_finalized_file) {
  program p;
  value x = p.main().add_parameter("x", vector_type), w = p.main().add_constant(vector_literal(ramp(1.0f)));
  value y = multiply_packed(p, p.main(), x, w);
  p.main().set_outputs({p.main().add(reshape{{dim(n), dim(1)}}, {y}), sum(p, p.main(), y)}, {"product", "total"});
  std::string file = write(p);

  EXPECT_EQ(kiln_api_version(), KILN_API_VERSION);
  kiln_program* program = nullptr;
  ASSERT_EQ(kiln_program_open(file.c_str(), 2, &program), KILN_OK) << kiln_last_error();
  // A file that is already open stays usable.
  std::filesystem::remove(file);
  ASSERT_EQ(kiln_program_input_count(program), 1u);
  ASSERT_EQ(kiln_program_output_count(program), 2u);
  kiln_tensor_info info;
  ASSERT_EQ(kiln_program_input(program, 0, &info), KILN_OK);
  EXPECT_THAT(info.name, StrEq("x"));
  EXPECT_EQ(info.type, KILN_F32);
  EXPECT_EQ(info.bytes, n * sizeof(float));
  ASSERT_EQ(kiln_program_output(program, 0, &info), KILN_OK);
  EXPECT_THAT(info.name, StrEq("product"));
  ASSERT_EQ(info.rank, 2u);
  EXPECT_EQ(info.dims[0], n);
  EXPECT_EQ(info.dims[1], 1);
  ASSERT_EQ(kiln_program_output(program, 1, &info), KILN_OK);
  EXPECT_EQ(info.rank, 0u);
  kiln_program_info facts;
  ASSERT_EQ(kiln_program_get_info(program, &facts), KILN_OK);
  EXPECT_EQ(facts.kernels, 2u);
  EXPECT_EQ(facts.launches, 3u);
  EXPECT_EQ(facts.prepared_bytes, n * sizeof(float));

  auto caller = [&](float first) {
    kiln_context* context = nullptr;
    ASSERT_EQ(kiln_context_create(program, &context), KILN_OK);
    auto input = ramp(first);
    for (int round = 0; round < 20; ++round) {
      std::vector<float> product(n, NAN);
      float total = NAN, expected_total = 0;
      const void* inputs[] = {input.data()};
      void* outputs[] = {product.data(), &total};
      ASSERT_EQ(kiln_run(context, inputs, outputs), KILN_OK) << kiln_last_error();
      for (std::size_t i = 0; i < n; ++i) {
        float expected = input[i] * static_cast<float>(n - i);
        ASSERT_EQ(product[i], expected) << i;
        expected_total += expected;
      }
      EXPECT_FLOAT_EQ(total, expected_total);
    }
    kiln_context_destroy(context);
  };
  std::thread other(caller, 2.0f);
  caller(-1.0f);
  other.join();
  kiln_program_close(program);
}

TEST_F(c_api, outputs_that_depend_on_data_name_their_count) {
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", vector_type), count = m.add_parameter("count", {element_type::i64, {1}});
  m.set_outputs({sum(p, m, x), m.add(bounded{0}, {twice(p, m, x), count}), count}, {"total", "y", "y.count"});
  {
    host_device device(1);
    executable e = load(p, device);
    auto got = e.evaluate(std::vector{vector_literal(ramp()), literal::from_int64({5})});
    ASSERT_EQ(got[1].type().dims, (std::vector<dim>{5}));
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(got[1].as<float>()[i], 2 * ramp()[i]);
  }
  kiln_program* program = nullptr;
  ASSERT_EQ(kiln_program_open(write(p).c_str(), 1, &program), KILN_OK) << kiln_last_error();
  std::size_t where = 0;
  ASSERT_EQ(kiln_program_output_extent(program, 1, 0, &where), KILN_OK);
  EXPECT_EQ(where, 2u);
  ASSERT_EQ(kiln_program_output_extent(program, 2, 0, &where), KILN_OK);
  EXPECT_EQ(where, 3u);  // always whole
  EXPECT_EQ(kiln_program_output_extent(program, 1, 1, &where), KILN_USAGE);
  EXPECT_EQ(kiln_program_output_extent(program, 3, 0, &where), KILN_USAGE);
  kiln_program_close(program);

  kiln::program lost;
  module& main = lost.main();
  main.set_outputs({main.add(bounded{0}, {main.add_parameter("x", vector_type),
                                          main.add_parameter("count", {element_type::i64, {1}})})},
                   {"y"});
  EXPECT_NE(kiln_program_open(write(lost).c_str(), 1, &program), KILN_OK);
  EXPECT_THAT(kiln_last_error(), HasSubstr("has a count that is no output"));
}

TEST_F(c_api, errors_are_codes_with_a_message_per_thread) {
  kiln_program* program = reinterpret_cast<kiln_program*>(1);
  EXPECT_EQ(kiln_program_open((folder / "absent.kiln").c_str(), 1, &program), KILN_MISSING_FILE);
  EXPECT_EQ(program, nullptr);
  EXPECT_THAT(kiln_last_error(), HasSubstr("absent.kiln"));
  std::thread([] { EXPECT_THAT(kiln_last_error(), StrEq("")); }).join();

  std::ofstream(folder / "short.kiln") << "KI";
  EXPECT_EQ(kiln_program_open((folder / "short.kiln").c_str(), 1, &program), KILN_DAMAGED_FILE);
  EXPECT_EQ(kiln_program_open(nullptr, 1, &program), KILN_USAGE);
  kiln::program handed_on;
  module& main = handed_on.main();
  main.set_outputs({main.add_parameter("x", vector_type)}, {"y"});
  const std::string native = write(handed_on);
  for (const char* device : {"cuda:99", "hip:99"}) {
    const kiln_status status = kiln_program_open_on(native.c_str(), device, 1, &program);
    EXPECT_TRUE(status == KILN_NO_DRIVER || status == KILN_NO_DEVICE) << kiln_status_name(status);
    EXPECT_THAT(kiln_last_error(), HasSubstr(device));
  }
  EXPECT_EQ(kiln_program_open_on(native.c_str(), "gpu", 1, &program), KILN_USAGE);
  EXPECT_EQ(kiln_program_open("x", 1, nullptr), KILN_USAGE);
  EXPECT_EQ(kiln_program_input_count(nullptr), 0u);
  EXPECT_EQ(kiln_run(nullptr, nullptr, nullptr), KILN_USAGE);
  EXPECT_THAT(kiln_status_name(KILN_NOT_NATIVE), StrEq("not_native"));
  EXPECT_THAT(kiln_status_name(static_cast<kiln_status>(99)), StrEq("unknown"));
  kiln_program_close(nullptr);
  kiln_context_destroy(nullptr);
}

TEST_F(c_api, a_compiler_that_is_missing_is_named) {
  ASSERT_EQ(kiln_load_compiler((folder / "libkiln.so").c_str()), KILN_NOT_BUILT_IN);
  EXPECT_THAT(kiln_last_error(), HasSubstr((folder / "libkiln.so").string()));
  EXPECT_THAT(kiln_last_error(), HasSubstr("install it beside libkiln_runtime.so"));
}

TEST_F(c_api, a_session_of_a_native_file_has_one_program) {
  program p;
  value x = p.main().add_parameter("x", vector_type);
  p.main().set_outputs({twice(p, p.main(), x)}, {"y"});
  kiln_session* session = nullptr;
  ASSERT_EQ(kiln_session_open(write(p).c_str(), nullptr, &session), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_session_dim_count(session), 0u);
  kiln_dim_info dim;
  EXPECT_EQ(kiln_session_dim(session, 0, &dim), KILN_USAGE);
  kiln_program *program = nullptr, *same = nullptr;
  const kiln_dim rows{"rows", 3};
  EXPECT_EQ(kiln_session_program(session, &rows, 1, &program), KILN_USAGE);
  EXPECT_THAT(kiln_last_error(), HasSubstr("'rows'"));
  EXPECT_EQ(program, nullptr);
  ASSERT_EQ(kiln_session_program(session, nullptr, 0, &program), KILN_OK) << kiln_last_error();
  ASSERT_EQ(kiln_session_program(session, nullptr, 0, &same), KILN_OK);
  kiln_session_close(session);
  kiln_program_close(same);
  kiln_context* context = nullptr;
  ASSERT_EQ(kiln_context_create(program, &context), KILN_OK);
  // Contexts keep working.
  kiln_program_close(program);
  const auto data = ramp();
  std::vector<float> y(n);
  const void* inputs[] = {data.data()};
  void* outputs[] = {y.data()};
  ASSERT_EQ(kiln_run_from_host(context, inputs, outputs), KILN_OK) << kiln_last_error();
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], 2 * data[i]);
  kiln_context_destroy(context);

  kiln_open_options options{};
  options.size = sizeof options;
  options.dims = &rows;
  options.dim_count = 1;
  EXPECT_EQ(kiln_session_open(write(p).c_str(), &options, &session), KILN_USAGE);
  EXPECT_EQ(kiln_program_open_with(write(p).c_str(), &options, &program), KILN_USAGE);
  // Options of version 4, which ended before the dimensions.
  options.size = offsetof(kiln_open_options, dims);
  EXPECT_EQ(kiln_program_open_with(write(p).c_str(), &options, &program), KILN_OK) << kiln_last_error();
  kiln_program_close(program);
}

TEST_F(c_api, native_code_runs_where_a_trusted_key_has_signed_it) {
  program p;
  p.main().set_outputs({twice(p, p.main(), p.main().add_parameter("x", vector_type))}, {"y"});
  const signing_key farm = signing_key::generate();
  auto text = [&](const char* name, const std::string& content) {
    std::ofstream(folder / name) << content;
    return (folder / name).string();
  };
  const std::string trust = text("farm.pub", farm.public_text()),
                    stranger = text("stranger.pub", signing_key::generate().public_text());
  auto open = [&](const std::string& file, kiln_open_options options) {
    kiln_program* program = nullptr;
    options.size = sizeof options;
    kiln_status status = kiln_program_open_with(file.c_str(), &options, &program);
    EXPECT_EQ(program != nullptr, status == KILN_OK);
    kiln_program_close(program);
    return status;
  };
  auto with_keys = [](const std::string& keys) {
    kiln_open_options options{};
    options.trusted_keys = keys.c_str();
    return options;
  };
  kiln_open_options allowing{};
  allowing.allow_unsigned = 1;
  // The file is signed with a key that is not trusted.
  std::string file = write(p, &farm);
  EXPECT_EQ(open(file, {}), KILN_UNTRUSTED);
  EXPECT_THAT(kiln_last_error(), HasSubstr(to_hex(farm.public_half())));
  EXPECT_THAT(kiln_status_name(KILN_UNTRUSTED), StrEq("untrusted"));
  kiln_program* program = nullptr;
  EXPECT_EQ(kiln_program_open(file.c_str(), 1, &program), KILN_UNTRUSTED);
  EXPECT_EQ(program, nullptr);
  EXPECT_EQ(open(file, with_keys(trust)), KILN_OK) << kiln_last_error();
  EXPECT_EQ(open(file, with_keys(stranger)), KILN_UNTRUSTED);
  EXPECT_EQ(open(file, with_keys((folder / "absent.pub").string())), KILN_MISSING_FILE);
  // A list that others can change, or replace, trusts nobody.
  std::filesystem::create_directories(folder / "shared");
  std::filesystem::copy_file(trust, folder / "shared/farm.pub");
  for (auto [mode, folder_mode] : {std::pair<mode_t, mode_t>{0664, 0755}, {0666, 0755}, {0644, 0775}, {0644, 0777}}) {
    ::chmod((folder / "shared/farm.pub").c_str(), mode);
    ::chmod((folder / "shared").c_str(), folder_mode);
    EXPECT_EQ(open(file, with_keys((folder / "shared/farm.pub").string())), KILN_UNTRUSTED);
    EXPECT_THAT(kiln_last_error(), HasSubstr("this list of trusted keys is not used"));
  }
  EXPECT_EQ(open(file, allowing), KILN_OK);
  std::filesystem::create_directories(folder / "config/kiln");
  ::chmod((folder / "config/kiln").c_str(), 0700);
  std::filesystem::copy_file(trust, folder / "config/kiln/trusted_keys");
  EXPECT_EQ(open(file, {}), KILN_OK) << kiln_last_error();
  // Signed by this user.
  file = write(p);
  EXPECT_EQ(open(file, {}), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_program_open_with(file.c_str(), nullptr, &program), KILN_OK);
  kiln_program_close(program);
  EXPECT_EQ(open(file, with_keys(stranger)), KILN_UNTRUSTED) << "these and no others";
  // The file is not signed.
  write_program(p, file);
  EXPECT_EQ(open(file, {}), KILN_UNTRUSTED);
  EXPECT_EQ(open(file, with_keys(trust)), KILN_UNTRUSTED);
  EXPECT_EQ(open(file, allowing), KILN_OK);
  allowing.trusted_keys = trust.c_str();
  EXPECT_EQ(open(file, allowing), KILN_USAGE);
  kiln_open_options sizeless{};
  EXPECT_EQ(kiln_program_open_with(file.c_str(), &sizeless, &program), KILN_USAGE);
}

TEST_F(c_api, wrong_pointers_are_refused) {
  program p;
  value x = p.main().add_parameter("x", vector_type);
  p.main().set_outputs({twice(p, p.main(), x)}, {"y"});
  kiln_program* program = nullptr;
  ASSERT_EQ(kiln_program_open(write(p).c_str(), 1, &program), KILN_OK) << kiln_last_error();
  kiln_tensor_info info;
  EXPECT_EQ(kiln_program_input(program, 1, &info), KILN_USAGE);
  EXPECT_EQ(kiln_program_output(program, 0, nullptr), KILN_USAGE);
  kiln_context* context = nullptr;
  ASSERT_EQ(kiln_context_create(program, &context), KILN_OK);
  auto data = ramp();
  const void* inputs[] = {data.data()};
  void* none[] = {nullptr};
  void* same[] = {data.data()};
  EXPECT_EQ(kiln_run(context, inputs, none), KILN_USAGE);
  EXPECT_THAT(kiln_last_error(), HasSubstr("'y'"));
  EXPECT_EQ(kiln_run(context, inputs, same), KILN_USAGE);
  EXPECT_THAT(kiln_last_error(), HasSubstr("overlaps"));
  EXPECT_EQ(kiln_run(context, nullptr, same), KILN_USAGE);
  kiln_context_destroy(context);
  kiln_program_close(program);
}

}  // namespace
}  // namespace kiln::testing
