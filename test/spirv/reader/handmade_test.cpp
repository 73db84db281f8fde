// Modules that our writer would not write, assembled with SPIRV-Tools: they are refused by name, or run correctly on
// the host and compile for GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spirv-tools/libspirv.hpp>

#include <numeric>

#include "ir/error.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/finalize_spirv.hpp"
#include "jit/targets.hpp"
#include "runtime/executable.hpp"
#include "runtime/host_device.hpp"
#include "spirv/hip/hip_compiler.hpp"

namespace kiln::spirv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct part {
  std::string body, types = "", capabilities = "", decorations = "", imports = "", model = "Physical64 OpenCL";
};

// void k(int* x, int* y): %v is x's element of this work item; the body ends with its result in %r.
std::vector<std::byte> assembled(const part& p) {
  std::string text =
      "OpCapability Kernel\nOpCapability Addresses\nOpCapability Linkage\nOpCapability Int64\nOpCapability "
      "Int8\nOpCapability Vector16\n" +
      p.capabilities + p.imports + "OpMemoryModel " + p.model +
      R"(
OpEntryPoint Kernel %k "k"
OpDecorate %tid LinkageAttributes "spirv.llvm_amdgcn_workitem_id_x" Import
)" + p.decorations +
      R"(%void = OpTypeVoid
%bool = OpTypeBool
%i8 = OpTypeInt 8 0
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%pi = OpTypePointer CrossWorkgroup %i32
%fn = OpTypeFunction %void %pi %pi
%fnid = OpTypeFunction %i32
%c0 = OpConstant %i32 0
%c1 = OpConstant %i32 1
%c2 = OpConstant %i32 2
%c4 = OpConstant %i32 4
%c7 = OpConstant %i32 7
)" + p.types +
      R"(%tid = OpFunction %i32 None %fnid
OpFunctionEnd
%k = OpFunction %void None %fn
%x = OpFunctionParameter %pi
%y = OpFunctionParameter %pi
%entry = OpLabel
%t = OpFunctionCall %i32 %tid
%px = OpInBoundsPtrAccessChain %pi %x %t
%py = OpInBoundsPtrAccessChain %pi %y %t
%v = OpLoad %i32 %px Aligned 4
)" + p.body +
      R"(
OpStore %py %r Aligned 4
OpReturn
OpFunctionEnd
)";
  std::vector<std::uint32_t> words;
  std::string problems;
  spvtools::SpirvTools tools(SPV_ENV_UNIVERSAL_1_3);
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t& at, const char* what) {
    problems += std::to_string(at.line) + ": " + what + "\n";
  });
  EXPECT_TRUE(tools.Assemble(text, &words)) << problems;
  const auto* begin = reinterpret_cast<const std::byte*>(words.data());
  return {begin, begin + words.size() * 4};
}

object with_kernel(std::vector<std::byte> words) {
  object o;
  o.domain = "test";
  o.name = "Handmade";
  o.results = {{"int32", "dims(8)"}};
  o.launches = {
      {"k", launch_rule::per_row, {"1"}, {"8"}, "", 1024, {{parameter_kind::input, 0}, {parameter_kind::output, 0}}}};
  o.words = std::move(words);
  return o;
}

// Of 1, 2, ... 8.
std::vector<int> run(const part& p) {
  shape t{element_type::i32, {8}};
  auto payload = serialize(with_kernel(assembled(p)));
  for (const char* target : {"gfx942", "gfx1100", "sm_90"})
    EXPECT_FALSE(finalize_spirv(payload, std::vector{t}, std::vector{t}, find_target(target)).object.empty()) << target;
  std::vector<std::int32_t> x(8);
  std::iota(x.begin(), x.end(), 1);
  host_device device(1);
  program whole;
  value input = whole.main().add_parameter("x", t);
  whole.main().set_outputs(
      {whole.main().add(code_object::make("k", code_format::amdgcnspirv, whole.add_kernel(payload), "", {t}), {input})},
      {"y"});
  literal y = load(compile_bytecode(whole, {.target = find_target("native")}), device)
                  .evaluate(std::vector{literal::of(t, x)})
                  .at(0);
  auto values = y.as<std::int32_t>();
  return {values.begin(), values.end()};
}

std::string refusal(const part& p) {
  shape t{element_type::i32, {8}};
  try {
    finalize_spirv(serialize(with_kernel(assembled(p))), std::vector{t}, std::vector{t}, find_target("gfx942"));
  } catch (const error& e) {
    EXPECT_TRUE(e.kind() == error_kind::unsupported || e.kind() == error_kind::corrupted) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    return e.what();
  }
  return "not refused";
}

TEST(handmade, switches_of_64_bits_and_many_edges) {
  EXPECT_THAT(run({"%w = OpUConvert %i64 %v\n%b = OpIMul %i64 %w %l\nOpSwitch %b %d 4294967297 %a 8589934594 %e "
                   "18446744073709551615 %d\n%a = OpLabel\nOpBranch %d\n%e = OpLabel\nOpBranch %d\n%d = OpLabel\n"
                   "%r = OpPhi %i32 %c7 %entry %c1 %a %c2 %e",
                   "%l = OpConstant %i64 4294967297\n"}),
              ElementsAre(1, 2, 7, 7, 7, 7, 7, 7));
  std::string cases, blocks, phi, constants;
  for (int i = 0; i < 200; ++i) {
    std::string n = std::to_string(i);
    cases += " " + n + " %b" + n, blocks += "%b" + n + " = OpLabel\nOpBranch %d\n", phi += " %k" + n + " %b" + n,
        constants += "%k" + n + " = OpConstant %i32 " + std::to_string(i * 10) + "\n";
  }
  EXPECT_THAT(
      run({"OpSwitch %v %d" + cases + "\n" + blocks + "%d = OpLabel\n%r = OpPhi %i32 %c7 %entry" + phi, constants}),
      ElementsAre(10, 20, 30, 40, 50, 60, 70, 80));
}

TEST(handmade, blocks_that_nothing_reaches_and_values_that_nothing_made) {
  EXPECT_THAT(run({"%u = OpUndef %s\n%i = OpCompositeInsert %s %v %u 0\n%a = OpCompositeExtract %i32 %i 0\n%z = "
                   "OpCompositeExtract %i32 %n 2 1\nOpBranch %on\n%dead = OpLabel\nOpBranch %deader\n"
                   "%deader = OpLabel\n%p = OpPhi %i32 %v %dead %p %deader\nOpBranchConditional %yes %deader %on\n%on "
                   "= OpLabel\n%q = OpPhi %i32 %a %entry %p %deader\n%r = OpIAdd %i32 %q %z",
                   "%arr = OpTypeArray %i32 %c4\n%s = OpTypeStruct %i32 %f32 %arr\n%n = OpConstantNull %s\n%yes = "
                   "OpConstantTrue %bool\n"}),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(run({"%w = OpCompositeConstruct %big %v %v %v %v %v %v %v %v %v %v %v %v %v %v %v %v\n%s = OpIAdd %big "
                   "%w %w\n%h = OpVectorShuffle %big %s %w 0 31 2 3 4 5 6 7 8 9 10 11 12 13 14 4294967295\n"
                   "%o = OpBitwiseAnd %i32 %t %c1\n%r = OpVectorExtractDynamic %i32 %h %o",
                   "%big = OpTypeVector %i32 16\n"}),
              ElementsAre(2, 2, 6, 4, 10, 6, 14, 8));
}

TEST(handmade, conversions_do_what_their_decorations_say) {
  std::string real = "%f = OpConvertSToF %f32 %v\n%h = OpFMul %f32 %f %by\n%r = OpConvertFToS %i32 %h";
  EXPECT_THAT(
      run({real, "%by = OpConstant %f32 1e20\n", "", "OpDecorate %r SaturatedConversion\n"}),
      ElementsAre(2147483647, 2147483647, 2147483647, 2147483647, 2147483647, 2147483647, 2147483647, 2147483647));
  EXPECT_THAT(run({real, "%by = OpConstant %f32 -0.4\n", "", "OpDecorate %r FPRoundingMode RTN\n"}),
              ElementsAre(-1, -1, -2, -2, -2, -3, -3, -4));
  EXPECT_THAT(run({real, "%by = OpConstant %f32 0.5\n", "", "OpDecorate %r FPRoundingMode RTE\n"}),
              ElementsAre(0, 1, 2, 2, 2, 3, 4, 4));
  EXPECT_THAT(
      refusal({"%n = OpSConvert %i8 %v\n%r = OpSConvert %i32 %n", "", "", "OpDecorate %n SaturatedConversion\n"}),
      HasSubstr("saturated conversion"));
  EXPECT_THAT(
      refusal({"%f = OpConvertSToF %f32 %v\n%r = OpConvertFToS %i32 %f", "", "", "OpDecorate %f FPRoundingMode RTP\n"}),
      HasSubstr("round to nearest"));
}

// As on GPUs; an x86 processor would end the process.
TEST(handmade, division_by_zero_ends_nothing) {
  std::string four_less = "%z = OpISub %i32 %v %c4\n";
  std::string hundred = "%h = OpConstant %i32 100\n%least = OpConstant %i32 2147483648\n";
  EXPECT_THAT(run({four_less + "%r = OpSDiv %i32 %h %z", hundred}), ElementsAre(-33, -50, -100, -1, 100, 50, 33, 25));
  EXPECT_THAT(run({four_less + "%r = OpUMod %i32 %h %z", hundred}), ElementsAre(100, 100, 100, 100, 0, 0, 1, 0));
  EXPECT_THAT(
      run({"%z = OpISub %i32 %v %c2\n%q = OpSDiv %i32 %least %z\n%m = OpSRem %i32 %least %z\n%r = OpIAdd %i32 %q %m",
           hundred}),
      ElementsAre(INT32_MIN, INT32_MAX, INT32_MIN, -1073741824, -715827884, -536870912, -429496732, -357913943));
}

TEST(handmade, what_is_not_understood_is_refused_by_name) {
  std::string nothing = "%r = OpCopyObject %i32 %v";
  EXPECT_THAT(refusal({nothing, "%v4 = OpTypeVector %f32 4\n%m = OpTypeMatrix %v4 4\n", "OpCapability Matrix\n"}),
              HasSubstr("OpTypeMatrix"));
  EXPECT_THAT(refusal({nothing, "%m = OpTypeSampler\n", "OpCapability ImageBasic\n"}), HasSubstr("ImageBasic"));
  EXPECT_THAT(refusal({nothing, "%m = OpTypeEvent\n"}), HasSubstr("OpTypeEvent"));
  EXPECT_THAT(refusal({nothing, "", "OpCapability VariablePointers\n"}), HasSubstr("VariablePointers"));
  EXPECT_THAT(refusal({"%n = OpGroupNonUniformIAdd %i32 %c2 Reduce %v\n" + nothing, "",
                       "OpCapability GroupNonUniformArithmetic\n"}),
              HasSubstr("GroupNonUniformArithmetic"));
  EXPECT_THAT(refusal({nothing, "", "", "", "", "Physical32 OpenCL"}), HasSubstr("Physical64"));
  EXPECT_THAT(refusal({"%f = OpConvertSToF %f32 %v\n%g = OpExtInst %f32 %cl lgamma %f\n" + nothing, "", "", "",
                       "%cl = OpExtInstImport \"OpenCL.std\"\n"}),
              HasSubstr("instruction lgamma of OpenCL.std"));
  EXPECT_THAT(refusal({nothing, "", "", "", "%gl = OpExtInstImport \"GLSL.std.450\"\n"}), HasSubstr("GLSL.std.450"));
  EXPECT_THAT(refusal({nothing, "%w = OpTypeVector %i32 5\n"}), HasSubstr("not valid"));
}

// What the hardware does not have is an error of ours before a driver or LLVM's own exit() finds it.
TEST(finalize_spirv, too_much_of_a_workgroup_or_a_stack_is_refused) {
  auto why = [](const std::string& body, const std::string& more, const char* target) {
    std::string source = "#include <hip/hip_runtime.h>\n__global__ void k(const int* x, int* y) { " + body +
                         " }\nKILN_OPERATOR(\"t\", \"k\")\nKILN_OUTPUT(0, int32, same_as(input0))\nKILN_LAUNCH(k, "
                         "per_row(1, 64), input0, output0)\n" +
                         more;
    shape t{element_type::i32, {64}};
    try {
      finalize_spirv(
          serialize(compile_hip(source, "k.hip", {.definitions = {}, .whole_module = false}).operators.at(0)),
          std::vector{t}, std::vector{t}, find_target(target));
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string("finalized");
  };
  std::string fixed =
      "__shared__ int s[15000]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); y[threadIdx.x] = s[63 - "
      "threadIdx.x];";
  EXPECT_EQ(why(fixed, "", "gfx942"), "finalized");
  EXPECT_THAT(why(fixed, "", "sm_90"), HasSubstr("60000 bytes of __shared__ variables; NVIDIA's compiler takes 49152"));
  EXPECT_THAT(why(fixed, "KILN_SHARED(8000)\n", "gfx1100"),
              HasSubstr("wants 68000 bytes of shared memory for each workgroup; gfx1100 gives 65536"));
  std::string stack =
      "int s[60000]; for (int i = 0; i < 60000; ++i) s[i] = x[i & 63]; for (int i = 1; i < 60000; ++i) s[s[i] & 32767] "
      "+= s[i - 1]; y[threadIdx.x] = s[x[threadIdx.x] & 63];";
  EXPECT_THAT(why(stack, "", "gfx942"), HasSubstr("stack frame size"));
}

}  // namespace
}  // namespace kiln::spirv
