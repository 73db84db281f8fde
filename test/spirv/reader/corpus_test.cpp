// Runs every kernel of the corpus on the host, compares it with plain C++, and finalizes it for each kind of GPU; also
// tests refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <regex>

#include "corpus.hpp"
#include "ir/error.hpp"
#include "ir/native_kernel.hpp"
#include "jit/finalize_spirv.hpp"
#include "jit/targets.hpp"
#include "runtime/host_kernel.hpp"
#include "runtime/host_symbols.hpp"
#include "runtime/object_loader.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "test/support/paths.hpp"

namespace kiln {
namespace {

using ::testing::HasSubstr;

// The operators of a corpus file, compiled once.
const spirv::object& operator_of(const corpus::test_case& c) {
  static std::map<std::string, spirv::compiled_source> files;
  auto [file, fresh] = files.try_emplace(c.file);
  if (fresh)
    file->second = spirv::compile_hip_file(kiln::testing::source_folder() / "test/spirv/reader/corpus" / c.file,
                                           {.definitions = {}, .whole_module = false});
  for (const spirv::object& o : file->second.operators)
    if (o.name == c.name) return o;
  throw error(error_kind::internal, "no operator '" + c.name + "' in " + c.file);
}

std::vector<shape> types_of(const std::vector<literal>& values) {
  std::vector<shape> result;
  for (const literal& v : values) result.push_back(v.type());
  return result;
}

// `split`: runs the grid in several calls, the last workgroups first.
std::vector<literal> run_on_host(const native_kernel& kernel, const corpus::test_case& c, bool split) {
  std::span<const std::byte> object = kernel.object;
  code_image image({&object, 1}, find_host_symbol);
  std::vector<std::vector<std::byte>> inputs, outputs, scratch;
  for (const literal& l : c.inputs) inputs.emplace_back(l.bytes().begin(), l.bytes().end());
  for (const literal& l : c.expected) outputs.emplace_back(l.bytes().size(), std::byte{0xa5});
  for (const scratch_buffer& s : kernel.scratch)
    scratch.emplace_back(static_cast<std::size_t>(s.bytes), std::byte{0xa5});
  for (const launch& l : kernel.launches) {
    std::vector<void*> buffers;
    for (const launch_argument& a : l.arguments)
      buffers.push_back((a.kind == buffer_kind::input    ? inputs
                         : a.kind == buffer_kind::output ? outputs
                                                         : scratch)[a.index]
                            .data());
    const host_kernel run{
        reinterpret_cast<host_kernel::entry>(reinterpret_cast<std::uintptr_t>(image.find(0, l.symbol)))};
    std::int64_t middle = split ? l.grid / 2 : 0;
    run(buffers.data(), middle, l.grid);
    if (middle) run(buffers.data(), 0, middle);
  }
  std::vector<literal> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) results.emplace_back(c.expected[i].type(), std::move(outputs[i]));
  return results;
}

class corpus_kernel : public ::testing::TestWithParam<corpus::test_case> {};

TEST_P(corpus_kernel, on_the_host) {
  const corpus::test_case& c = GetParam();
  auto payload = serialize(operator_of(c));
  native_kernel kernel = finalize_spirv(payload, types_of(c.inputs), types_of(c.expected), find_target("native"));
  for (bool split : {false, true}) {
    auto got = run_on_host(kernel, c, split);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(corpus::difference(got[i], c.expected[i], c.tolerance), "")
          << "output " << i << (split ? ", in two calls" : "");
  }
}

// Both widths of waves, and PTX; the numbers are checked by test/long/spirv_corpus.py.
TEST_P(corpus_kernel, becomes_code_of_gpus) {
  const corpus::test_case& c = GetParam();
  auto payload = serialize(operator_of(c));
  for (const char* target : {"gfx942", "gfx1100", "sm_90"}) {
    native_kernel kernel = finalize_spirv(payload, types_of(c.inputs), types_of(c.expected), find_target(target));
    EXPECT_FALSE(kernel.object.empty()) << target;
    for (const launch& l : kernel.launches) EXPECT_EQ(l.statistics.spills, 0) << target;
  }
}

INSTANTIATE_TEST_SUITE_P(all, corpus_kernel, ::testing::ValuesIn(corpus::cases()),
                         [](const auto& info) { return info.param.name; });

TEST(corpus, has_the_kernels_that_were_asked_for) { EXPECT_GE(corpus::cases().size(), 60u); }

TEST(finalize_spirv, gives_the_same_bytes_each_time) {
  for (const corpus::test_case& c : corpus::cases()) {
    if (c.name != "workgroup_sum") continue;
    auto payload = serialize(operator_of(c));
    for (const char* target : {"x86-64-v3", "gfx942", "sm_90"}) {
      auto once = serialize(finalize_spirv(payload, types_of(c.inputs), types_of(c.expected), find_target(target)));
      EXPECT_EQ(once, serialize(finalize_spirv(payload, types_of(c.inputs), types_of(c.expected), find_target(target))))
          << target;
    }
  }
}

struct refusal {
  const char* name;
  const char* source;
  const char* says;
};
void PrintTo(const refusal& r, std::ostream* out) { *out << r.name; }
class refused_source : public ::testing::TestWithParam<refusal> {};

TEST_P(refused_source, is_refused_by_name) {
  std::string source = "#include <hip/hip_runtime.h>\n" + std::string(GetParam().source) +
                       "\nKILN_OPERATOR(\"corpus\", \"no\") KILN_OUTPUT(0, int32, same_as(input0)) KILN_LAUNCH(no, "
                       "per_element(elements(input0)), input0, output0)\n";
  try {
    auto compiled = spirv::compile_hip(source, "refused.hip");
    shape s{element_type::i32, {16}};
    finalize_spirv(serialize(compiled.operators.at(0)), std::vector{s}, std::vector{s}, find_target("native"));
    ADD_FAILURE() << "it was not refused";
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr(GetParam().says));
    EXPECT_TRUE(e.kind() == error_kind::unsupported || e.kind() == error_kind::compile_failed ||
                e.kind() == error_kind::invalid_model)
        << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    all, refused_source,
    ::testing::Values(
        refusal{"recursion",
                "__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); } __global__ "
                "void no(const int* x, int* y) { y[0] = fib(x[0]); }",
                "fib"},
        refusal{"mutual_recursion",
                "__device__ int odd(int n, int* y); __device__ __noinline__ int even(int n, int* y) { return n ? y[n] "
                "+= odd(n - 1, y) : 1; } __device__ __noinline__ int odd(int n, int* y) { return n ? y[n] -= even(n - "
                "1, y) : 0; } "
                "__global__ void no(const int* x, int* y) { y[0] = even(x[0], y); }",
                "recursi"},
        refusal{"undefined_function",
                "extern \"C\" __device__ int somewhere(int); __global__ void no(const int* x, int* y) { y[0] = "
                "somewhere(x[0]); }",
                "somewhere"},
        refusal{"wide_integers",
                "__global__ void no(const int* x, int* y) { __int128 p = x[0]; for (int k = 0; k < x[1]; ++k) p *= "
                "x[k]; y[0] = (int)(p >> 64); }",
                "width other than 8, 16, 32 or 64"},
        refusal{"intrinsic_of_one_chip",
                "__global__ void no(const int* x, int* y) { y[0] = __builtin_amdgcn_s_getreg(x[0] * 0 + 1234); }",
                "getreg"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln
