// Programs after kernel formation, checked: their kernels keep the rules and compute the same numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aot/kernels/formation.hpp"
#include "test/aot/passes/legal_fusion.hpp"
#include "test/aot/passes/passes_test.hpp"
#include "test/aot/passes/unformed.hpp"

namespace kiln::testing {

struct formed {
  program p;
  std::vector<formed_kernel> kernels;
  // Symbols of the code objects, in order.
  std::vector<std::string> symbols;
};

inline formed form(const std::function<void(builder&)>& build, double tolerance = 1e-6) {
  formed f;
  builder b(f.p.main());
  build(b);
  f.p.validate();
  auto expected = run(f.p);
  form_kernels(f.p, write_text, &f.kernels);
  f.p.validate();
  for (const formed_kernel& k : f.kernels) expect_legal(*k.fusion);
  for (const instruction& i : f.p.main().instructions()) {
    bool allowed = i.op().is<parameter>() || i.op().is<constant>() || i.op().is<reshape>() || i.op().is<code_object>();
    EXPECT_TRUE(allowed) << i.op().str();
    if (const auto* c = i.op().get_if<code_object>()) f.symbols.push_back(c->symbol);
  }
  expect_equal(expected, run(unformed(f.p, f.kernels)), tolerance);
  return f;
}

using names = std::vector<std::string>;

}  // namespace kiln::testing
