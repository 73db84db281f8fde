// HIP sources to SPIR-V: the same bytes each time, valid, and mistakes shown where they are.
#include "spirv/hip/hip_compiler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace kiln::spirv {
namespace {

using ::testing::HasSubstr;

const std::string relu6 = R"(#include <hip/hip_runtime.h>

__global__ void relu6(const float* x, float* y, int64_t n, float limit) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fminf(fmaxf(x[i], 0.0f), limit);
}

KILN_OPERATOR("my.ops", "Relu6")
KILN_ATTRIBUTE(limit, 6.0)
KILN_OUTPUT(0, type(input0), same_as(input0))
KILN_LAUNCH(relu6, per_element(elements(output0)), input0, output0, elements(output0), limit)
)";

// One use of everything in the device header.
const std::string everything = R"(#include <hip/hip_runtime.h>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
extern __shared__ float dynamic[];
__constant__ int table[4] = {1, 2, 3, 4};
template <class T>
__global__ void __launch_bounds__(128) all(const T* x, T* y, int n, double* d, __half* h, __hip_bfloat16* b, long long* wide) {
  __shared__ T tile[128];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  tile[t] = i < n ? x[i] : T(0);
  dynamic[t] = table[t & 3];
  __syncthreads();
  T sum = tile[t ^ 1];
  for (int k = warpSize / 2; k > 0; k >>= 1) sum += __shfl_xor(sum, k);
  sum += __shfl(sum, 3) + __shfl_up(sum, 1) + __shfl_down(sum, 1) + __shfl_sync(~0ull, sum, 0, 16);
  if (__any(sum > 1) && !__all(sum > 2)) sum += __popcll(__ballot(sum > 3));
  atomicAdd(y, sum); atomicMin(y, sum); atomicMax(y, sum); atomicExch(y, sum);
  atomicAdd(d, 1.0); atomicMax(d, 2.0); atomicAdd(wide, 1); atomicCAS((int*)wide, 1, 2); atomicInc((unsigned*)wide, 7); atomicOr(wide, 8);
  h[i] = h[i] * h[i] + __float2half(sum);
  b[i] = float(b[i]) + sum;
  float4 v = *(float4*)(x + 4 * t);
  y[i] = v.x + sinf(sum) + expf(sum) + powf(sum, 1.5f) + tanhf(sum) + erff(sum) + dynamic[t] + gridDim.y + fmodf(sum, 3.0f);
  d[i] = sin(d[i]) + exp(d[i]) + log(d[i]) + pow(d[i], 2.5) + atan2(d[i], 2.0) + erf(d[i]) + cbrt(d[i]);
  switch (n) { case 1: y[0] = 1; break; case 2: y[0] = 5; break; case 9: y[0] = 7; break; default: __threadfence(); }
}
template __global__ void all<float>(const float*, float*, int, double*, __half*, __hip_bfloat16*, long long*);
)";

bool valid(const std::vector<std::byte>& words) {
  auto file = std::filesystem::temp_directory_path() / ("kiln_" + std::to_string(getpid()) + ".spv");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(words.size()));
  int code = std::system((std::string(SPIRV_VAL) + " " + file.string()).c_str());
  std::filesystem::remove(file);
  return code == 0;
}

std::string diagnostics_of(const std::string& source) {
  try {
    compile_hip(source, "bad.hip");
  } catch (const source_error& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.diagnostics();
  }
  return "compiled";
}

std::string refusal_of(const std::string& source) {
  try {
    compile_hip(source, "bad.hip");
  } catch (const source_error& e) {
    return e.diagnostics();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    return e.what();
  }
  return "compiled";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(hip_compiler, same_bytes_whatever_the_path_and_the_thread) {
  auto first = compile_hip(relu6, "relu6.hip"), second = compile_hip(relu6, "/somewhere/else/other_name.hip");
  EXPECT_EQ(first.words, second.words);
  EXPECT_EQ(serialize(first.operators.at(0)), serialize(second.operators.at(0)));
  std::vector<std::vector<std::byte>> each(3);
  std::vector<std::jthread> threads;
  for (auto& words : each) threads.emplace_back([&] { words = compile_hip(everything, "all.hip").words; });
  threads.clear();
  EXPECT_EQ(each[0], each[1]);
  EXPECT_EQ(each[0], each[2]);
}

TEST(hip_compiler, everything_in_the_device_header_is_valid_spirv) {
  auto compiled = compile_hip(everything, "all.hip");
  EXPECT_EQ(compiled.warnings, "");
  ASSERT_EQ(compiled.kernels.size(), 1u);
  EXPECT_EQ(compiled.kernels[0].name, "all<float>");
  EXPECT_EQ(compiled.kernels[0].max_threads, 128u);
  EXPECT_EQ(compiled.kernels[0].parameters[2], kernel_parameter::i32);
  EXPECT_TRUE(valid(compiled.words));
}

TEST(hip_compiler, nothing_of_a_device_is_in_the_object) {
  auto words = compile_hip(everything, "all.hip").words;
  std::string text(reinterpret_cast<const char*>(words.data()), words.size());
  EXPECT_THAT(text, HasSubstr("llvm_amdgcn_wavefrontsize"));
  EXPECT_THAT(text, HasSubstr("llvm_amdgcn_implicitarg_ptr"));
  for (const char* forbidden : {"gfx", "sm_", "all.hip", "/kiln/device"}) EXPECT_THAT(text, Not(HasSubstr(forbidden)));
}

TEST(hip_compiler, an_operator_as_it_is_declared) {
  auto compiled = compile_hip(relu6, "relu6.hip");
  ASSERT_EQ(compiled.operators.size(), 1u);
  const object& o = compiled.operators[0];
  EXPECT_TRUE(valid(o.words));
  EXPECT_EQ(o.domain, "my.ops");
  EXPECT_EQ(o.name, "Relu6");
  EXPECT_EQ(o.attributes, (attribute_values{{"limit", 6.0}}));
  EXPECT_EQ(deserialize_object(serialize(o)), o);
  shape x{element_type::f32, {3, 1000}};
  EXPECT_EQ(infer(o, std::vector{x}), std::vector{x});
  auto resolved = resolve(o, std::vector{x}, std::vector{x});
  ASSERT_EQ(resolved.launches.size(), 1u);
  EXPECT_EQ(resolved.launches[0].grid, (std::array<dim, 3>{12, 1, 1}));
  EXPECT_EQ(resolved.launches[0].block, (std::array<std::int64_t, 3>{256, 1, 1}));
  EXPECT_EQ(resolved.launches[0].arguments[2].bits, 3000u);
  EXPECT_EQ(resolved.launches[0].arguments[3].bits, 0x40c00000u);
}

TEST(hip_compiler, an_operator_has_only_its_own_kernels) {
  auto compiled = compile_hip(relu6 + "__global__ void other(float* y) { y[threadIdx.x] = 1; }\n", "two.hip");
  EXPECT_EQ(compiled.kernels.size(), 2u);
  std::string_view text(reinterpret_cast<const char*>(compiled.operators[0].words.data()),
                        compiled.operators[0].words.size());
  EXPECT_EQ(text.find("other"), std::string_view::npos);
}

TEST(hip_compiler, mistakes_have_a_file_a_line_and_a_caret) {
  std::string text = diagnostics_of(replaced(relu6, "0.0f), limit", "0.0f), limitt"));
  EXPECT_THAT(text, HasSubstr("bad.hip:5:"));
  EXPECT_THAT(text, HasSubstr("use of undeclared identifier 'limitt'"));
  EXPECT_THAT(text, HasSubstr("^~"));
}

TEST(hip_compiler, mistakes_in_a_declaration_too) {
  struct {
    std::string from, to, message, place;
  } cases[]{
      {"elements(output0), limit)", "elements(output0), limt)", "'limt' is not an attribute or a type",
       "bad.hip:11:88"},
      {"input0, output0, elements", "input0, elements", "'relu6' has 4 parameters, the launch gives 3",
       "bad.hip:11:13"},
      {"input0, output0,", "input0, output1,", "there is no output1", "bad.hip:11:"},
      {"input0, output0,", "input0, 3,", "parameter 1 of 'relu6' (float *) is a pointer", "bad.hip:11:"},
      {"KILN_LAUNCH(relu6", "KILN_LAUNCH(relu7", "there is no __global__ function 'relu7'", "bad.hip:11:13"},
      {"per_element", "per_elephant", "a launch rule is per_element(n)", "bad.hip:11:20"},
      {"KILN_LAUNCH(relu6, per_element(elements(output0)), input0, output0, elements(output0), limit)",
       "KILN_LAUNCH(relu6)", "a launch is a kernel, a rule", "bad.hip:11:1"},
      {"(output0)), input0, output0", "(output0)), output0, input0",
       "parameter 1 of 'relu6' (float *) is written through, and inputs are not written", "bad.hip:11:"},
      {"KILN_OUTPUT(0, type(input0),", "KILN_OUTPUT(0, int64,",
       "parameter 1 of 'relu6' (float *) does not point at the elements of output0, which are i64", "bad.hip:11:"},
      {"KILN_OUTPUT(0,", "KILN_INPUT(0, float16)\nKILN_OUTPUT(0,",
       "does not point at the elements of input0, which are f16", "bad.hip:12:"},
      {"KILN_OUTPUT(0, type(input0), same_as(input0))",
       "KILN_OUTPUT(0, type(input0), same_as(input0))\nKILN_OUTPUT(1, float32, dims(1))",
       "no launch of operator 'Relu6' takes output1", "bad.hip:8:1"},
      {"int64_t n, float limit) {", "int64_t n, float** limits) { float limit = **limits;",
       "parameter 3 of 'relu6' (float **) is neither a pointer to data nor", "bad.hip:11:"},
      {"int64_t n, float limit) {", "int64_t n, float2 limits) { float limit = limits.x;",
       "parameter 3 of 'relu6' (float2) is neither", "bad.hip:11:"},
      {"KILN_OPERATOR", "__global__ void relu6(float* y) {}\nKILN_OPERATOR", "there are 2 __global__ functions 'relu6'",
       "bad.hip:12:13"},
      {"same_as(input0)", "same_as(inputs)", "'inputs' is not a tensor", "bad.hip:10:"},
      {"KILN_ATTRIBUTE(limit, 6.0)", "KILN_ATTRIBUTE(limit, six)", "'six' is not an attribute or a type",
       "bad.hip:9:23"},
      {"KILN_OUTPUT(0,", "KILN_OUTPUT(1,", "output 0 comes next", "bad.hip:10:13"},
      {"KILN_OPERATOR(\"my.ops\", \"Relu6\")", "", "before any KILN_OPERATOR", "bad.hip:9:1"},
  };
  for (const auto& c : cases) {
    std::string text = diagnostics_of(replaced(relu6, c.from, c.to));
    EXPECT_THAT(text, HasSubstr(c.message));
    EXPECT_THAT(text, HasSubstr(c.place));
    EXPECT_THAT(text, HasSubstr("^"));
  }
}

TEST(hip_compiler, what_a_portable_kernel_cannot_have_is_refused_by_name) {
  auto kernel = [](const std::string& before, const std::string& body) {
    return "#include <hip/hip_runtime.h>\n" + before + "\n__global__ void k(int* y) { " + body + " }\n";
  };
  EXPECT_THAT(refusal_of(kernel("__device__ __noinline__ int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }",
                                "y[0] = f(y[1]);")),
              HasSubstr("'f(int)' is recursive"));
  EXPECT_THAT(refusal_of(kernel("#include <cassert>", "assert(y[0] > 0);")),
              HasSubstr("a portable kernel cannot stop the program"));
  EXPECT_THAT(refusal_of(kernel("", "if (y[0] > 0) abort();")), HasSubstr("a portable kernel cannot stop the program"));
  EXPECT_THAT(refusal_of(kernel("", "if (y[0] > 0) __builtin_trap();")), HasSubstr("stops the program"));
  EXPECT_EQ(refusal_of("#define NDEBUG\n" + kernel("#include <assert.h>", "assert(y[0] > 0);")), "compiled");
  EXPECT_THAT(refusal_of(kernel("", "printf(\"%d\", y[0]);")), HasSubstr("a portable kernel has no console"));
  EXPECT_THAT(refusal_of(kernel("", "y[0] = *(int*)malloc(4);")), HasSubstr("a portable kernel has no heap"));
  EXPECT_THAT(refusal_of(kernel("", "asm volatile(\"s_nop 0\");")), HasSubstr("inline assembly"));
  EXPECT_THAT(refusal_of(kernel("__device__ int elsewhere(int);", "y[0] = elsewhere(1);")),
              HasSubstr("'elsewhere(int)' is used but not defined"));
  EXPECT_THAT(refusal_of(kernel("__device__ int counter;", "atomicAdd(&counter, 1);")),
              HasSubstr("'counter' would outlive a launch"));
  EXPECT_THAT(
      refusal_of(kernel("typedef int (*function)(int); __device__ __noinline__ int f(int x) { return x; } __device__ "
                        "__noinline__ int g(int x) { return x + 1; }",
                        "function p = y[1] ? f : g; for (int i = 0; i < y[2]; ++i) p = p == f ? g : f; y[0] = p(3);")),
      HasSubstr("through a pointer"));
}

TEST(hip_compiler, what_no_object_could_hold_is_a_mistake) {
  EXPECT_THAT(
      diagnostics_of(replaced(relu6, "elements(output0), limit)",
                              "elements(output0), " + std::string(5000, '(') + "limit" + std::string(5000, ')') + ")")),
      HasSubstr("bad.hip:11:88: error: a text of 10005 characters; at most 4096"));
}

TEST(hip_compiler, a_kernel_is_named_as_the_source_names_it) {
  const std::string before = "#include <hip/hip_runtime.h>\n",
                    body = "(const int64_t* x, int64_t* y) { y[threadIdx.x] = x[threadIdx.x]; }\n";
  const std::string after =
      "KILN_OPERATOR(\"t\", \"k\")\nKILN_OUTPUT(0, int64, same_as(input0))\nKILN_LAUNCH(NAME, per_row(1, 64), input0, "
      "output0)\n";
  const std::string templated =
      "enum class mode { slow, fast };\nconstexpr int width = 4;\ntemplate <class T> struct pair { T a, b; "
      "};\ntemplate <class T, int N = 3, mode M = mode::fast> __global__ void k" +
      body;
  auto made = [&](const std::string& arguments) {
    return "template __global__ void k<" + arguments + ">(const int64_t*, int64_t*);\n";
  };
  struct {
    std::string kernel, name;
  } cases[]{
      {"namespace {\n__global__ void k" + body + "}\n", "k"},
      {"namespace a::b {\n__global__ void k" + body + "}\n", "a::b::k"},
      {"extern \"C\" __global__ void k" + body, "k"},
      {templated + made("int64_t, 2, mode::slow"), "k<int64_t, 2, mode::slow>"},
      {templated + made("long, 2, mode::slow"), "(k<int64_t, 2>)"},
      {templated + made("int64_t") + made("int64_t, 5"), "k<int64_t, 3>"},
      {templated + made("unsigned"), "k<uint32_t>"},
      {templated + made("__half, 4"), "k<half, width>"},
      {templated + made("pair<int64_t>"), "k<pair<long>, 3u>"},
  };
  for (const auto& c : cases) {
    compiled_source compiled = compile_hip(before + c.kernel + replaced(after, "NAME", c.name), "named.hip",
                                           {.definitions = {}, .whole_module = false});
    ASSERT_EQ(compiled.operators.size(), 1u) << c.name;
    EXPECT_FALSE(compiled.operators[0].launches.at(0).symbol.empty()) << c.name;
  }
  EXPECT_THAT(diagnostics_of(before + templated + made("int64_t, 2") + made("int64_t, 4") +
                             replaced(after, "NAME", "k<int64_t>")),
              HasSubstr("there are 2 __global__ functions 'k<int64_t>'"));
  EXPECT_THAT(diagnostics_of(before + templated + made("int64_t, 2") + replaced(after, "NAME", "k<float, 2>")),
              HasSubstr("there are: k<long, 2, mode::fast>"));
}

// What the kernels' pointers say is required of a node's tensors, where the declaration leaves it open.
TEST(hip_compiler, pointers_say_which_tensors_they_take) {
  object o = compile_hip(relu6, "relu6.hip").operators.at(0);
  EXPECT_EQ(o.requirements, std::vector<std::string>{"!has(input0) || type(input0) == f32"});
  o = compile_hip(replaced(relu6, "KILN_OUTPUT", "KILN_INPUT(0, float32)\nKILN_OUTPUT"), "relu6.hip").operators.at(0);
  EXPECT_TRUE(o.requirements.empty());
  for (const char* any : {"const char* x", "const void* x", "const unsigned char* x"})
    EXPECT_TRUE(compile_hip("#include <hip/hip_runtime.h>\n__global__ void k(" + std::string(any) +
                                ", float* y) { y[0] = ((const float*)x)[0]; }\nKILN_OPERATOR(\"t\", \"k\")\n"
                                "KILN_OUTPUT(0, float32, dims(1))\nKILN_LAUNCH(k, per_row(1), input0, output0)\n",
                            "any.hip")
                    .operators.at(0)
                    .requirements.empty())
        << any;
}

TEST(hip_compiler, what_ends_clang_is_an_error) {
  EXPECT_THAT(refusal_of("#include <hip/hip_runtime.h>\n#pragma clang __debug crash\n"),
              HasSubstr("bad.hip: Clang crashed"));
  EXPECT_THAT(refusal_of("#include <hip/hip_runtime.h>\n#pragma clang __debug llvm_fatal_error\n"),
              HasSubstr("bad.hip: Clang gave up"));
  EXPECT_THAT(refusal_of("#include <hip/hip_runtime.h>\n__device__ int f(int x) { return " + std::string(3000, '(') +
                         "x" + std::string(3000, ')') + "; }\n"),
              HasSubstr("bracket nesting level exceeded"));
}

TEST(hip_compiler, a_source_that_is_not_there) {
  try {
    compile_hip_file("/nowhere/x.hip");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::missing_file);
  }
}

}  // namespace
}  // namespace kiln::spirv
