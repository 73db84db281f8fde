// Properties of the object: which symbols it refers to, reproducibility, refusals, and the contents of the trace.
#include <algorithm>
#include <set>

#include "harness.hpp"
#include "ir/error.hpp"
#include "llvm/Object/ObjectFile.h"

namespace kiln::test {
namespace {

using in = const std::vector<value>&;

std::set<std::string> undefined_symbols(const native_kernel& kernel) {
  llvm::StringRef bytes(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size());
  auto file = llvm::cantFail(llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel")));
  std::set<std::string> names;
  for (const auto& symbol : file->symbols())
    if (llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined)
      names.insert(llvm::cantFail(symbol.getName()).str());
  names.erase("");
  return names;
}

// Symbols that a loader must provide: C memory functions and libm.
bool is_allowed(const std::string& symbol) {
  static const std::set<std::string> allowed = [] {
    std::set<std::string> names{"memcpy", "memmove", "memset"};
    for (std::string f : {"exp", "log", "erf", "tanh", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
                          "asinh", "acosh", "atanh", "pow", "fmod"}) {
      names.insert(f);
      names.insert(f + "f");
    }
    return names;
  }();
  return allowed.contains(symbol);
}

TEST(object, refers_to_libm_and_memory_functions_only) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < scalar_function_table.size(); ++i)
    for (element_type type :
         {element_type::f32, element_type::f64, element_type::f16, element_type::i64, element_type::boolean}) {
      auto function = static_cast<scalar_function>(i);
      std::vector<shape> inputs(static_cast<std::size_t>(row(function).arity), typed(type, {3, 37}));
      if (function == scalar_function::where) inputs[0].type = element_type::boolean;
      std::unique_ptr<module> m;
      try {
        m = fusion(inputs, [&](module& m, in p) { return std::vector<value>{m.add(elementwise{function}, p)}; });
      } catch (const error&) {
        // The function is not defined for this type.
        continue;
      }
      for (const std::string& symbol : undefined_symbols(loaded_kernel(*m, best_target()).native())) {
        EXPECT_TRUE(is_allowed(symbol)) << symbol << " in " << enum_name(function) << " of " << name(type);
        seen.insert(symbol);
      }
    }
  EXPECT_TRUE(seen.contains("fmodf"));
  for (const char* expanded : {"expf", "logf", "powf", "asinf"})
    EXPECT_FALSE(seen.contains(expanded)) << expanded << " is computed for whole vectors";
}

TEST(object, is_reproducible) {
  auto m = fusion({f32({33, 70}), f32({70})}, [](module& m, in p) {
    value s = m.add(softmax{1, false}, {p[0]});
    return std::vector<value>{m.add(elementwise{scalar_function::mul}, {s, m.add(broadcast{{33, 70}}, {p[1]})})};
  });
  EXPECT_EQ(loaded_kernel(*m, best_target()).native(), loaded_kernel(*m, best_target()).native());
}

TEST(object, grids_of_large_kernels_can_be_shared) {
  auto m = fusion({f32({1 << 20})},
                  [](module& m, in p) { return std::vector<value>{m.add(elementwise{scalar_function::exp}, {p[0]})}; });
  const auto native = loaded_kernel(*m, best_target()).native();
  ASSERT_EQ(native.launches.size(), 1u);
  EXPECT_GE(native.launches[0].grid, 32);
  auto small = fusion({f32({100})}, [](module& m, in p) {
    return std::vector<value>{m.add(elementwise{scalar_function::exp}, {p[0]})};
  });
  EXPECT_EQ(loaded_kernel(*small, best_target()).native().launches[0].grid, 1);
}

TEST(object, trace_tells_every_phase) {
  auto m =
      fusion({f32({40, 40})}, [](module& m, in p) { return std::vector<value>{m.add(transpose{{1, 0}}, {p[0]})}; });
  finalize_trace trace;
  trace.want_texts = true;
  loaded_kernel kernel(*m, best_target(), {}, &trace);
  EXPECT_NE(trace.mlir.find("scf.for"), std::string::npos);
  EXPECT_NE(trace.llvm_ir.find("define"), std::string::npos);
  EXPECT_NE(trace.assembly.find("ret"), std::string::npos);
  EXPECT_GT(trace.optimize_ms + trace.codegen_ms, 0);
}

// How often the optimized code of a kernel contains a text.
std::size_t count(const std::string& what, const module& m) {
  finalize_trace trace;
  trace.want_texts = true;
  loaded_kernel kernel(m, best_target(), {}, &trace);
  std::size_t found = 0;
  for (std::size_t at = 0; (at = trace.llvm_ir.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

// Pointwise kernels and long sums keep their loops, which saves compile time. Windows are unrolled.
TEST(object, loops_are_unrolled_where_that_pays) {
  EXPECT_EQ(count("store <", *fusion({f32({64, 96}), f32({64, 32})},
                                     [](module& m, in p) {
                                       return std::vector<value>{
                                           m.add(elementwise{scalar_function::relu}, {m.add(concat{1}, {p[0], p[1]})})};
                                     })),
            2u);
  // Three lines of a window are three copies of the loads.
  convolution op{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 16, tensor_layout::channels_last};
  EXPECT_GE(count("load <", *fusion({f32({1, 12, 12, 16}), f32({3, 3, 1, 16})},
                                    [&](module& m, in p) { return std::vector<value>{m.add(op, p)}; })),
            9u * 3);
}

// A dozen operands that differ only in their address are one loop, in pointwise kernels and in reductions.
TEST(object, alike_operands_share_their_code) {
  const auto kernel = [](std::size_t operands, bool reduces) {
    std::vector<shape> inputs(operands, f32({1, 7, 7, 32}));
    inputs[0] = f32({1, 7, 7, 64});
    return fusion(inputs, [&](module& m, in p) {
      value v = m.add(elementwise{scalar_function::relu}, {m.add(concat{3}, p)});
      return std::vector{reduces ? m.add(reduce{reduction_kind::mean, {1, 2}, true}, {v}) : v};
    });
  };
  for (bool reduces : {false, true}) {
    EXPECT_EQ(count("load <", *kernel(6, reduces)), count("load <", *kernel(13, reduces)));
    EXPECT_GE(count(" br ", *kernel(6, reduces)), count(" br ", *kernel(13, reduces)));
  }
}

// The place of a row of joined lines follows from its number: rows are not divided into lines and multiplied again.
TEST(object, digits_of_a_number_are_joined_again) {
  convolution op{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, tensor_layout::channels_last};
  const auto m = fusion({f32({1, 7, 7, 96}), f32({1, 1, 96, 64}), f32({1, 7, 7, 64})}, [&](module& m, in p) {
    value v = m.add(op, {p[0], p[1]});
    return std::vector<value>{m.add(elementwise{scalar_function::add}, {v, p[2]})};
  });
  EXPECT_LE(count("rem i64", *m), 2u);  // those of the work item's number
}

}  // namespace
}  // namespace kiln::test
