#include "aot/kernels/kernel_order.hpp"

#include <random>
#include <set>

#include "aot/kernels/formation.hpp"
#include "test/aot/passes/passes_test.hpp"
#include "test/aot/passes/unformed.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

// A random graph in which some units were merged; expected answers are computed by exhaustive search.
struct merged_graph {
  explicit merged_graph(std::size_t units) : readers(units), sources(units), unit(units), transparent(units) {
    for (std::size_t u = 0; u < units; ++u) unit[u] = u;
  }

  void edge(std::size_t from, std::size_t to) { readers[from].push_back(to), sources[to].push_back(from); }

  kernel_order::graph view() {
    return {[this](std::size_t u, bool forward, const std::function<void(std::size_t)>& each) {
              ++visits;
              for (std::size_t n = 0; n < unit.size(); ++n)
                if (unit[n] == u)
                  for (std::size_t next : forward ? readers[n] : sources[n]) each(unit[next]);
            },
            [this](std::size_t u) { return static_cast<bool>(transparent[u]); }};
  }

  // Returns true if a path leads from `from` to `to` through a unit that is not transparent.
  bool leads(std::size_t from, std::size_t to) const {
    std::set<std::pair<std::size_t, bool>> seen;
    std::vector<std::pair<std::size_t, bool>> open{{from, false}};
    while (!open.empty()) {
      auto [at, through] = open.back();
      open.pop_back();
      for (std::size_t n = 0; n < unit.size(); ++n)
        if (unit[n] == at)
          for (std::size_t next : readers[n]) {
            if (unit[next] == from) continue;
            if (unit[next] == to && through) return true;
            if (unit[next] == to) continue;
            std::pair<std::size_t, bool> step{unit[next], through || !transparent[unit[next]]};
            if (seen.insert(step).second) open.push_back(step);
          }
    }
    return false;
  }

  std::vector<std::vector<std::size_t>> readers, sources;
  std::vector<std::size_t> unit;
  std::vector<char> transparent;
  std::size_t visits = 0;
};

TEST(kernel_order, finds_every_cycle_that_a_merge_would_make) {
  std::size_t merges = 0, refused = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const std::size_t units = 24;
    merged_graph g(units);
    for (std::size_t u = 1; u < units; ++u)
      for (std::size_t k = 0; k < 1 + random() % 3; ++k) g.edge(random() % u, u);
    for (std::size_t u = 0; u < units; ++u) g.transparent[u] = random() % 5 == 0;
    kernel_order order(units, g.view());
    for (int attempt = 0; attempt < 200; ++attempt) {
      const std::size_t a = g.unit[random() % units], b = g.unit[random() % units];
      if (a == b || g.transparent[a] || g.transparent[b]) continue;
      const bool parted = g.leads(a, b) || g.leads(b, a);
      ASSERT_EQ(order.parted(a, b), parted) << "seed " << seed << ", attempt " << attempt;
      if (parted) {
        ++refused;
      } else if (random() % 3 == 0) {
        order.merge(a, b);
        for (std::size_t& u : g.unit)
          if (u == b) u = a;
        ++merges;
      }
    }
  }
  EXPECT_GT(merges, 200u);
  EXPECT_GT(refused, 1000u);
}

TEST(kernel_order, looks_only_between_the_two) {
  const std::size_t units = 2000;
  merged_graph g(units);
  for (std::size_t u = 1; u < units; ++u) {
    g.edge(u - 1, u);
    if (u >= 5) g.edge(u - 5, u);
  }
  kernel_order order(units, g.view());
  for (std::size_t u = 10; u + 10 < units; u += 10) EXPECT_TRUE(order.parted(u, u + 5));
  EXPECT_LE(g.visits, 10 * units / 10);
}

// The kernel for the sum of rows needs the maximum of rows. A single kernel for the maximum and the addition of the sum
// would depend on itself.
TEST(formation, no_kernel_needs_its_own_result) {
  program p;
  builder b(p.main());
  value x = b.p("x", {8, 8});
  value product = b.m.add(dot{}, {x, b.w({8, 8})});
  value sum = b.m.add(reduce{reduction_kind::sum, {1}, true}, {product});
  value most = b.m.add(reduce{reduction_kind::max, {1}, true}, {x});
  b.out({b.f(add, product, most), b.f(add, {most, sum})});
  auto expected = run(p);
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  p.validate();
  expect_equal(expected, run(unformed(p, kernels)), 1e-6);
}

}  // namespace
}  // namespace kiln::testing
